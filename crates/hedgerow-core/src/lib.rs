//! The pure engine of Hedgerow: every decision of a hedged call, and nothing else.
//!
//! This crate has no dependency, reads no clock, starts no thread and knows no runtime. Time comes
//! in as a value ([`Moment`]), what the attempts return comes in as a [`Verdict`], and what to do
//! next comes out as a [`Step`]. The async front of the `hedgerow` crate drives a [`Call`] with
//! futures; a simulator or a test drives the same object with invented time.
//!
//! ```
//! use hedgerow_core::{Call, Decision, Moment, Policy, Step, Terms, Verdict};
//!
//! let policy = Policy::default(); // one hedge after two seconds
//! let mut call = Call::new(&policy, Terms::default());
//! let mut now = Moment::ZERO;
//!
//! assert!(matches!(call.step(&policy, now), Step::Start { attempt: 0, .. }));
//! call.started(&policy, now);
//! assert_eq!(call.step(&policy, now), Step::AskDelay { hedge: 1 });
//! call.delay(policy.schedule.delay(1));
//! assert_eq!(call.step(&policy, now), Step::Wait { until: Moment::from_millis(2000) });
//!
//! now = Moment::from_millis(2000);
//! assert!(matches!(call.step(&policy, now), Step::Start { attempt: 1, .. }));
//! call.started(&policy, now);
//! assert!(call.finished(&policy, 1, Verdict::ACCEPTED, now));
//! assert_eq!(call.step(&policy, now), Step::Release); // drop the primary
//! assert_eq!(call.step(&policy, now), Step::Finish(Decision::Accepted(1)));
//! ```
//!
//! The module docs of [`call`] hold the state diagram and the order in which a driver does things.

pub mod call;

mod backoff;
pub mod breaker;
mod budget;
mod delay;
mod event;
mod gate;
mod invalid;
pub mod latency;
mod options;
mod quiet;
mod sharded;
mod strategy;
#[cfg(not(all(test, loom)))]
mod sync;
#[cfg(all(test, loom))]
#[path = "sync/loom.rs"]
mod sync;
pub mod text;
mod time;
mod verdict;

pub use backoff::{Backoff, Growth};
pub use budget::{Budget, ExtraLoad, RatioBudget};
pub use call::{Call, Step, Terms};
pub use delay::{Delay, Schedule};
pub use event::{Both, Decision, End, Event, EventKind, Observer, Origin};
pub use gate::Gate;
pub use invalid::InvalidOption;
pub use options::{
    Exhausted, FailureStart, Losers, MOST_HEDGES, MaxHedges, Panics, Policy, RejectedHedge,
};
pub use quiet::Quiet;
pub use strategy::{RunEnd, StrategyEvent, StrategyEventKind};
pub use time::Moment;
pub use verdict::{OutcomeKind, Pushback, Verdict};
