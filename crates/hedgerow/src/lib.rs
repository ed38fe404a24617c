//! Hedged requests: when an attempt has not answered after a delay, start a second one, keep the
//! first good answer, get rid of the rest.
//!
//! ```
//! use std::time::Duration;
//! use hedgerow::{Hedge, hedged};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), String> {
//! # async fn load_profile(_user: u32, _attempt: u32) -> Result<&'static str, String> { Ok("ada") }
//! # async fn get(_url: &str) -> Result<&'static str, String> { Ok("page") }
//! # let (user_id, url) = (7, "");
//! // One call: if there is no answer after 50 ms start another; two hedges at most.
//! let profile = hedged(|attempt| load_profile(user_id, attempt.number()))
//!     .after(Duration::from_millis(50))
//!     .max_hedges(2)
//!     .await?;
//!
//! // A policy kept for many calls, which never adds more than 5 % load.
//! let hedge = Hedge::after(Duration::from_millis(50)).max_extra_load(0.05);
//! let page = hedge.call(|_| get(url)).await?;
//!
//! // What happened: who answered, every failure, when each attempt started, why no hedge was sent.
//! let report = hedge.call(|_| get(url)).settle().await;
//! assert_eq!(report.winner(), Some(0));
//! # assert_eq!((profile, page), ("ada", "page")); Ok(()) }
//! ```
//!
//! Hedging runs the same work more than once: hedge idempotent work, and say
//! [`idempotent(false)`](HedgedCall::idempotent) where a call is not.
//!
//! # The pieces
//!
//! * [`Hedge`] is the policy: plain data, kept and shared. [`Hedge::adaptive`] is the recommended
//!   one: it learns when to hedge, and [`explain`](Hedge::explain)s why it did or did not;
//!   [`Hedge::key`] learns apart what differs by nature.
//! * [`PolicyHandle`] holds a policy that can be changed while calls are made through it;
//!   `HedgeConfig` (feature `serde`) reads one from a file.
//! * [`HedgedCall`] is one call before it is awaited: predicates, hooks, tokens, properties.
//! * [`Rules`] is the typed part as a trait, for clients that keep theirs.
//! * [`Attempt`] is what the work is told about itself.
//! * [`Report`] is what [`settle`](HedgedCall::settle) resolves to.
//! * `stream` (a feature) is for answers that come item by item, `telemetry` (features `metrics` and
//!   `tracing`) tells the outside what calls do.
//! * [`threads`] is all of that for work that blocks; it begins with [`Hedge::blocking`].
//!
//! The decisions are made by the pure engine of `hedgerow-core`; this crate waits, runs attempts
//! and obeys.
//!
//! # Runtimes
//!
//! A call is a plain future: it runs on any executor, on one thread or many, and needs neither
//! `Send` nor `'static`. Inside tokio's runtimes hedges wait by tokio's timer; on other executors
//! by the ring, a timer of the process's own, which costs less. [`Hedge::ring_timer`] chooses it
//! inside tokio, too; [`Hedge::clock`] chooses any other.
//!
//! # Features
//!
//! * `tokio` (default): tokio's timer, paused time included, and
//!   [`spawned`](HedgedCall::spawned). Without it the ring is the only timer, and a call's future
//!   is 80 bytes smaller.
//! * `serde`: policies from TOML, JSON or YAML (`HedgeConfig`).
//! * `pipeline`: timeouts, retries, breakers, limiters and the like around hedged calls
//!   (`pipeline`); with `serde` also from files (`registry`).
//! * `stream`: calls whose answer is a stream; its first item decides (`Hedge::stream`).
//! * `metrics`: counters, histograms and gauges through the `metrics` facade
//!   (`telemetry::Metrics`).
//! * `tracing`: events (`telemetry::Traces`), and a span for each call ([`Hedge::span`]).
//! * `test-util`: a manual clock, and scripted calls that show what a policy does with them
//!   (`testing`).

mod abandoned;
mod attempt;
mod call;
mod cancel;
mod clock;
#[cfg(feature = "serde")]
pub mod config;
mod drive;
mod extras;
mod failure;
mod handle;
mod hedge;
mod late;
#[cfg(feature = "pipeline")]
pub mod pipeline;
mod properties;
#[cfg(all(feature = "serde", feature = "pipeline"))]
pub mod registry;
mod report;
mod ring;
mod rules;
mod settle;
mod span;
#[cfg(feature = "tokio")]
mod spawned;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(any(feature = "metrics", feature = "tracing"))]
pub mod telemetry;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod threads;

pub use hedgerow_core::{
    Backoff, Budget, Decision, Delay, End, Event, EventKind, Exhausted, ExtraLoad, FailureStart,
    Gate, Growth, InvalidOption, Losers, MOST_HEDGES, MaxHedges, Moment, Observer, Origin, Panics,
    Policy, Pushback, Quiet, RatioBudget, RejectedHedge, RunEnd, Schedule, StrategyEvent,
    StrategyEventKind, latency, text,
};
pub use tokio_util::sync::CancellationToken;

pub use attempt::{Attempt, AttemptCounter};
pub use call::{HedgedCall, hedged};
#[cfg(feature = "test-util")]
pub use clock::ManualClock;
pub use clock::{Clock, Sleep};
#[cfg(feature = "serde")]
pub use config::{ConfigError, HedgeConfig};
pub use drive::{Begin, Hedged, SharedRules, SpawnedAttempt, Spawner, Task, Work};
pub use failure::{Cancelled, Failure};
pub use handle::PolicyHandle;
pub use hedge::Hedge;
pub use properties::Properties;
pub use report::{AllFailed, AttemptReport, Report};
pub use rules::{Defaults, Discarded, Judged, NextAction, NextHedge, NoAction, NoHook, Rules};
pub use settle::{Settle, Settled};
pub use span::SpanMode;
pub use threads::{Blocking, BlockingCall, BlockingWork, Job, Seat, Threads};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeDoctests;

/// Compiles and runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct GuideDoctests;

/// Compiles the examples of the page on telemetry.
#[cfg(all(doctest, feature = "metrics", feature = "pipeline", feature = "tracing"))]
#[doc = include_str!("../../../docs/telemetry.md")]
struct TelemetryDoctests;

/// Compiles and runs the examples of the page on pipelines.
#[cfg(all(doctest, feature = "pipeline", feature = "serde"))]
#[doc = include_str!("../../../docs/pipeline.md")]
struct PipelineDoctests;
