//! Pipelines as they are put together: order, names, mistakes, warnings, pipelines in pipelines.

use std::future::{IntoFuture, ready};
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use hedgerow::pipeline::{
    Builder, Classify, Context, CustomStrategy, Hedging, Next, Outcome, PerTarget, Pipeline,
    PipelineError, PipelineResult, Retry, Timeout,
};
use hedgerow::{Attempt, Hedge};

use crate::p_told::script;
use crate::support::{Notes, act, err, lock, ms, never, ok};

fn hedge(delay: u64, hedges: u32) -> Hedge {
    Hedge::after(ms(delay)).max_hedges(hedges)
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_in_a_pipeline_shares_numbers_and_keeps_its_name() {
    let inner = Pipeline::builder().name("inner").timeout(ms(40)).build().unwrap();
    let outer = Pipeline::builder().hedge(hedge(10, 1)).pipeline(inner).build().unwrap();
    let notes = Notes::new();
    let outcome = outer.execute(script(&notes, [never(), ok(10, "b")])).await;
    assert_eq!(outcome, Ok("b"));
    assert_eq!(
        outer.to_string(),
        "pipeline: hedge (10ms) > pipeline (inner: timeout (40ms) > work) > work"
    );
    assert_eq!(notes.lines(), ["A0 starts @0", "A1 starts @10", "A1 ends @20", "A0 dropped @20"]);
}

#[tokio::test(start_paused = true)]
async fn a_boxed_pipeline_does_the_same() {
    let pipeline = Pipeline::builder().timeout(ms(120)).hedge(hedge(50, 2)).build().unwrap();
    let boxed = pipeline.boxed::<&'static str, &'static str>();
    assert_eq!(boxed.to_string(), pipeline.to_string());
    let notes = Notes::new();
    let outcome = boxed.execute(script(&notes, [never(), ok(10, "b")])).await;
    assert_eq!((outcome, notes.at()), (Ok("b"), 60));
    let handled = boxed
        .execute(script(&notes, [ok(5, "bad"), ok(5, "good")]))
        .handle(|outcome| *outcome != Ok("good"))
        .await;
    assert_eq!(handled, Ok("good"));
}

#[tokio::test(start_paused = true)]
async fn the_standard_pipelines_are_what_they_say() {
    let standard = Pipeline::standard().name("search").build().unwrap();
    assert_eq!(
        standard.to_string(),
        r#"search: concurrency-limiter (1000 at a time) > timeout "total" (30s) > retry (3 times, after 2s, times 2, jitter 0.5) > circuit-breaker (10 % of at least 100 in 30s, open for 5s) > timeout "attempt" (10s) > work"#
    );
    let hedging = Pipeline::standard_hedging(["eu", "us"]).build().unwrap();
    assert_eq!(
        hedging.to_string(),
        r#"pipeline: timeout "total" (30s) > hedge (learned delay, within a budget) > retry "pass-over" (once, at once) > per-target (eu, us) > work"#
    );
    let seen = Mutex::new(Vec::new());
    let work = |attempt: Attempt| {
        lock(&seen).push(attempt.target().unwrap());
        act(ok(1, "a"))
    };
    for _ in 0..100 {
        assert_eq!(hedging.execute(work).await, Ok("a"));
    }
    let first = lock(&seen).iter().filter(|target| **target == 0).count();
    assert!((1..100).contains(&first), "each target is begun at: {first}");
    let nowhere = Pipeline::standard_hedging(Vec::<&str>::new()).build().unwrap_err();
    assert_eq!(nowhere.mistakes()[0].option(), "per-target.targets");
}

#[test]
fn names_are_told_apart() {
    let pipeline = Pipeline::builder()
        .timeout(ms(1))
        .timeout(ms(2))
        .named("timeout-2")
        .timeout(ms(3))
        .timeout(ms(4))
        .named("")
        .build()
        .unwrap();
    let names: Vec<_> = pipeline.strategies().iter().map(|info| &*info.name).collect();
    assert_eq!(names, ["timeout", "timeout-2", "timeout-3", ""]);
}

#[test]
fn a_hedge_that_waits_for_its_losers_inside_a_timeout_is_warned_of() {
    let build = |losers| {
        let hedge = Hedge::default().losers(losers);
        Pipeline::builder().timeout(ms(60_000)).hedge(hedge).build().unwrap()
    };
    let waits = build(hedgerow::Losers::Join { grace: None });
    assert!(waits.warnings()[0].starts_with("hedge waits for its losers"), "{waits:?}");
    assert!(build(hedgerow::Losers::Join { grace: Some(ms(5)) }).warnings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_nested_pipeline_cannot_raise_need_not_be_matched() {
    let inner = Pipeline::builder().hedge(hedge(10, 1)).build().unwrap();
    let outer = Pipeline::builder().timeout(ms(50)).pipeline(inner).build().unwrap();
    match outer.execute(script(&Notes::new(), [never()])).settle().await {
        Outcome::Success(value) | Outcome::Failed(value) => panic!("{value}"),
        Outcome::TimedOut(timed_out) => assert_eq!(timed_out.elapsed(), ms(50)),
    }
}

#[tokio::test(start_paused = true)]
async fn t47_the_first_added_is_outermost() {
    let outside = Pipeline::builder().timeout(ms(30)).hedge(hedge(10, 1)).build().unwrap();
    let inside = Pipeline::builder().hedge(hedge(10, 1)).timeout(ms(30)).build().unwrap();
    let scripted = [never(), ok(25, "b")];
    let outcome = outside.execute(script(&Notes::new(), scripted)).await;
    assert!(outcome.unwrap_err().timed_out().is_some(), "30 ms for both");
    assert_eq!(inside.execute(script(&Notes::new(), scripted)).await, Ok("b"), "for each");
}

#[test]
fn t48_all_mistakes_come_at_once_when_it_is_built() {
    let error = Pipeline::builder()
        .timeout(Duration::ZERO)
        .named("total")
        .with(PerTarget::new(Vec::<(&str, Pipeline<hedgerow::pipeline::End>)>::new()))
        .hedge(Hedge::abandoning())
        .build()
        .unwrap_err();
    let options: Vec<_> = error.mistakes().iter().map(hedgerow::InvalidOption::option).collect();
    assert_eq!(options, ["total.limit", "per-target.targets", "hedge.losers"]);
    assert!(error.to_string().starts_with("total.limit = 0s: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn t50_a_shortcut_is_the_same_as_adding_the_strategy() {
    let short = Pipeline::builder().timeout(ms(10)).hedge(hedge(5, 1)).build().unwrap();
    let long = Pipeline::builder()
        .with(Timeout::after(ms(10)))
        .with(Hedging::new(hedge(5, 1)))
        .build()
        .unwrap();
    assert_eq!(short.strategies(), long.strategies());
    // The very same type.
    let _both = [short, long];
}

#[test]
fn a34_a_hedge_that_no_timeout_lets_start_is_warned_of() {
    let build = |limit, delay| {
        Pipeline::builder().timeout(ms(limit)).hedge(hedge(delay, 1)).build().unwrap()
    };
    assert_eq!(
        build(100, 100).warnings(),
        ["hedge never starts a hedge by its delay of 100ms: timeout gives up after 100ms, and is \
         around it"]
    );
    assert!(build(101, 100).warnings().is_empty());
    let inside = Pipeline::builder().hedge(hedge(100, 1)).timeout(ms(10)).build().unwrap();
    assert!(inside.warnings().is_empty(), "the limit of an attempt is another matter");
}

#[tokio::test(start_paused = true)]
async fn hedges_go_to_other_targets() {
    let target = |limit| Pipeline::builder().timeout(ms(limit)).build().unwrap();
    let targets = PerTarget::new([("eu", target(100)), ("us", target(200))]);
    let pipeline = Pipeline::builder().hedge(hedge(10, 2)).with(targets).build().unwrap();
    let seen = Mutex::new(Vec::new());
    let work = |attempt: Attempt| {
        lock(&seen).push(attempt.target().unwrap());
        async move { if attempt.number() < 2 { never_answers().await } else { Ok("third") } }
    };
    assert_eq!(pipeline.execute(work).await, Ok("third"));
    assert_eq!(*lock(&seen), [0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_pipeline_only_runs_the_work() {
    let pipeline = Pipeline::builder().build().unwrap();
    let notes = Notes::new();
    assert_eq!(pipeline.execute(script(&notes, [ok(10, "a")])).await, Ok("a"));
    assert_eq!(pipeline.max_attempts(), Some(1));
    assert_eq!(pipeline.to_string(), "pipeline: work");
    match pipeline.execute(script(&notes, [err(10, "x")])).settle().await {
        Outcome::Success(value) => panic!("{value}"),
        Outcome::Failed(error) => assert_eq!(error, "x"),
    }
}

#[test]
fn made_names_leave_given_ones_alone() {
    let names = |builder: Builder<_>| {
        let pipeline = builder.timeout(ms(2)).timeout(ms(3)).named("x").timeout(ms(4)).build();
        let pipeline = pipeline.unwrap();
        pipeline.strategies().iter().map(|info| info.name.to_string()).collect::<Vec<_>>()
    };
    let first = || Pipeline::builder().timeout(ms(1));
    assert_eq!(names(first()), ["timeout", "timeout-2", "x", "timeout-3"]);
    assert_eq!(names(first().named("timeout-2")), ["timeout-2", "timeout", "x", "timeout-3"]);
    assert_eq!(names(first().named("timeout")), ["timeout", "timeout-2", "x", "timeout-3"]);
    assert_eq!(names(first().named("x")), ["x", "timeout", "x-2", "timeout-2"]);
    let last = Pipeline::builder().timeout(ms(1)).timeout(ms(2)).timeout(ms(3)).named("timeout-2");
    let last = last.build().unwrap();
    let last: Vec<_> = last.strategies().iter().map(|info| &*info.name).collect();
    assert_eq!(last, ["timeout", "timeout-3", "timeout-2"]);
}

async fn never_answers() -> Result<&'static str, &'static str> {
    std::future::pending().await
}

/// Each strategy more doubled the time that the compiler took, and more: with these it would not end.
#[tokio::test(start_paused = true)]
async fn long_pipelines_compile() {
    let pipeline = Pipeline::builder()
        .timeout(ms(900))
        .retry(Retry::immediately())
        .hedge(hedge(10, 1))
        .timeout(ms(800))
        .retry(Retry::immediately())
        .hedge(hedge(20, 1))
        .timeout(ms(700))
        .retry(Retry::immediately())
        .timeout(ms(600))
        .retry(Retry::immediately())
        .timeout(ms(500))
        .retry(Retry::immediately())
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(script(&Notes::new(), [ok(5, "a")])).await, Ok("a"));
    assert_eq!(pipeline.max_attempts(), Some(4 * 2 * 4 * 2 * 4 * 4 * 4));
}

/// Once more, whatever comes of it; and it says that it was cancelled.
#[derive(Debug)]
struct Cancelling;

impl<'p, N: Next + 'p> CustomStrategy<N> for &'p Cancelling {
    type Run = Pin<Box<dyn Future<Output = PipelineResult<N::Value, N::Error>> + 'p>>;

    fn run(self, next: N, cx: Context) -> Self::Run {
        Box::pin(async move {
            let _ = next.run(&cx).await;
            let _ = next.run_once(&cx.next_try()).await;
            Err(PipelineError::Cancelled)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_knows_how_often_a_strategy_of_ones_own_runs_the_work() {
    let pipeline = Pipeline::builder().strategy("cancelling", Cancelling).build().unwrap();
    assert_eq!(pipeline.max_attempts(), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_is_not_hedged_whatever_a_predicate_says() {
    let hedging = Hedging::new(hedge(10, 2));
    let hedging =
        hedging.handle(|outcome: &PipelineResult<&'static str, &'static str>| outcome.is_err());
    let builder = Pipeline::builder().with(hedging).strategy("cancelling", Cancelling);
    let pipeline = builder.build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [ok(0, "a")])).await;
    assert_eq!(outcome, Err(PipelineError::Cancelled));
    assert_eq!(notes.count("A"), 4, "two attempts start and end: {:?}", notes.lines());
}

#[tokio::test(start_paused = true)]
async fn values_that_are_failures_leave_the_other_outcomes_what_they_are() {
    let pipeline = Pipeline::builder().retry(Retry::immediately().max_retries(1)).build().unwrap();
    let run = async |acts: [crate::support::Act; 2]| {
        pipeline.execute(script(&Notes::new(), acts)).handle_values(|value| *value == "bad").await
    };
    assert_eq!(run([ok(0, "bad"), ok(0, "good")]).await, Ok("good"));
    assert_eq!(run([err(0, "x"), ok(0, "good")]).await, Ok("good"), "errors are still failures");
    let limiter = hedgerow::pipeline::ConcurrencyLimiter::new(1);
    let builder = Pipeline::builder().retry(Retry::immediately()).concurrency_limiter(limiter);
    let full = builder.build().unwrap();
    let mut first = Box::pin(full.execute(|_| act(never())).into_future());
    assert!(crate::support::poll_once(first.as_mut()).is_pending());
    let refused = full.execute(|_| ready(Ok::<_, &str>("good"))).handle_values(|_| true).await;
    assert!(refused.unwrap_err().rejected().is_some(), "rejections are still none");
}

/// Repeats nothing.
#[derive(Clone)]
struct Nothing;

impl<T, E> Classify<T, E> for Nothing {
    fn handle(&self, _: &PipelineResult<T, E>) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn of_what_is_said_of_outcomes_at_an_execution_the_last_holds() {
    let pipeline = Pipeline::builder().retry(Retry::immediately().max_retries(1)).build().unwrap();
    let bad = |value: &&str| *value == "bad";
    let execute = || pipeline.execute(script(&Notes::new(), [ok(0, "bad"), ok(0, "good")]));
    assert_eq!(execute().classify(Nothing).handle_values(bad).await, Ok("good"));
    assert_eq!(execute().handle_values(bad).classify(Nothing).await, Ok("bad"));
    let all = |_: &PipelineResult<&str, &str>| true;
    assert_eq!(execute().classify(Nothing).handle(all).await, Ok("good"));
    assert_eq!(execute().handle(all).classify(Nothing).await, Ok("bad"));
}
