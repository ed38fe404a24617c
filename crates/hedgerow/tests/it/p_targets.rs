//! Several targets: what is refused by one goes to another, and what of them is known outside.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hedgerow::pipeline::{
    Fallback, PerTarget, Pipeline, PipelineError, RateLimiter, Retry, Timeout,
};
use hedgerow::{Attempt, Hedge, Losers};
use tokio::time::sleep;

use crate::support::{Counting, ms};

/// Work that is down at the first target as long as `down` says so.
async fn work(attempt: Attempt, down: bool) -> Result<u32, &'static str> {
    sleep(ms(1)).await;
    match attempt.target() {
        Some(0) if down => Err("down"),
        Some(target) => Ok(u32::try_from(target).unwrap()),
        None => Err("nowhere"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_whose_breaker_is_open_is_passed_over_whatever_the_budget_has() {
    let pipeline = Pipeline::standard_hedging(["eu", "us", "asia"]).build().unwrap();
    assert_eq!(pipeline.max_attempts(), Some(6), "each target, twice at most");
    for _ in 0..900 {
        let _opens = pipeline.execute(|attempt| work(attempt, true)).await;
    }
    for idempotent in [true, false] {
        for _ in 0..200 {
            let answer = pipeline.execute(|attempt| work(attempt, false)).idempotent(idempotent);
            assert!(matches!(answer.await, Ok(1 | 2)), "not to the one that is shut out");
        }
    }
    sleep(ms(5_001)).await;
    let mut seen = [false; 3];
    for _ in 0..200 {
        let target = pipeline.execute(|attempt| work(attempt, false)).await.unwrap();
        seen[target as usize] = true;
    }
    assert_eq!(seen, [true; 3], "it is let in again");
}

#[tokio::test(start_paused = true)]
async fn where_every_target_refuses_each_is_asked_once_and_nobody_waits() {
    let endpoint = || Pipeline::builder().rate_limiter(RateLimiter::per(1, ms(60_000))).build();
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let targets = PerTarget::new(["a", "b"].map(|name| (name, endpoint().unwrap())));
    let targets = targets.route(move |attempt| {
        counted.fetch_add(1, Ordering::Relaxed);
        attempt.number() as usize
    });
    let never_started = |outcome: &Result<u32, PipelineError<()>>| match outcome {
        Err(PipelineError::Rejected(rejected)) => !rejected.has_started(),
        _ => false,
    };
    let passes = Retry::immediately().max_retries(1).max_delay(ms(0)).handle(never_started);
    let pipeline = Pipeline::builder().retry(passes).with(targets).build().unwrap();
    for _ in 0..2 {
        assert_eq!(pipeline.execute(|_| ready(Ok(1))).await, Ok(1));
    }
    asked.store(0, Ordering::Relaxed);
    let refused = pipeline.execute(|_| ready(Ok(1))).await.unwrap_err();
    assert!(refused.rejected().unwrap().retry_after().is_some());
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn targets_have_names_of_their_own() {
    let end = || Pipeline::builder().build().unwrap();
    let twice = PerTarget::new([("a", end()), ("b", end()), ("a", end())]);
    let refused = Pipeline::builder().with(twice).build().unwrap_err();
    let told = "per-target.targets = a: named twice; give each target a name of its own";
    assert_eq!(refused.to_string(), told);
}

#[tokio::test(start_paused = true)]
async fn pr_68_a_budget_of_targets_and_of_what_is_inside_them_is_paid_once() {
    let paid = Arc::new(Counting::default());
    let endpoint =
        || Pipeline::builder().hedge(Hedge::after(ms(5)).budget(paid.clone())).build().unwrap();
    let pipeline = Pipeline::builder()
        .with(PerTarget::new([("a", endpoint()), ("b", endpoint())]))
        .retry(Retry::immediately().budget(paid.clone()))
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(|_| ready(Ok::<u32, ()>(1))).await, Ok(1));
    assert_eq!(paid.paid(), 1);
}

#[test]
fn a34_what_is_probably_not_meant_is_told_of_targets_as_of_pipelines() {
    let endpoint = |delay| {
        Pipeline::builder()
            .fallback(Fallback::value(1))
            .hedge(Hedge::after(ms(delay)).losers(Losers::Join { grace: None }))
            .build()
            .unwrap()
    };
    let around = || Pipeline::builder().timeout(ms(100)).retry(Retry::immediately());
    let nested = around().pipeline(endpoint(500)).build().unwrap();
    assert_eq!(nested.warnings().len(), 3, "{:?}", nested.warnings());
    for (delays, expected) in [([500, 500], 3), ([500, 50], 2)] {
        let targets = ["a", "b"].into_iter().zip(delays.map(endpoint));
        let targets = around().with(PerTarget::new(targets)).build().unwrap();
        assert_eq!(targets.warnings().len(), expected, "{:?}", targets.warnings());
    }
    let limits = [("a", ms(50)), ("b", ms(80))].map(|(name, limit)| {
        (name, Pipeline::builder().timeout(Timeout::after(limit)).build().unwrap())
    });
    let pipeline = Pipeline::builder().with(PerTarget::new(limits)).hedge(Hedge::after(ms(60)));
    assert!(pipeline.build().unwrap().warnings().is_empty(), "one of them leaves it time");
}

#[tokio::test(start_paused = true)]
async fn targets_inside_a_target_can_be_spread() {
    let end = || Pipeline::builder().build().unwrap();
    let inner = PerTarget::new([("a", end()), ("b", end())]).spread();
    let inner = Pipeline::builder().with(inner).build().unwrap();
    let pipeline = Pipeline::builder().with(PerTarget::new([("x", inner)])).build().unwrap();
    let mut seen = [0; 2];
    for _ in 0..200 {
        let run = pipeline.execute(|attempt| ready(Ok::<_, ()>(attempt.target().unwrap())));
        let target = run.await.unwrap();
        seen[target] += 1;
    }
    assert!(seen.iter().all(|begun| *begun > 0), "{seen:?}");
}
