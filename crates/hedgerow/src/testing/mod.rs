//! Scripted calls: see, and assert, what a policy does with attempts that behave as written.
//!
//! A [`Scenario`] is a policy and a script of attempts. It runs in virtual time, on the pure engine
//! or on a front, and gives a [`Timeline`]: when each attempt started, which event came
//! when, what was returned. All fronts give the same timeline.
//!
//! ```
//! use std::time::Duration;
//! use hedgerow::Hedge;
//! use hedgerow::testing::{Front, Scenario, Script};
//!
//! let ms = Duration::from_millis;
//! let timeline = Scenario::new(Hedge::after(ms(50)))
//!     .attempt(Script::ok(ms(400), "slow"))
//!     .attempt(Script::ok(ms(20), "quick"))
//!     .run(Front::Async);
//! assert_eq!(timeline.events_text(), ["hedge(1)@50", "win(1)@70"]);
//! assert_eq!(timeline.returned.value.as_deref(), Some("quick"));
//! ```
//!
//! For tests of one's own code [`Watch`] tells the same of the calls that it makes, under tokio's
//! paused time or a [`ManualClock`](crate::ManualClock).

mod draw;
mod engine;
mod executor;
mod future;
mod scenario;
mod stream;
mod threads;
mod timeline;
mod watch;

pub use executor::ManualExecutor;
pub use scenario::{Front, Scenario, Script, Scripted, Tokens};
pub use timeline::{Returned, ReturnedKind, Timeline, TimelineEvent};
pub use watch::Watch;
