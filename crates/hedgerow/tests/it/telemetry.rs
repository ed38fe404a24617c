//! Metrics and traces: what is recorded of which call.

use std::fmt::{Debug, Write as _};
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use hedgerow::telemetry::{Metrics, Traces};
use hedgerow::testing::Tokens;
use hedgerow::{Attempt, Gate, Hedge, SpanMode};
use metrics::Key;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tracing::field::{Field, Visit};
use tracing::{Instrument as _, Span, info_span, span};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};

use crate::support::{Act, Answer, Notes, err, lock, ms, never, ok, work};

/// What metrics recorded, up to when it is first looked at (looking resets the recorder).
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) recorder: DebuggingRecorder,
    seen: OnceLock<Vec<(Key, DebugValue)>>,
}

impl Recorded {
    pub(crate) fn metrics(&self, name: &'static str, hedge: &Hedge) -> Arc<Metrics> {
        let new = || Metrics::new(name, hedge);
        Arc::new(metrics::with_local_recorder(&self.recorder, new))
    }

    fn seen(&self) -> &[(Key, DebugValue)] {
        self.seen.get_or_init(|| {
            let all = self.recorder.snapshotter().snapshot().into_vec().into_iter();
            all.map(|(key, _, _, value)| (key.into_parts().1, value)).collect()
        })
    }

    /// The values of a metric whose labels are among others these.
    fn values<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&str, &str)],
    ) -> impl Iterator<Item = &'a DebugValue> {
        let has = |key: &Key, (name, value): &(&str, &str)| {
            key.labels().any(|label| label.key() == *name && label.value() == *value)
        };
        let named = self.seen().iter().filter(move |(key, _)| key.name() == name);
        named
            .filter(move |(key, _)| labels.iter().all(|label| has(key, label)))
            .map(|(_, value)| value)
    }

    /// The sum of a counter over all labels but these.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let count = |value: &DebugValue| match value {
            DebugValue::Counter(count) => *count,
            other => panic!("{name} is no counter: {other:?}"),
        };
        assert!(self.values(name, labels).next().is_some(), "nobody counts {name} {labels:?}");
        self.values(name, labels).map(count).sum()
    }

    /// A gauge; `None` if it was never set.
    pub(crate) fn gauge(&self, name: &str) -> Option<f64> {
        match self.values(name, &[]).next()? {
            DebugValue::Gauge(value) => Some(value.into_inner()),
            other => panic!("{name} is no gauge: {other:?}"),
        }
    }

    /// What a histogram was given since it was last looked at.
    fn samples(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let mut samples = Vec::new();
        for value in self.values(name, labels) {
            match value {
                DebugValue::Histogram(recorded) => {
                    samples.extend(recorded.iter().map(|sample| sample.into_inner()));
                }
                other => panic!("{name} is no histogram: {other:?}"),
            }
        }
        samples
    }
}

async fn answer<const N: usize>(hedge: &Hedge, script: [Act; N]) -> Answer {
    hedge.call(work(&Notes::new(), script)).await
}

#[tokio::test(start_paused = true)]
async fn h34_when_everything_fails_each_attempt_is_counted_once() {
    let recorded = Recorded::default();
    let hedge = Hedge::after(ms(50)).max_hedges(3);
    let hedge = hedge.clone().observer(recorded.metrics("search", &hedge));
    let script = [err(200, "p"), err(10, "q"), err(10, "r"), err(10, "s")];
    assert_eq!(answer(&hedge, script).await, Err("p"));
    assert_eq!(recorded.sum("hedgerow.hedges", &[("policy", "search")]), 3);
    assert_eq!(recorded.sum("hedgerow.hedges", &[("origin", "delay")]), 1);
    assert_eq!(recorded.sum("hedgerow.attempts", &[("outcome", "failed")]), 4);
    assert_eq!(recorded.sum("hedgerow.attempts", &[("role", "primary")]), 1);
    assert_eq!(recorded.sum("hedgerow.calls", &[("result", "exhausted")]), 1);
    assert_eq!(recorded.sum("hedgerow.calls", &[]), 1);
    assert_eq!(recorded.samples("hedgerow.call.duration", &[("result", "exhausted")]), [0.2]);
    let hedges = [("role", "hedge"), ("outcome", "failed")];
    assert_eq!(recorded.samples("hedgerow.attempt.duration", &hedges), [0.01, 0.01, 0.01]);
}

