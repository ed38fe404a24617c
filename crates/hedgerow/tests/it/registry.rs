//! Named pipelines from one configuration, changed while they are in use.

use std::sync::{Arc, Mutex};

use hedgerow::Attempt;
use hedgerow::pipeline::{Builder, Fallback, Pipeline, PipelineError, Retry};
use hedgerow::registry::{PipelinesConfig, Registry};

use crate::support::{Notes, act, err, lock, ms, never, ok};

pub(crate) fn read(text: &str) -> PipelinesConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

const SEARCH: &str = r#"
[search]
strategies = ["total", "hedge", "attempt"]
total = { kind = "timeout", limit = "2s" }
hedge = { delay = "150ms", max_hedges = 2 }
attempt = { kind = "timeout", limit = "100ms" }

[plain]
strategies = ["timeout"]
timeout = "50ms"
"#;

#[tokio::test(start_paused = true)]
async fn pipelines_come_from_a_file_by_their_names() {
    let registry = Registry::new(&read(SEARCH));
    let names: Vec<_> = registry.names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["plain", "search"]);
    assert!(registry.get("other").is_none());
    let search = registry.get("search").unwrap();
    assert_eq!(
        search.to_string(),
        r#"search: timeout "total" (2s) > hedge (150ms, at most 2) > timeout "attempt" (100ms) > work"#
    );
    assert_eq!(search.max_attempts(), Some(3));
    let notes = Notes::new();
    let work =
        |attempt: Attempt| act([never(), err(5, "x"), ok(5, "c")][attempt.number() as usize]);
    assert_eq!(search.execute(work).await, Ok("c"));
    assert_eq!(notes.at(), 110, "the first attempt timed out, its hedge failed");
    let late = registry.get("plain").unwrap().execute(|_| act(never())).await;
    assert!(matches!(late, Err(PipelineError::TimedOut(_))));
}

#[tokio::test(start_paused = true)]
async fn pr_95_a_change_is_for_later_executions_and_a_bad_one_for_none() {
    let registry = Registry::new(&read(SEARCH));
    let plain = registry.get("plain").unwrap();
    let under_way = plain.execute(|_| act(never()));
    let off = read("[plain]\nstrategies = []");
    registry.set(&off);
    assert_eq!(registry.get("plain").unwrap().execute(|_| act(ok(5_000, "a"))).await, Ok("a"));
    assert!(registry.get("search").is_none(), "it is not named any more");
    let notes = Notes::new();
    assert!(under_way.await.is_err());
    assert_eq!(notes.at(), 50, "what was made before ends as it began");
    // A bad file is refused when it is read: it never gets to the registry.
    let bad = toml::from_str::<PipelinesConfig>("[plain]\nstrategies = [\"hdge\"]");
    assert!(bad.unwrap_err().to_string().contains("did you mean hedge?"));
    assert_eq!(registry.get("plain").unwrap().to_string(), "plain: work");
}

#[tokio::test(start_paused = true)]
async fn pr_95_what_a_hedge_learned_and_the_budget_go_on() {
    let learned = r#"
        [search]
        strategies = ["timeout", "hedge"]
        timeout = "2s"
        max_extra_load = "50%"
        hedge = { delay = "10ms" }
    "#;
    let registry = Registry::new(&read(learned));
    let slow = |attempt: Attempt| act(if attempt.number() == 0 { ok(50, "a") } else { ok(5, "b") });
    let run = async || registry.get("search").unwrap().execute(slow).await;
    assert_eq!(run().await, Ok("a"), "nothing is saved up yet");
    assert_eq!(run().await, Ok("a"));
    registry.set(&read(&learned.replace("2s", "3s")));
    assert_eq!(run().await, Ok("b"), "two calls have paid for one hedge");
    assert_eq!(run().await, Ok("a"));
    registry.set(&read(&learned.replace("50%", "60%")));
    assert_eq!(run().await, Ok("a"), "another ratio begins anew");
}

#[test]
fn it_is_written_as_it_was_read() {
    let config = read(SEARCH);
    let text = toml::to_string(&config).unwrap();
    assert_eq!(read(&text), config);
}

#[tokio::test(start_paused = true)]
async fn a_registry_gives_its_pipelines_observers_and_clocks() {
    let lines = crate::p_events::Lines::default();
    let observer = lines.observer();
    let setup = move |_: &str, builder: Builder<()>| builder.observer(observer.clone());
    let registry = Registry::with(&read(SEARCH), setup);
    registry.set(&read(SEARCH));
    let late = registry.get("plain").unwrap().execute(|_| act(never())).await;
    assert!(late.is_err());
    let told = lines.with("over");
    assert_eq!(told, ["pipeline[0] over timed-out 50"], "once, also after a change");
    let hedged = registry.get("search").unwrap();
    assert!(hedged.execute(|_| act(ok(1, "a"))).await.is_ok());
}

const EVERY_KIND: &str = r#"
[all]
strategies = ["concurrency-limiter", "rate-limiter", "total", "retry", "hedge", "circuit-breaker", "chaos"]
max_extra_load = "10%"
concurrency-limiter = { limit = 100, max_queue = 10, max_wait = "50ms" }
rate-limiter = { permits = 500, period = "1s", burst = 600, max_wait = "20ms" }
total = { kind = "timeout", limit = "2s" }
retry = { backoff = "exponential", max_retries = 2, base = "50ms", factor = 3, max_delay = "1s", jitter = 0.2 }
hedge = { delay = "adaptive" }
circuit-breaker = { failure_ratio = "50%", min_throughput = 20, window = "10s", consecutive = 7, open_for = "1s", probes = 2, probe_lease = "3s" }
chaos = { latency = "1s", rate = "1%", seed = 7, enabled = false }
"#;

