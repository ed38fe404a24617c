//! What calls do, told to the outside: counters and histograms through the `metrics` facade, events
//! and a span through `tracing`.
//!
//! Both are [`Observer`](crate::Observer)s: they see the events of the engine and nothing else.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "metrics")]
mod pipeline;
#[cfg(feature = "tracing")]
mod traces;

#[cfg(feature = "metrics")]
pub use metrics::Metrics;
#[cfg(feature = "metrics")]
pub use pipeline::PipelineMetrics;
#[cfg(feature = "tracing")]
pub use traces::Traces;