#[tokio::test(start_paused = true)]
async fn h35_and_pr_32_a_cancelled_loser_is_no_failure() {
    let recorded = Recorded::default();
    let hedge = Hedge::after(ms(150));
    let hedge = hedge.clone().observer(recorded.metrics("search", &hedge));
    assert_eq!(answer(&hedge, [ok(400, "a"), ok(100, "b")]).await, Ok("b"));
    let cancelled = [("role", "primary"), ("outcome", "cancelled")];
    assert_eq!(recorded.sum("hedgerow.attempts", &cancelled), 1);
    assert_eq!(recorded.samples("hedgerow.attempt.duration", &cancelled), [0.25]);
    assert_eq!(recorded.sum("hedgerow.attempts", &[("outcome", "failed")]), 0);
    assert_eq!(recorded.sum("hedgerow.attempts", &[("outcome", "won")]), 1);
    assert_eq!(recorded.sum("hedgerow.hedges.won", &[]), 1);
}

#[tokio::test(start_paused = true)]
async fn pr_32_losers_do_not_thin_out_the_error_rate() {
    let recorded = Recorded::default();
    let hedge = Hedge::after(ms(10));
    let [one, two] =
        ["one", "two"].map(|name| hedge.clone().observer(recorded.metrics(name, &hedge)));
    // Upstream one fails half of what it finishes; every call is hedged, half of its attempts lose.
    for round in 0..1_000 {
        let script = match round % 4 {
            0 => [ok(20, "a"), never()],
            1 => [err(20, "503"), ok(20, "b")],
            _ => [never(), ok(20, "b")],
        };
        assert!(answer(&one, script).await.is_ok());
        assert!(answer(&two, [never(), ok(20, "b")]).await.is_ok());
    }
    let count = |policy, outcome| {
        let labels = [("policy", policy), ("role", "primary"), ("outcome", outcome)];
        recorded.sum("hedgerow.attempts", &labels)
    };
    assert_eq!((count("one", "failed"), count("one", "won")), (250, 250), "half of the finished");
    assert_eq!(count("one", "cancelled"), 500, "in a counter of their own");
    assert_eq!((count("two", "failed"), count("two", "cancelled")), (0, 1_000));
}

