//! What the observer of a pipeline is told: T37, T38, PR-29.

use std::sync::{Arc, Mutex};

use hedgerow::pipeline::{Hedging, Pipeline, RestOfPipeline};
use hedgerow::telemetry::{PipelineMetrics, Traces};
use hedgerow::{
    Event, Hedge, NextAction, NextHedge, Observer, StrategyEvent, StrategyEventKind as Kind,
};
use tokio::time::sleep;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::support::{Scripted, act, err, lock, ms, never, ok};
use crate::telemetry::{Recorded, Traced};

/// Every event of a pipeline, on a line each.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    pub(crate) fn all(&self) -> Vec<String> {
        lock(&self.0).clone()
    }

    /// Those that contain this.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        self.all().into_iter().filter(|line| line.contains(text)).collect()
    }
}

impl Observer for Lines {
    fn event(&self, _: &Event) {}

    fn strategy(&self, event: &StrategyEvent<'_>) {
        let attempt = event.attempt.map_or("-".to_owned(), |number| number.to_string());
        let what = match event.kind {
            Kind::AttemptStarted => "started".to_owned(),
            Kind::AttemptEnded { end, ran } => format!("ended {} {}", end.name(), ran.as_millis()),
            Kind::Over { end, took } => format!("over {} {}", end.name(), took.as_millis()),
            other => format!("{other:?}"),
        };
        lock(&self.0).push(format!("{}[{attempt}] {what}", event.strategy));
    }
}

fn answers(number: u32) -> Scripted {
    let script = [never(), ok(10, "b")];
    Box::pin(act(script.get(number as usize).copied().unwrap_or_else(never)))
}

#[tokio::test(start_paused = true)]
async fn t37_every_run_of_the_work_is_told_with_its_number() {
    let lines = Lines::default();
    let pipeline = Pipeline::builder()
        .observer(lines.observer())
        .hedge(Hedge::after(ms(30)))
        .timeout(ms(1_000))
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(|attempt| answers(attempt.number())).await, Ok("b"));
    let expected = [
        "work[0] started",
        "work[1] started",
        "work[1] ended succeeded 10",
        "work[0] ended cancelled 40",
        "pipeline[0] over succeeded 40",
    ];
    assert_eq!(lines.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn t38_what_runs_instead_is_not_told() {
    let lines = Lines::default();
    let hedging = Hedging::new(Hedge::after(ms(10)).max_hedges(2)).next_action(
        |next: &NextHedge<'_>, rest: RestOfPipeline<'_, &'static str, &'static str>| {
            Ok(NextAction::Run(match next.hedge_number() {
                1 => Box::pin(async {
                    sleep(ms(500)).await;
                    Ok("instead")
                }),
                _ => Box::pin(async { rest.await }),
            }))
        },
    );
    let pipeline = Pipeline::builder().observer(lines.observer()).with(hedging).build().unwrap();
    let work = |attempt: hedgerow::Attempt| {
        act(if attempt.number() == 2 { ok(5, "rest") } else { never() })
    };
    assert_eq!(pipeline.execute(work).await, Ok("rest"));
    let expected = ["work[0] started", "work[2] started"];
    assert_eq!(lines.with("started"), expected);
}

#[tokio::test(start_paused = true)]
async fn pr_29_layers_inside_an_attempt_tell_its_number() {
    let lines = Lines::default();
    let pipeline = Pipeline::builder()
        .observer(lines.observer())
        .timeout(ms(500))
        .named("total")
        .hedge(Hedge::after(ms(30)))
        .timeout(ms(100))
        .named("attempt")
        .build()
        .unwrap();
    let outcome = pipeline.execute(|_| act(never())).await;
    assert!(outcome.is_err());
    let told = lines.with("TimedOut");
    let starts: Vec<_> = told.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["attempt[0]", "attempt[1]"]);
    assert_eq!(lines.with("over"), ["pipeline[0] over timed-out 130"]);
}