#[tokio::test(start_paused = true)]
async fn every_kind_of_strategy_can_be_configured() {
    let registry = Registry::new(&read(EVERY_KIND));
    let pipeline = registry.get("all").unwrap();
    let lines: Vec<_> = pipeline.strategies().iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert_eq!(lines[3], "retry (2 times, after 50ms, times 3, jitter 0.2, within a budget)");
    assert_eq!(lines[4], "hedge (learned delay, within a budget)");
    assert_eq!(lines[5], "circuit-breaker (50 % of at least 20 in 10s or 7 in a row, open for 1s)");
    assert_eq!(pipeline.max_attempts(), Some(6));
    assert_eq!(pipeline.execute(|_| act(ok(1, "a"))).await, Ok("a"));
    let bare = r#"
        [all]
        strategies = ["retry", "hedge", "circuit-breaker"]
    "#;
    assert_eq!(read(bare).get("all").unwrap().pipeline("all").strategies().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pr_95_a_breaker_goes_on_if_its_settings_stay() {
    let text = r#"
        [search]
        strategies = ["timeout", "circuit-breaker"]
        timeout = "1s"
        circuit-breaker = { consecutive = 1, open_for = "60s" }
    "#;
    let registry = Registry::new(&read(text));
    let run = async |answer| registry.get("search").unwrap().execute(move |_| act(answer)).await;
    assert!(run(err(0, "x")).await.is_err());
    registry.set(&read(&text.replace("1s", "3s")));
    assert!(run(ok(0, "a")).await.unwrap_err().rejected().is_some(), "it is still open");
    registry.set(&read(&text.replace("60s", "50s")));
    assert_eq!(run(ok(0, "a")).await, Ok("a"), "set otherwise it begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_live_pipeline_is_what_is_in_force_and_goes_on_when_its_name_is_gone() {
    let limit =
        |limit| read(&format!("[plain]\nstrategies = [\"timeout\"]\ntimeout = \"{limit}ms\""));
    let registry = Registry::new(&limit(50));
    assert!(registry.live("other").is_none());
    let pipeline = Pipeline::builder().with(registry.live("plain").unwrap()).build().unwrap();
    let run = async || {
        let notes = Notes::new();
        assert!(pipeline.execute(|_| act(never())).await.unwrap_err().timed_out().is_some());
        notes.at()
    };
    assert_eq!(run().await, 50);
    registry.set(&limit(20));
    assert_eq!(run().await, 20);
    registry.set(&read("[other]\nstrategies = []"));
    assert_eq!(run().await, 20, "as it was last");
    registry.set(&limit(30));
    assert_eq!(run().await, 30);
}

#[tokio::test(start_paused = true)]
async fn a_live_pipeline_changes_for_runs_that_begin_later() {
    let registry = Registry::new(&read(SEARCH));
    let pipeline = Pipeline::builder()
        .retry(Retry::immediately().max_retries(1))
        .with(registry.live("plain").unwrap())
        .build()
        .unwrap();
    let notes = Notes::new();
    let work = |attempt: Attempt| {
        if attempt.number() == 0 {
            registry.set(&read("[plain]\nstrategies = [\"timeout\"]\ntimeout = \"5ms\""));
        }
        act(never())
    };
    assert!(pipeline.execute(work).await.is_err());
    assert_eq!(notes.at(), 55, "the first try ends as it began");
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_live_pipeline_are_numbered_with_those_around_it() {
    let registry = Registry::new(&read(SEARCH));
    let pipeline = Pipeline::builder()
        .retry(Retry::immediately().max_retries(1))
        .with(registry.live("search").unwrap())
        .build()
        .unwrap();
    assert_eq!(pipeline.max_attempts(), Some(6));
    let inside = registry.get("search").unwrap();
    assert_eq!(
        pipeline.to_string(),
        format!("pipeline: retry (once, at once) > pipeline ({inside}) > work")
    );
    let seen = Mutex::new(Vec::new());
    let work = |attempt: Attempt| {
        lock(&seen).push((attempt.number(), attempt.hedge_number()));
        act(err(1, "x"))
    };
    assert!(pipeline.execute(work).await.is_err());
    assert_eq!(*lock(&seen), [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]);
    let tight = Pipeline::builder().timeout(ms(100));
    let tight = tight.with(registry.live("search").unwrap()).build().unwrap();
    assert!(tight.warnings()[0].contains("150ms"), "{:?}", tight.warnings());
}

#[tokio::test(start_paused = true)]
async fn executions_around_a_live_pipeline_can_be_spawned() {
    let lines = crate::p_events::Lines::default();
    let observer = lines.observer();
    let setup = move |_: &str, builder: Builder<()>| builder.observer(observer.clone());
    let registry = Registry::with(&read(SEARCH), setup);
    let pipeline = Pipeline::builder()
        .fallback(Fallback::value("instead"))
        .with(registry.live("plain").unwrap())
        .build()
        .unwrap();
    let pipeline = Arc::new(pipeline.boxed::<&str, &str>());
    let runs = [never(), ok(5, "a")].map(|does| {
        let pipeline = Arc::clone(&pipeline);
        tokio::spawn(async move { pipeline.execute(|_| act(does)).await })
    });
    let [late, fine] = runs;
    assert_eq!((late.await.unwrap(), fine.await.unwrap()), (Ok("instead"), Ok("a")));
    assert_eq!(
        lines.with("TimedOut").len(),
        1,
        "told to the registry's observer: {:?}",
        lines.all()
    );
}