#[tokio::test(start_paused = true)]
async fn pr_31_exactly_one_event_per_started_hedge() {
    let none = Arc::new(Tokens::new(0));
    let cases: [(Hedge, [Act; 2], u64); 3] = [
        (Hedge::after(ms(50)), [err(10, "a"), err(10, "b")], 1),
        (Hedge::after(ms(50)), [ok(5, "a"), never()], 0),
        (Hedge::after(ms(50)).budget(none), [ok(90, "a"), never()], 0),
    ];
    for (hedge, script, hedges) in cases {
        let recorded = Recorded::default();
        let hedge = hedge.clone().observer(recorded.metrics("search", &hedge));
        let _answer = answer(&hedge, script).await;
        assert_eq!(recorded.sum("hedgerow.hedges", &[]), hedges);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_by_gate_and_gauges_follow_the_policy() {
    let recorded = Recorded::default();
    let hedge = Hedge::after(ms(50)).max_extra_load(0.5);
    let hedge = hedge.clone().observer(recorded.metrics("search", &hedge));
    assert_eq!(answer(&hedge, [ok(90, "a"), never()]).await, Ok("a"));
    assert_eq!(recorded.sum("hedgerow.hedges.denied", &[("gate", "budget")]), 1);
    assert_eq!(recorded.sum("hedgerow.hedges.denied", &[]), 1);
    assert_eq!(recorded.gauge("hedgerow.budget.available"), Some(0.5));
    assert_eq!(Gate::ALL.len(), recorded.values("hedgerow.hedges.denied", &[]).count());
}

#[tokio::test(start_paused = true)]
async fn the_learned_delay_is_a_gauge() {
    let recorded = Recorded::default();
    let hedge = Hedge::adaptive();
    let hedge = hedge.clone().observer(recorded.metrics("search", &hedge));
    for call in 0..2_000 {
        let slow = if call % 50 == 0 { 100 } else { 10 };
        assert!(answer(&hedge, [ok(slow, "a"), ok(10, "b")]).await.is_ok());
    }
    let plan = hedge.explain().unwrap().plan;
    let seconds = recorded.gauge("hedgerow.delay").unwrap();
    assert!((0.009..0.2).contains(&seconds), "{seconds}");
    assert!((seconds / plan.delay.unwrap().as_secs_f64() - 1.0).abs() < 0.5, "{plan:?}");
    assert!(recorded.gauge("hedgerow.probability").unwrap() > 0.0);
}

/// What was traced: a line for each event, with its fields, and for each span that opens.
#[derive(Clone, Default)]
pub(crate) struct Traced(pub(crate) Arc<Mutex<Vec<String>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}:")),
            // Which call it is depends on what else runs.
            "call" => {}
            name => write!(self.0, " {name}={value:?}").unwrap(),
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Traced {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = String::new();
        event.record(&mut Fields(&mut line));
        lock(&self.0).push(line);
    }

    fn on_new_span(&self, new: &span::Attributes<'_>, id: &span::Id, scope: Context<'_, S>) {
        let parent = scope.span(id).and_then(|span| Some(span.parent()?.name()));
        let parent = parent.unwrap_or("nothing");
        lock(&self.0).push(format!("{} inside {parent}", new.metadata().name()));
    }
}

#[tokio::test(start_paused = true)]
async fn h34_and_h35_each_attempt_is_traced() {
    let traced = Traced::default();
    let _guard = tracing::subscriber::set_default(registry().with(traced.clone()));
    let hedge = Hedge::after(ms(150)).max_hedges(2).observer(Arc::new(Traces::new("search")));
    assert_eq!(answer(&hedge, [ok(400, "a"), err(50, "q"), ok(100, "b")]).await, Ok("b"));
    let expected = [
        r#"hedge started: policy="search" attempt=1 origin="delay" at=0.15"#,
        r#"attempt ended: policy="search" attempt=1 outcome="failed" duration=0.05 handled=true error.type="failed" at=0.2"#,
        r#"hedge started: policy="search" attempt=2 origin="failure" at=0.2"#,
        r#"attempt ended: policy="search" attempt=2 outcome="won" duration=0.1 handled=false at=0.3"#,
        r#"attempt ended: policy="search" attempt=0 outcome="cancelled" duration=0.3 handled=false at=0.3"#,
    ];
    assert_eq!(*lock(&traced.0), expected);
}

#[tokio::test(start_paused = true)]
async fn refusals_and_exhausted_calls_are_traced() {
    let traced = Traced::default();
    let _guard = tracing::subscriber::set_default(registry().with(traced.clone()));
    let hedge = Hedge::after(ms(50)).budget(Arc::new(Tokens::new(0)));
    let hedge = hedge.observer(Arc::new(Traces::new("search")));
    assert_eq!(answer(&hedge, [err(90, "a"), never()]).await, Err("a"));
    let lines = lock(&traced.0).clone();
    assert_eq!(lines[0], r#"hedge denied: policy="search" attempt=1 gate="budget" at=0.05"#);
    assert_eq!(lines[2], r#"exhausted: policy="search" attempt=0 at=0.09"#);
}

/// Work that notes in which span each attempt is polled. The primary hangs.
fn whereabouts(traced: &Traced) -> impl FnMut(Attempt) -> Polled + Send + use<> {
    let traced = traced.clone();
    move |attempt| {
        let (traced, number) = (traced.clone(), attempt.number());
        Box::pin(async move {
            let note = || {
                let name = Span::current().metadata().map_or("nothing", |metadata| metadata.name());
                lock(&traced.0).push(format!("attempt {number} inside {name}"));
            };
            note();
            tokio::time::sleep(ms(if number == 0 { 400 } else { 100 })).await;
            note();
            Ok("b")
        })
    }
}

type Polled = std::pin::Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What is traced of a call of this policy inside the span `caller`, or outside of any.
async fn traced(hedge: Hedge, inside: bool, spawned: bool) -> Vec<String> {
    let traced = Traced::default();
    let _guard = tracing::subscriber::set_default(registry().with(traced.clone()));
    let work = whereabouts(&traced);
    let call = async move {
        if spawned { hedge.call(work).spawned().await } else { hedge.call(work).await }
    };
    let span = if inside { info_span!("caller") } else { Span::none() };
    assert_eq!(call.instrument(span).await, Ok("b"));
    lock(&traced.0).clone()
}

#[tokio::test(start_paused = true)]
async fn h32_k19_one_span_for_the_call_inside_the_callers() {
    for spawned in [false, true] {
        let lines = traced(Hedge::after(ms(50)), true, spawned).await;
        let expected = [
            "caller inside nothing",
            "hedged inside caller",
            "attempt 0 inside hedged",
            "attempt 1 inside hedged",
            "attempt 1 inside hedged",
        ];
        assert_eq!(lines, expected, "spawned: {spawned}");
    }
}

#[tokio::test(start_paused = true)]
async fn h33_k20_without_a_span_around_it_there_is_none() {
    for spawned in [false, true] {
        let lines = traced(Hedge::after(ms(50)), false, spawned).await;
        let nothing = ["attempt 0", "attempt 1", "attempt 1"];
        assert_eq!(lines, nothing.map(|attempt| format!("{attempt} inside nothing")));
    }
}

#[tokio::test(start_paused = true)]
async fn h32_k19_a_policy_may_always_or_never_have_a_span() {
    let always = traced(Hedge::after(ms(50)).span(SpanMode::Always), false, false).await;
    assert_eq!(always[..2], ["hedged inside nothing", "attempt 0 inside hedged"]);
    let never = traced(Hedge::after(ms(50)).span(SpanMode::Never), true, false).await;
    assert_eq!(never[..2], ["caller inside nothing", "attempt 0 inside caller"]);
    let never = traced(Hedge::after(ms(50)).span(SpanMode::Never), true, true).await;
    assert_eq!(never[1], "attempt 0 inside nothing", "a task has no caller's span");
}
