//! Events through `tracing`.

use std::sync::Arc;

use hedgerow_core::{
    End, Event, EventKind, Moment, Observer, Origin, StrategyEvent, StrategyEventKind as Kind,
};
use tracing::debug;

/// Tells every hedge, every attempt that ends, every refusal and every exhausted call as a
/// `tracing` event, at the debug level, with the target `hedgerow`.
///
/// | event | fields beside `policy`, `call` and `at` |
/// |---|---|
/// | `hedge started` | `attempt`, `origin`: `delay`, `failure` |
/// | `attempt ended` | `attempt`, `outcome`: `won`, `failed`, `rejected`, `panicked`, `cancelled`, `discarded`; `duration`; `handled`: whether another attempt may follow |
/// | `hedge denied` | `attempt`, `gate`: the name of a [`Gate`](crate::Gate) |
/// | `exhausted` | `attempt`: the one whose failure is returned |
///
/// Strategies of a pipeline are told likewise, with `pipeline`, `strategy`, `operation`, `execution`
/// and `attempt`:
///
/// | event | further fields |
/// |---|---|
/// | `run ended` | one of the work itself: `outcome`, `duration` |
/// | `retrying`, `gave up` | `retry`, `delay`; `reason` |
/// | `timed out` | `limit`, `elapsed` |
/// | `rejected` | `reason`, `retry_after` |
/// | `circuit breaker` | `state`, `open_for` |
/// | `fell back`, `cache`, `chaos` | `succeeded`; `result`; `kind` |
/// | `execution over` | `outcome`, `duration` |
///
/// `call` tells calls apart in this process, `at` and `duration` are in seconds; `at` counts from
/// the start of the call. An attempt that did not end well also has `error.type`, the name that
/// OpenTelemetry uses for it, with the outcome as value.
///
/// ```
/// use hedgerow::Hedge;
/// use hedgerow::telemetry::Traces;
///
/// let hedge = Hedge::adaptive().observer(std::sync::Arc::new(Traces::new("search")));
/// ```
#[derive(Clone, Debug)]
pub struct Traces {
    policy: Arc<str>,
}

impl Traces {
    /// Events of a policy, under a name that tells it from the program's other policies.
    pub fn new(policy: impl Into<Arc<str>>) -> Self {
        Self { policy: policy.into() }
    }
}

impl Observer for Traces {
    fn event(&self, event: &Event) {
        let (policy, call, attempt) = (&*self.policy, event.call, event.attempt);
        let at = event.at.since(Moment::ZERO).as_secs_f64();
        match event.kind {
            EventKind::Started { origin: Origin::Primary } => {}
            EventKind::Started { origin } => {
                let origin = origin.name();
                debug!(target: "hedgerow", policy, call, attempt, origin, at, "hedge started");
            }
            EventKind::Ended { end, ran } => {
                let (outcome, duration) = (end.name(), ran.as_secs_f64());
                let handled = matches!(end, End::Failed | End::Rejected | End::Panicked);
                let error = handled.then_some(outcome);
                debug!(
                    target: "hedgerow",
                    policy,
                    call,
                    attempt,
                    outcome,
                    duration,
                    handled,
                    error.r#type = error,
                    at,
                    "attempt ended"
                );
            }
            EventKind::Denied { gate } => {
                let gate = gate.name();
                debug!(target: "hedgerow", policy, call, attempt, gate, at, "hedge denied");
            }
            EventKind::Exhausted => {
                debug!(target: "hedgerow", policy, call, attempt, at, "exhausted");
            }
            _ => {}
        }
    }

    fn strategy(&self, event: &StrategyEvent<'_>) {
        /// An event with what all of them say.
        macro_rules! tell {
            ($text:literal $(, $field:ident)*) => {{
                let StrategyEvent { pipeline, strategy, operation, execution, attempt, .. } = *event;
                let policy = &*self.policy;
                debug!(
                    target: "hedgerow",
                    policy, pipeline, strategy, operation, execution, attempt, $($field,)*
                    $text
                );
            }};
        }
        match event.kind {
            Kind::AttemptEnded { end, ran } => {
                let (outcome, duration) = (end.name(), ran.as_secs_f64());
                tell!("run ended", outcome, duration);
            }
            Kind::Retrying { retry, delay } => {
                let delay = delay.as_secs_f64();
                tell!("retrying", retry, delay);
            }
            Kind::GaveUp { reason } => tell!("gave up", reason),
            Kind::TimedOut { limit, elapsed } => {
                let (limit, elapsed) = (limit.as_secs_f64(), elapsed.as_secs_f64());
                tell!("timed out", limit, elapsed);
            }
            Kind::Rejected { reason, retry_after } => {
                let retry_after = retry_after.map(|after| after.as_secs_f64());
                tell!("rejected", reason, retry_after);
            }
            Kind::Breaker { state, open_for } => {
                let open_for = open_for.map(|open| open.as_secs_f64());
                tell!("circuit breaker", state, open_for);
            }
            Kind::FellBack { succeeded } => tell!("fell back", succeeded),
            Kind::Cache { result } => tell!("cache", result),
            Kind::Chaos { kind } => tell!("chaos", kind),
            Kind::Over { end, took } => {
                let (outcome, duration) = (end.name(), took.as_secs_f64());
                tell!("execution over", outcome, duration);
            }
            _ => {}
        }
    }
}
