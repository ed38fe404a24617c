//! What strategies have of their places: who pays into a budget, how much time is left, whose clock it
//! is, what is probably not meant.

use std::future::{IntoFuture, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow::pipeline::{
    Chaos, CircuitBreaker, Classify, ConcurrencyLimiter, Fallback, PerTarget, Pipeline,
    PipelineError, PipelineResult, Retry,
};
use hedgerow::{Attempt, Event, Hedge, ManualClock, Observer};

use crate::support::{Counting, ms, poll_once};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn failing() -> impl Fn(Attempt) -> std::future::Ready<Result<u32, &'static str>> + Clone {
    |_| ready(Err("x"))
}

fn working() -> impl Fn(Attempt) -> std::future::Ready<Result<u32, &'static str>> + Clone {
    |_| ready(Ok(1))
}

#[tokio::test(start_paused = true)]
async fn pr_68_the_outermost_of_those_that_share_a_budget_pays_once() {
    let budget = Arc::new(Counting::default());
    let retry = || Retry::immediately().max_retries(2).budget(budget.clone());
    let hedge = || Hedge::after(ms(5)).budget(budget.clone());
    let paid = || budget.paid();

    let around = Pipeline::builder().retry(retry()).hedge(hedge()).build().unwrap();
    let _failed = around.execute(failing()).await;
    assert_eq!(paid(), 1, "a retry around a hedge");
    let inside = Pipeline::builder().hedge(hedge()).retry(retry()).build().unwrap();
    let _failed = inside.execute(failing()).await;
    assert_eq!(paid(), 1, "a retry inside a hedge");
    let _worked = inside.execute(working()).await;
    assert_eq!(paid(), 1, "and one that is not needed");

    let nested = Pipeline::builder().hedge(hedge()).build().unwrap();
    let nested =
        Pipeline::builder().retry(retry()).pipeline(nested).retry(retry()).build().unwrap();
    let _failed = nested.execute(failing()).await;
    assert_eq!(paid(), 1, "a nested pipeline, and a retry inside it");
    let target = || Pipeline::builder().retry(retry()).build().unwrap();
    let targets = PerTarget::new([("a", target()), ("b", target())]);
    let targets = Pipeline::builder().hedge(hedge()).with(targets).build().unwrap();
    let _failed = targets.execute(failing()).await;
    assert_eq!(paid(), 1, "several targets");

    let breaker = CircuitBreaker::default();
    breaker.control().isolate();
    let refused = Pipeline::builder().retry(retry()).circuit_breaker(breaker).hedge(hedge());
    let _refused = refused.build().unwrap().execute(working()).await;
    assert_eq!(paid(), 1, "whatever never gets there");
}

/// Errors are the seconds after which the target wants to see the inner retry again.
#[derive(Clone)]
struct Asking;

impl Classify<u32, u64> for Asking {
    fn retry_after(&self, outcome: &PipelineResult<u32, u64>) -> Option<Duration> {
        outcome.as_ref().err().and_then(PipelineError::failed).copied().map(secs)
    }
}

/// Nobody asks for anything.
#[derive(Clone)]
struct Silent;

impl Classify<u32, u64> for Silent {}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_end_after_a_limit_around_it_is_not_begun() {
    let long = || Retry::constant().base(secs(6)).max_retries(1);
    let short = Retry::constant().base(secs(5)).max_retries(1).classify(Silent);
    let failed = Err(PipelineError::Failed("x"));
    let builder = || Pipeline::builder().timeout(secs(10));

    // 11 s is too long for the first try, and 6 s for the second, which begins after 5.
    let asks =
        |attempt: Attempt| ready(Err::<u32, u64>(if attempt.number() == 0 { 11 } else { 6 }));
    let pipeline = builder().retry(short).retry(long().max_delay(secs(30))).build().unwrap();
    let begun = tokio::time::Instant::now();
    let outcome = pipeline.execute(asks).classify(Asking).await;
    assert_eq!(
        (outcome, begun.elapsed()),
        (Err(PipelineError::Failed(6)), secs(5)),
        "a further try"
    );

    let latency = Chaos::latency(secs(8)).rate(1.0);
    let pipeline = builder().chaos(latency).retry(long()).build().unwrap();
    assert_eq!(pipeline.execute(failing()).await, failed, "after a wait for something else");

    let limiter = ConcurrencyLimiter::new(1).max_queue(1);
    let pipeline = builder().concurrency_limiter(limiter).retry(long()).build().unwrap();
    let first = pipeline.execute(|_| async {
        tokio::time::sleep(secs(5)).await;
        Ok::<_, &str>(1)
    });
    let (first, second) = tokio::join!(first, pipeline.execute(failing()));
    assert_eq!((first, second), (Ok(1), failed.clone()), "after a place in a queue");

