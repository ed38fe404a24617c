//! Metrics of a pipeline.

use std::fmt;
use std::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, Label, SharedString, Unit, counter, describe_counter,
    describe_gauge, describe_histogram, gauge, histogram,
};
use hedgerow_core::{End, Event, Observer, RunEnd, StrategyEvent, StrategyEventKind as Kind};

use super::metrics::Metrics;

/// Records what a pipeline does, through the recorder that the program installed.
///
/// | metric | kind, unit | labels beside `pipeline` | what |
/// |---|---|---|---|
/// | `hedgerow.executions` | counter | `result`: `succeeded`, `failed`, `timed-out`, `rejected`, `cancelled`, `panicked` | executions that are over |
/// | `hedgerow.execution.duration` | histogram, s | `result` | from the start of an execution to its end |
/// | `hedgerow.runs` | counter | `result`: `succeeded`, `failed`, `cancelled`, `panicked` | runs of the work that have ended, each once, whichever strategy asked for them |
/// | `hedgerow.run.duration` | histogram, s | `result` | how long a run of the work took |
/// | `hedgerow.runs.running` | gauge | | runs of the work that have started and not ended |
/// | `hedgerow.retries` | counter | `strategy` | further tries |
/// | `hedgerow.retries.given_up` | counter | `strategy`, `reason` | retries that were due and did not start |
/// | `hedgerow.timeouts` | counter | `strategy` | limits that passed |
/// | `hedgerow.rejections` | counter | `strategy`, `reason` | refusals to start |
/// | `hedgerow.breaker` | counter | `strategy`, `state`: `closed`, `half-open`, `open`, `isolated` | changes into this state |
/// | `hedgerow.breaker.state` | gauge | `strategy` | the state it is in: 0 closed, 1 half-open, 2 open, 3 isolated; nothing before its first change |
/// | `hedgerow.fallbacks` | counter | `strategy`, `result`: `succeeded`, `failed` | outcomes that were replaced |
/// | `hedgerow.cache` | counter | `strategy`, `result`: `hit`, `miss`, `stale` | questions to a cache |
/// | `hedgerow.chaos` | counter | `strategy`, `kind` | trouble that was made on purpose |
///
/// Hedges of the pipeline are counted as by [`Metrics`], with the name given here as `policy`.
/// Labels have few values whatever happens: names of the pipeline and its strategies, and words.
///
/// ```
/// use std::sync::Arc;
/// use hedgerow::pipeline::Pipeline;
/// use hedgerow::telemetry::PipelineMetrics;
///
/// let metrics = Arc::new(PipelineMetrics::new("search"));
/// let pipeline = Pipeline::builder()
///     .name("search")
///     .observer(metrics)
///     .timeout(std::time::Duration::from_secs(2))
///     .build();
/// # assert!(pipeline.is_ok());
/// ```
pub struct PipelineMetrics {
    name: SharedString,
    hedges: Metrics,
    executions: Ends,
    runs: Ends,
    running: Gauge,
}

/// A counter and a histogram for each way to end.
struct Ends(Vec<(RunEnd, Counter, Histogram)>);

/// How a run of the work alone can end: no strategy ends it.
const OF_WORK: [RunEnd; 4] =
    [RunEnd::Succeeded, RunEnd::Failed, RunEnd::Cancelled, RunEnd::Panicked];

/// The states of a breaker, each at its number.
const STATES: [&str; 4] = ["closed", "half-open", "open", "isolated"];

impl Ends {
    fn new(
        name: &SharedString,
        ends: &[RunEnd],
        count: impl Fn(Vec<Label>) -> Counter,
        duration: impl Fn(Vec<Label>) -> Histogram,
    ) -> Self {
        let labels = |end: RunEnd| vec![named(name), Label::new("result", end.name())];
        let handles = |end: &RunEnd| (*end, count(labels(*end)), duration(labels(*end)));
        Self(ends.iter().map(handles).collect())
    }

    fn add(&self, end: RunEnd, took: Duration) {
        if let Some((_, count, duration)) = self.0.iter().find(|(each, ..)| *each == end) {
            count.increment(1);
            duration.record(took.as_secs_f64());
        }
    }
}

