//! H26, PR-28: the fallback.

use std::cell::Cell;
use std::future::{IntoFuture, ready};
use std::sync::{Arc, Mutex};

use hedgerow::Hedge;
use hedgerow::pipeline::{
    CircuitBreaker, Classify, Fallback, Outcome, Pipeline, PipelineError, PipelineResult, Retry,
};
use tokio::time::sleep;

use crate::p_events::Lines;
use crate::support::{Notes, act, err, lock, ms, never, ok, poll_once};

type Failed = PipelineResult<&'static str, &'static str>;

#[tokio::test(start_paused = true)]
async fn h26_a_fallback_outside_answers_when_every_attempt_failed() {
    let lines = Lines::default();
    let pipeline = Pipeline::builder()
        .observer(lines.observer())
        .fallback(Fallback::value("f"))
        .hedge(Hedge::after(ms(10)))
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(|_| act(err(20, "x"))).await, Ok("f"));
    assert_eq!(lines.with("ended failed").len(), 2, "both failures are told");
    assert_eq!(lines.with("FellBack"), ["fallback[0] FellBack { succeeded: true }"]);
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn pr_28_a_fallback_keeps_the_cause() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hooked = Arc::clone(&told);
    let fallback = Fallback::with(|failed: &Failed| {
        let failed = failed.clone();
        async move {
            sleep(ms(5)).await;
            if failed == Err(PipelineError::Failed("x")) { Ok("f") } else { Err("y") }
        }
    });
    let fallback = fallback.on_fallback(move |failed: &Failed| lock(&hooked).push(failed.clone()));
    let pipeline = Pipeline::builder().fallback(fallback).build().unwrap();
    assert_eq!(pipeline.execute(|_| act(err(0, "x"))).await, Ok("f"));
    assert_eq!(*lock(&told), [Err(PipelineError::Failed("x"))]);
    let both = pipeline.execute(|_| act(err(0, "z"))).await.unwrap_err();
    assert_eq!(both.failed(), Some(&"y"));
    let PipelineError::FallbackFailed(failed) = &both else { panic!("{both:?}") };
    assert_eq!((failed.error, &failed.cause), ("y", &Some(PipelineError::Failed("z"))));
    assert_eq!(both.to_string(), "y (the fallback, after: z)");
    match pipeline.execute(|_| act(err(0, "z"))).settle().await {
        Outcome::Success(value) | Outcome::Failed(value) => panic!("{value}"),
        Outcome::FallbackFailed(failed) => assert_eq!(failed.error, "y"),
    }
}

#[tokio::test(start_paused = true)]
async fn pr_28_it_is_not_asked_without_need() {
    let asked = Cell::new(0);
    let fallback = Fallback::with(|_: &Failed| {
        asked.set(asked.get() + 1);
        ready(Ok("f"))
    });
    let pipeline = Pipeline::builder().fallback(fallback).build().unwrap();
    assert_eq!(pipeline.execute(|_| act(ok(5, "a"))).await, Ok("a"));
    let mut dropped = Box::pin(pipeline.execute(|_| act(never())).into_future());
    assert!(poll_once(dropped.as_mut()).is_pending());
    drop(dropped);
    let token = hedgerow::CancellationToken::new();
    token.cancel();
    let cancelled = pipeline.execute(|_| act(never())).cancel_on(&token).await;
    assert_eq!(cancelled, Err(PipelineError::Cancelled));
    assert_eq!(asked.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn timeouts_and_rejections_are_replaced_unless_it_is_told_otherwise() {
    let breaker = CircuitBreaker::consecutive(1);
    let control = breaker.control();
    let pipeline = Pipeline::builder()
        .fallback(Fallback::value("f"))
        .circuit_breaker(breaker.clone())
        .timeout(ms(10))
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(|_| act(never())).await, Ok("f"));
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("f"), "the breaker is open");
    control.reset();
    let only = Fallback::value("f").handle(|failed: &Failed| failed == &Ok("bad"));
    let pipeline = Pipeline::builder().fallback(only).circuit_breaker(breaker).build().unwrap();
    assert_eq!(pipeline.execute(|_| act(ok(0, "bad"))).await, Ok("f"));
    let failed = pipeline.execute(|_| act(err(0, "x"))).await;
    assert_eq!(failed, Err(PipelineError::Failed("x")));
    let rejected = pipeline.execute(|_| act(ok(0, "a"))).await;
    assert!(rejected.unwrap_err().rejected().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_value_that_was_to_be_replaced_is_no_cause() {
    let fallback = Fallback::with(|_: &Failed| ready(Err("y")));
    let fallback = fallback.handle(|failed: &Failed| failed == &Ok("bad"));
    let pipeline = Pipeline::builder().fallback(fallback).build().unwrap();
    let failed = pipeline.execute(|_| act(ok(0, "bad"))).await.unwrap_err();
    let PipelineError::FallbackFailed(both) = &failed else { panic!("{failed:?}") };
    assert_eq!((both.error, &both.cause), ("y", &None));
    assert_eq!(failed.to_string(), "y (the fallback)");
}

/// Whatever the fallback's error says: the work ran.
#[derive(Clone)]
struct Busy;

impl Classify<&'static str, &'static str> for Busy {
    fn handle(&self, _: &Failed) -> bool {
        true
    }

    fn is_rejection(&self, error: &&'static str) -> bool {
        *error == "busy"
    }
}

#[tokio::test(start_paused = true)]
async fn t36_a_fallback_that_is_refused_does_not_say_that_the_work_never_started() {
    let fallback = Fallback::with(|_: &Failed| ready(Err("busy")));
    let retry = Retry::immediately().max_retries(2);
    let pipeline = Pipeline::builder().retry(retry).fallback(fallback).build().unwrap();
    let runs = Cell::new(0);
    let work = |_| {
        runs.set(runs.get() + 1);
        act(ok(0, "bad"))
    };
    let failed = pipeline.execute(work).idempotent(false).classify(Busy).await.unwrap_err();
    assert_eq!((failed.failed(), runs.get()), (Some(&"busy"), 1));
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_dropped_before_its_replacement_begins() {
    let notes = Notes::new();
    let begun = notes.clone();
    let fallback = Fallback::with(move |_: &Failed| {
        begun.note("replaced");
        ready(Ok("f"))
    });
    let pipeline = Pipeline::builder().fallback(fallback).timeout(ms(10)).build().unwrap();
    let work = |_| Box::pin(notes.clone().attempt(0, act(never())));
    assert_eq!(pipeline.execute(work).await, Ok("f"));
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @10", "replaced @10"]);
}
