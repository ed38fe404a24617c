//! Resilience pipelines.

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
mod execution;
mod fallback;
mod hedging;
mod layer;
mod leaf;
mod line;
mod next;
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

pub use hedgerow_core::breaker::BreakerState;

pub use admit::{Admission, AdmitRun};
pub use boxed::{BoxPipeline, Boxed, ErasedClassifier, ErasedLeaf, ErasedWork};
pub use breaker::{BreakerControl, BreakerRun, CircuitBreaker};
pub use builder::{Builder, InvalidPipeline, Nest};
pub use cache::{Cache, CacheControl, CacheRun};
pub use chaos::{
    Behaviour, Chaos, ChaosControl, ChaosRun, Delayed, Fault, Latency, Preceding, Replaced, Trouble,
};
pub use classify::{Classify, HandleBy, Inherit, Own, PipelineResult, Predicate};
pub use concurrency::{ConcurrencyControl, ConcurrencyLimiter, ConcurrencyRun};
pub use context::Context;
pub use custom::{Custom, CustomRun, CustomStrategy};
pub use dynamic::{AnyStrategy, Dynamic};
pub use error::{FallbackFailed, PipelineError, Rejected, TimedOut};
pub use execution::{Executing, Execution, Launch, Settling, Terms};
pub use fallback::{
    Fallback, FallbackHook, FallbackRun, FixedValue, MadeBy, OnFallback, Replacement, Unanswered,
};
pub use hedging::{
    ActBy, ActionResult, Actions, Attempts, BoxRun, HedgeRules, HedgeRun, Hedging, Repeat,
    RestOfPipeline,
};
pub use layer::{Described, End, Facts, Layer, Layers, Place, Then};
pub use leaf::{Inner, Leaf, WorkRun};
pub use next::{Innermost, Next, Rest, Strategy};
pub use outcome::{
    Everything, MayCancel, MayFallShort, MayReject, MayTimeOut, Never, Nothing, Outcome, Raised,
    Raises,
};
pub use pipeline::{Pipeline, StrategyInfo};
pub use presets::{Endpoint, Standard, StandardHedging};
pub use rate::{RateControl, RateLimiter, RateRun};
pub use retry::{NextRetry, Retry, RetryRun};
pub use target::PerTarget;
pub use threads::{BlockingExecution, BlockingPipeline, OnThreads, ThreadRun};
pub use timeout::{Timeout, TimeoutRun};
