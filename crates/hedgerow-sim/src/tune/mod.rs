//! The tuner: from latencies that people have to what they should set, or why they should not.
//!
//! [`Latencies`] counts what a log holds, in bounded memory however long it is. [`tune`] finds when
//! and how often to hedge under a given extra load, predicts what that gives, and says how sure
//! that is. It answers "do not hedge" with a [`Reason`] where there are too few samples, where
//! there is no tail to cut, where pairs of copies show that a second one would be slow as well, and
//! where the servers have no room for it.
//!
//! # Under load
//!
//! A [`Backend`] says how busy the servers are. The plan is then tried on them in the simulator, in
//! a few runs with the same arrivals and the same work with and without hedging. It is a cautious
//! trial: a latency of the log is taken to be work, though some of it was waiting in queues already;
//! copies are independent; and nobody stops a copy that has lost. The plan has a budget of its extra
//! load, as programs have it. If the target does not come sooner, beyond what is chance among the
//! runs, or if fewer calls are answered in time, the advice is not to hedge.
//!
//! Everything is deterministic: the same counts and the same [`Question`] give the same [`Advice`].
//!
//! ```
//! use hedgerow_sim::tune::{Latencies, Question, tune};
//!
//! let mut latencies = Latencies::default();
//! for call in 0..20_000_u64 {
//!     let body = 2_000_000 + call * 7_919 % 1_000_000;
//!     latencies.record(if call % 50 == 0 { body + 80_000_000 } else { body });
//! }
//! let advice = tune(&latencies, None, &Question::default());
//! let plan = advice.verdict.expect("a tail of 2 % is worth cutting");
//! assert!(plan.delay < 10e6 && plan.probability == 1.0);
//! assert!(advice.predicted.p99 < 10e6 && advice.without.p99 > 80e6);
//! ```

mod advice;
mod backend;
mod copies;
mod curve;
mod curves;
mod decide;
mod figures;
mod latencies;
mod noise;
mod ratio;
mod solve;
mod trial;

#[cfg(test)]
mod tests;

pub use advice::{Advice, Choice, Reason, Warning};
pub use backend::Backend;
pub use copies::{Copies, Finding, Pairs};
pub use curve::FineCurve;
pub use curves::{Curves, curves};
pub use decide::{Question, tune, tune_watched};
pub use figures::{Interval, Intervals, Quantiles, rounded};
pub use latencies::Latencies;
pub use ratio::Ratio;
pub use solve::Plan;
pub use trial::{Simulated, Trial};