impl PipelineMetrics {
    /// Metrics of the pipeline that has this name.
    pub fn new(pipeline: impl Into<SharedString>) -> Self {
        describe();
        let name = pipeline.into();
        Self {
            hedges: Metrics::stateless(name.clone()),
            executions: Ends::new(
                &name,
                &RunEnd::ALL,
                |labels| counter!("hedgerow.executions", labels),
                |labels| histogram!("hedgerow.execution.duration", labels),
            ),
            runs: Ends::new(
                &name,
                &OF_WORK,
                |labels| counter!("hedgerow.runs", labels),
                |labels| histogram!("hedgerow.run.duration", labels),
            ),
            running: gauge!("hedgerow.runs.running", vec![named(&name)]),
            name,
        }
    }

    /// Counts what seldom happens, by a handle that is looked up then.
    fn count(
        &self,
        metric: &'static str,
        event: &StrategyEvent<'_>,
        label: Option<(&'static str, &'static str)>,
    ) {
        let strategy = Label::new("strategy", event.strategy.to_owned());
        let label = label.map(|(key, value)| Label::new(key, value));
        let labels: Vec<_> = [named(&self.name), strategy].into_iter().chain(label).collect();
        counter!(metric, labels).increment(1);
    }
}

impl Observer for PipelineMetrics {
    fn event(&self, event: &Event) {
        self.hedges.event(event);
    }

    fn wants_all(&self) -> bool {
        self.hedges.wants_all()
    }

    fn alone(&self, end: End, took: Duration) {
        self.hedges.alone(end, took);
    }

    fn strategy(&self, event: &StrategyEvent<'_>) {
        match event.kind {
            Kind::AttemptStarted => self.running.increment(1.0),
            Kind::AttemptEnded { end, ran } => {
                self.running.decrement(1.0);
                self.runs.add(end, ran);
            }
            Kind::Over { end, took } => self.executions.add(end, took),
            Kind::Retrying { .. } => self.count("hedgerow.retries", event, None),
            Kind::GaveUp { reason } => {
                self.count("hedgerow.retries.given_up", event, Some(("reason", reason)));
            }
            Kind::TimedOut { .. } => self.count("hedgerow.timeouts", event, None),
            Kind::Rejected { reason, .. } => {
                self.count("hedgerow.rejections", event, Some(("reason", reason)));
            }
            Kind::Breaker { state, .. } => {
                self.count("hedgerow.breaker", event, Some(("state", state)));
                let number = (0_u8..).zip(STATES).find(|(_, each)| *each == state);
                if let Some((number, _)) = number {
                    let strategy = Label::new("strategy", event.strategy.to_owned());
                    let labels = vec![named(&self.name), strategy];
                    gauge!("hedgerow.breaker.state", labels).set(f64::from(number));
                }
            }
            Kind::FellBack { succeeded } => {
                let result = if succeeded { "succeeded" } else { "failed" };
                self.count("hedgerow.fallbacks", event, Some(("result", result)));
            }
            Kind::Cache { result } => {
                self.count("hedgerow.cache", event, Some(("result", result)));
            }
            Kind::Chaos { kind } => self.count("hedgerow.chaos", event, Some(("kind", kind))),
            _ => {}
        }
    }
}

impl fmt::Debug for PipelineMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineMetrics").field("name", &self.name).finish_non_exhaustive()
    }
}

fn named(pipeline: &SharedString) -> Label {
    Label::new("pipeline", pipeline.clone())
}

/// Units and descriptions, for recorders that show them.
fn describe() {
    describe_counter!("hedgerow.executions", Unit::Count, "executions that are over, by result");
    describe_histogram!("hedgerow.execution.duration", Unit::Seconds, "how long executions took");
    describe_counter!("hedgerow.runs", Unit::Count, "runs of the work that have ended, by result");
    describe_histogram!("hedgerow.run.duration", Unit::Seconds, "how long runs of the work took");
    describe_gauge!("hedgerow.runs.running", Unit::Count, "runs of the work that have not ended");
    describe_counter!("hedgerow.retries", Unit::Count, "further tries");
    describe_counter!("hedgerow.retries.given_up", Unit::Count, "retries that did not start");
    describe_counter!("hedgerow.timeouts", Unit::Count, "limits that passed");
    describe_counter!("hedgerow.rejections", Unit::Count, "refusals to start, by reason");
    describe_counter!("hedgerow.breaker", Unit::Count, "changes of a breaker's state");
    describe_gauge!("hedgerow.breaker.state", "0 closed, 1 half-open, 2 open, 3 isolated");
    describe_counter!("hedgerow.fallbacks", Unit::Count, "outcomes that were replaced");
    describe_counter!("hedgerow.cache", Unit::Count, "questions to a cache, by result");
    describe_counter!("hedgerow.chaos", Unit::Count, "trouble that was made on purpose");
}