    let pipeline = builder().hedge(Hedge::after(secs(5))).retry(long()).build().unwrap();
    let slow = pipeline.execute(|attempt| async move {
        if attempt.hedge_number() == 0 { pending().await } else { Err::<u32, _>("x") }
    });
    let begun = tokio::time::Instant::now();
    assert!(slow.await.unwrap_err().timed_out().is_some(), "the primary goes on");
    assert_eq!(begun.elapsed(), secs(10));
}

#[test]
fn a_retry_that_never_waits_lets_others_have_their_turn() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::builder()
        .clock(Arc::new(clock.clone()))
        .timeout(ms(50))
        .retry(Retry::immediately().forever())
        .build()
        .unwrap();
    let tries = AtomicU64::new(0);
    let work = |_| {
        tries.fetch_add(1, Ordering::Relaxed);
        ready(Err::<u32, _>("x"))
    };
    let mut execution = Box::pin(pipeline.execute(work).into_future());
    assert!(poll_once(execution.as_mut()).is_pending());
    let in_a_poll = tries.load(Ordering::Relaxed);
    assert!((2..100).contains(&in_a_poll), "{in_a_poll} tries");
    clock.advance(ms(49));
    assert!(poll_once(execution.as_mut()).is_pending());
    assert!(tries.load(Ordering::Relaxed) > in_a_poll, "it goes on");
    clock.advance(ms(1));
    let std::task::Poll::Ready(outcome) = poll_once(execution.as_mut()) else { panic!("hangs") };
    assert_eq!(outcome, Err(PipelineError::Failed("x")), "the next try would start too late");
}

struct Deaf;

impl Observer for Deaf {
    fn event(&self, _: &Event) {}
}

#[test]
fn a_nested_pipeline_with_an_observer_of_its_own_takes_the_clock_of_the_whole() {
    let clock = ManualClock::new();
    let inner = Pipeline::builder().observer(Arc::new(Deaf)).timeout(secs(3_600)).build().unwrap();
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.pipeline(inner).build().unwrap();
    let work = |_| pending::<Result<u32, &str>>();
    let mut execution = Box::pin(pipeline.execute(work).into_future());
    assert!(poll_once(execution.as_mut()).is_pending());
    clock.advance(secs(3_600));
    assert!(poll_once(execution.as_mut()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_one_of_the_pipelines_clock_whatever_the_hedges() {
    let ahead = ManualClock::new();
    ahead.advance(secs(3_600));
    let hedge = Hedge::after(ms(5)).clock(Arc::new(ahead));
    let pipeline = Pipeline::builder().hedge(hedge).build().unwrap();
    let work = |attempt: Attempt| ready(if attempt.number() == 0 { Err("x") } else { Ok(1) });
    assert_eq!(pipeline.execute(work).deadline(secs(10)).await, Ok(1), "10 s are left");
}

#[test]
fn a_pipeline_whose_losers_run_on_goes_into_no_other_but_one_on_threads() {
    let made = || Pipeline::builder().hedge(Hedge::abandoning()).build_blocking().unwrap();
    let refused = Pipeline::builder().pipeline(made().pipeline().clone()).build().unwrap_err();
    assert_eq!(refused.mistakes()[0].option(), "pipeline.losers");
    let nested = Pipeline::builder().pipeline(made().pipeline().clone());
    assert!(nested.build_blocking().is_ok());
}

#[test]
fn a34_waits_that_leave_no_time_and_replacements_that_hide_failures_are_warned_of() {
    let late = |retry| Pipeline::builder().timeout(secs(2)).retry(retry).build().unwrap();
    assert_eq!(
        late(Retry::exponential()).warnings(),
        [
            "retry never starts another try, as it waits 2s first: timeout gives up after 2s, and is \
         around it; give the retry a shorter base"
        ]
    );
    assert!(late(Retry::exponential().jitter(0.1)).warnings().is_empty(), "it may be shorter");
    assert!(late(Retry::exponential().max_retries(0)).warnings().is_empty(), "it never waits");
    assert!(late(Retry::exponential().delay_with(|_| None)).warnings().is_empty(), "who knows");
    let inside = Pipeline::builder().retry(Retry::exponential()).timeout(ms(1)).build().unwrap();
    assert!(inside.warnings().is_empty(), "the limit of a try is another matter");

    let hides =
        |fallback| Pipeline::builder().hedge(Hedge::default()).fallback(fallback).build().unwrap();
    assert_eq!(
        hides(Fallback::value(1)).warnings(),
        [
            "fallback replaces what hedge, which is around it, is to make up for by another attempt; \
         put it around"
        ]
    );
    let some = Fallback::value(1);
    let some = some.handle(|outcome: &Result<i32, PipelineError<&str>>| outcome.is_ok());
    let some = Pipeline::builder().hedge(Hedge::default()).fallback(some).build().unwrap();
    assert!(some.warnings().is_empty(), "somebody thought about it");

    let nested = Pipeline::builder().hedge(Hedge::after(secs(3))).build().unwrap();
    let nested = Pipeline::builder().timeout(secs(2)).pipeline(nested).build().unwrap();
    assert_eq!(nested.warnings().len(), 1, "nor in a nested pipeline: {nested}");
}
