//! Pipelines: timeouts, retries, breakers and limiters around hedged calls.
//!
//! A pipeline is a stack of strategies around work: the first added is outermost. It is built once,
//! kept, shared, and work runs through it by [`execute`](Pipeline::execute) or, for an outcome to match
//! on, by [`settle`](Execution::settle):
//!
//! ```
//! use std::time::Duration;
//! use hedgerow::Hedge;
//! use hedgerow::pipeline::{CircuitBreaker, Outcome, Pipeline, Retry};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn search(_attempt: hedgerow::Attempt, _query: &str) -> Result<u32, std::fmt::Error> { Ok(3) }
//! let pipeline = Pipeline::builder()
//!     .timeout(Duration::from_secs(2))
//!     .retry(Retry::exponential().max_retries(2))
//!     .hedge(Hedge::after(Duration::from_millis(150)))
//!     .circuit_breaker(CircuitBreaker::default())
//!     .build()?;
//! let query = String::from("hedges");
//!
//! let found = pipeline.execute(|attempt| search(attempt, &query)).await?;
//!
//! match pipeline.execute(|attempt| search(attempt, &query)).settle().await {
//!     Outcome::Success(found) => println!("{found} found"),
//!     Outcome::Failed(error) => println!("the search failed: {error}"),
//!     Outcome::TimedOut(timed_out) => println!("{timed_out}"),
//!     Outcome::Rejected(rejected) => println!("{rejected}"),
//! }
//! # assert_eq!(found, 3); Ok(()) }
//! ```
//!
//! # The strategies
//!
//! | strategy | what it does |
//! |---|---|
//! | [`Timeout`] | gives up after a limit: of the whole, or of each attempt, by where it is |
//! | [`Retry`] | repeats what fails, after a wait |
//! | [`Hedging`] | starts another attempt when the first is slow: a [`Hedge`](crate::Hedge) |
//! | [`CircuitBreaker`] | lets nothing through while too much fails |
//! | [`RateLimiter`] | lets so many start in a period |
//! | [`ConcurrencyLimiter`] | lets so many run at the same time |
//! | [`Fallback`] | replaces what failed |
//! | [`Cache`] | answers with what was answered before |
//! | [`Chaos`] | makes trouble on purpose |
//! | [`PerTarget`] | sends attempts to several targets, each with strategies of its own |
//! | [`Pipeline`] | a pipeline in a pipeline |
//! | [`CustomStrategy`] | one of one's own |
//!
//! [`Pipeline::standard`] and [`Pipeline::standard_hedging`] are ready to use.
//!
//! # What outcomes mean
//!
//! Strategies share one idea of what a failure is: what [`Classify`] says, by default every error but
//! rejections and cancellation. An [execution](Execution::handle) can say otherwise for all of them,
//! a strategy for itself.
//!
//! # Costs
//!
//! The stack is known to the compiler: nothing is boxed, and an execution whose first attempt answers
//! allocates nothing. (A hedge around a retry or around another hedge allocates a counter for each
//! run, as their attempts are numbered together while they run at the same time.) A
//! [`BoxPipeline`] and pipelines from a configuration allocate for each run.
//!
//! Dropping an execution drops everything in it at once: attempts, waits, slots and probes, and
//! nothing counts as a failure for it.

mod admit;
mod boxed;
mod breaker;
mod builder;
mod cache;
mod chaos;
mod classify;
mod concurrency;
mod context;
mod custom;
mod dynamic;
mod error;
mod executing;
mod execution;
mod fallback;
mod hedging;
mod layer;
mod leaf;
mod line;
mod next;
mod note;
mod outcome;
#[expect(clippy::module_inception, reason = "the type that the module is about")]
mod pipeline;
mod presets;
mod rate;
mod retry;
mod stream;
mod target;
mod threads;
mod timeout;
mod wait;
mod warnings;

pub use hedgerow_core::breaker::BreakerState;

pub use boxed::BoxPipeline;
pub use breaker::{BreakerControl, CircuitBreaker};
pub use builder::{Builder, InvalidPipeline};
pub use cache::{Cache, CacheControl};
pub use chaos::{Chaos, ChaosControl};
pub use classify::{Classify, PipelineResult};
pub use concurrency::{ConcurrencyControl, ConcurrencyLimiter};
pub use context::Context;
pub use custom::CustomStrategy;
pub use dynamic::AnyStrategy;
pub use error::{FallbackFailed, PipelineError, Rejected, TimedOut};
pub use execution::Execution;
pub use fallback::Fallback;
pub use hedging::{ActionResult, BoxRun, Hedging, RestOfPipeline};
pub use layer::{End, Facts, Then};
pub use next::Next;
pub use outcome::Outcome;
pub use pipeline::{Pipeline, StrategyInfo};
pub use rate::{RateControl, RateLimiter};
pub use retry::{NextRetry, Retry};
pub use target::PerTarget;
pub use threads::{BlockingExecution, BlockingPipeline};
pub use timeout::Timeout;

/// What pipelines are put together from: futures, and types that only the compiler reads. Few
/// programs name any of them.
pub mod parts {
    pub use super::admit::{Admission, AdmitRun};
    pub use super::boxed::{Boxed, ErasedClassifier, ErasedLeaf, ErasedWork};
    pub use super::breaker::BreakerRun;
    pub use super::builder::Nest;
    pub use super::cache::CacheRun;
    pub use super::chaos::{
        Behaviour, ChaosRun, Delayed, Fault, Latency, Preceding, Replaced, Trouble,
    };
    pub use super::classify::{HandleBy, HandleValues, Inherit, NeverStarted, Own, Predicate};
    pub use super::concurrency::ConcurrencyRun;
    pub use super::custom::{Custom, CustomRun};
    pub use super::dynamic::Dynamic;
    pub use super::executing::{Executing, Launch, Settling};
    pub use super::execution::Terms;
    pub use super::fallback::{
        FallbackHook, FallbackRun, FallsShort, FixedValue, MadeBy, OnFallback, Replacement,
        Unanswered,
    };
    pub use super::hedging::{ActBy, Actions, Acts, Attempts, HedgeRules, HedgeRun, Repeat};
    pub use super::layer::{Described, Layer, Layers, Nests, Place};
    pub use super::leaf::{Inner, Leaf, WorkRun};
    pub use super::next::{Around, Innermost, Outcomes, Rest, Strategy};
    pub use super::outcome::{
        Everything, MayCancel, MayFallShort, MayReject, MayTimeOut, Never, Nothing, Raised, Raises,
    };
    pub use super::presets::{Endpoint, Standard, StandardHedging};
    pub use super::rate::RateRun;
    pub use super::retry::RetryRun;
    pub use super::threads::{OnThreads, ThreadRun};
    pub use super::timeout::TimeoutRun;
}