#[tokio::test(start_paused = true)]
async fn every_run_that_starts_ends_once_also_if_it_is_dropped_or_panics() {
    let lines = Lines::default();
    let pipeline = Pipeline::builder().observer(lines.observer()).timeout(ms(50)).build().unwrap();
    let mut dropped = Box::pin(pipeline.execute(|_| act(never())).into_future());
    assert!(crate::support::poll_once(dropped.as_mut()).is_pending());
    drop(dropped);
    let panics = |_| act(crate::support::panics(0, "boom"));
    let caught = crate::support::caught(pipeline.execute(panics)).await;
    assert_eq!(caught, Err("boom".to_owned()));
    let failed = pipeline.execute(|_| act(err(5, "x"))).await;
    assert!(failed.is_err());
    let expected = [
        "work[0] started",
        "work[0] ended cancelled 0",
        "pipeline[0] over cancelled 0",
        "work[0] started",
        "work[0] ended panicked 0",
        "pipeline[0] over panicked 0",
        "work[0] started",
        "work[0] ended failed 5",
        "pipeline[0] over failed 5",
    ];
    assert_eq!(lines.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn metrics_count_executions_and_runs() {
    let recorded = Recorded::default();
    let guard = metrics::set_default_local_recorder(&recorded.recorder);
    let pipeline = Pipeline::builder()
        .name("search")
        .observer(Arc::new(PipelineMetrics::new("search")))
        .timeout(ms(100))
        .hedge(Hedge::after(ms(30)))
        .build()
        .unwrap();
    let run = async |work: fn(u32) -> Scripted| {
        drop(pipeline.execute(move |attempt| work(attempt.number())).await);
    };
    run(answers).await;
    run(|_| Box::pin(act(never()))).await;
    run(|_| Box::pin(act(ok(0, "a")))).await;
    drop(guard);
    assert_eq!(recorded.sum("hedgerow.executions", &[("result", "succeeded")]), 2);
    assert_eq!(recorded.sum("hedgerow.executions", &[("result", "timed-out")]), 1);
    assert_eq!(recorded.sum("hedgerow.runs", &[("result", "succeeded")]), 2);
    assert_eq!(recorded.sum("hedgerow.runs", &[("result", "cancelled")]), 3);
    assert_eq!(recorded.sum("hedgerow.timeouts", &[("strategy", "timeout")]), 1);
    assert_eq!(recorded.sum("hedgerow.hedges", &[("policy", "search")]), 2);
    assert_eq!(recorded.gauge("hedgerow.runs.running"), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn traces_tell_strategies() {
    let traced = Traced::default();
    let _guard = tracing::subscriber::set_default(registry().with(traced.clone()));
    let pipeline = Pipeline::builder()
        .name("find")
        .observer(Arc::new(Traces::new("search")))
        .timeout(ms(100))
        .build()
        .unwrap();
    let outcome = pipeline.execute(|_| act(never())).operation("by name").await;
    assert!(outcome.is_err());
    let lines = lock(&traced.0).clone();
    let lines: Vec<_> = lines.iter().map(|line| without_execution(line)).collect();
    let expected = [
        r#"timed out: policy="search" pipeline="find" strategy="timeout" operation="by name" attempt=0 limit=0.1 elapsed=0.1"#,
        r#"execution over: policy="search" pipeline="find" strategy="pipeline" operation="by name" attempt=0 outcome="timed-out" duration=0.1"#,
    ];
    assert_eq!(lines[lines.len() - 2..], expected);
    assert!(lines[0].contains(r#"outcome="cancelled""#), "{}", lines[0]);
}

/// Which execution it is depends on what else runs.
fn without_execution(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.starts_with("execution="));
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn strategies_of_a_target_are_told_through_the_observer_of_the_whole() {
    let lines = Lines::default();
    let pipeline =
        Pipeline::standard_hedging(["eu", "us"]).observer(lines.observer()).build().unwrap();
    let outcome = pipeline.execute(|_| act(never())).await;
    assert!(outcome.is_err());
    let told = lines.with("TimedOut");
    let starts: Vec<_> = told.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["attempt[0]"], "the first call ever has no budget for a hedge");
}
