//! Races inside a pipeline, as strategies around them and actions inside see them.

use std::future::{IntoFuture, pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hedgerow::pipeline::parts::{ActBy, Inherit};
use hedgerow::pipeline::{
    ActionResult, BreakerState, CircuitBreaker, ConcurrencyLimiter, Context, CustomStrategy,
    Hedging, Next, PerTarget, Pipeline, PipelineError, PipelineResult, Rejected, RestOfPipeline,
    Retry,
};
use hedgerow::{Attempt, Delay, Hedge, NextAction, NextHedge, Properties, RejectedHedge};

use crate::p_events::Lines;
use crate::support::{lock, ms, poll_once};

type Acts = for<'a> fn(
    &NextHedge<'_>,
    RestOfPipeline<'a, u32, &'static str>,
) -> ActionResult<'a, u32, &'static str>;

/// A limiter that has no slot as long as what is returned with it is kept.
fn full() -> (ConcurrencyLimiter, impl Sized) {
    let limiter = ConcurrencyLimiter::new(1);
    let pipeline = Pipeline::builder().concurrency_limiter(limiter.clone()).build().unwrap();
    let mut held = Box::pin(async move {
        let _never = pipeline.execute(|_| pending::<Result<u32, ()>>()).await;
    });
    assert!(poll_once(held.as_mut()).is_pending());
    (limiter, held)
}

#[tokio::test(start_paused = true)]
async fn a_race_of_which_one_was_let_through_and_failed_is_a_failure() {
    let (full, _held) = full();
    let endpoint = |limiter| Pipeline::builder().concurrency_limiter(limiter).build().unwrap();
    let targets = [("a", endpoint(full)), ("b", endpoint(ConcurrencyLimiter::new(5)))];
    let breaker = CircuitBreaker::consecutive(1);
    let control = breaker.control();
    let race = Pipeline::builder()
        .circuit_breaker(breaker)
        .retry(Retry::immediately().max_retries(1))
        .hedge(Hedge::after(ms(10)).hedge_rejections(true))
        .with(PerTarget::new(targets.clone()))
        .build()
        .unwrap();
    let work = |attempt: Attempt| ready(if attempt.number() == 1 { Err("x") } else { Ok(1) });
    // 0 is refused, 1 runs and fails; the retry's race begins with 2, which is refused, and 3 runs.
    assert_eq!(race.execute(work).await, Ok(1));
    let failed = race.execute(|_| ready(Err::<u32, _>("x"))).await.unwrap_err();
    assert!(failed.rejected().is_some_and(Rejected::has_started), "{failed:?}");
    assert_eq!(control.state(), BreakerState::Open, "it ran, and failed");
}

/// Neither an attempt that was called off nor an answer of one's own runs anything.
#[tokio::test(start_paused = true)]
async fn h23_a_race_of_which_none_was_let_through_never_started() {
    let stops: Acts =
        |next, _| Ok(if next.hedge_number() == 2 { NextAction::Stop } else { NextAction::Repeat });
    let answers: Acts = |_, _| Ok(NextAction::Answer(Err(PipelineError::Failed("no replica"))));
    for acts in [stops, answers] {
        let (full, _held) = full();
        let breaker = CircuitBreaker::consecutive(1);
        let control = breaker.control();
        let hedge = Hedge::default().delay(Delay::OnFailure).max_hedges(2).hedge_rejections(true);
        let hedge = hedge.rejected_hedge(RejectedHedge::Hedge);
        let pipeline = Pipeline::builder()
            .circuit_breaker(breaker)
            .hedge(Hedging::new(hedge).next_action(acts))
            .concurrency_limiter(full)
            .build()
            .unwrap();
        let refused = pipeline.execute(|_| ready(Ok::<u32, &'static str>(1))).await.unwrap_err();
        assert!(!refused.rejected().unwrap().has_started());
        assert_eq!(control.state(), BreakerState::Closed, "the target was never asked");
    }
}

/// Refuses what is inside, perhaps after it has run.
#[derive(Debug)]
struct Refuses {
    after_start: bool,
}

impl<N: Next> CustomStrategy<N> for &Refuses {
    type Run = std::future::Ready<PipelineResult<N::Value, N::Error>>;

    fn run(self, _: N, _: Context) -> Self::Run {
        let rejected = Rejected::new("own", "says so");
        ready(Err(if self.after_start { rejected.after_start() } else { rejected }.into()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_of_ones_own_can_say_that_the_work_did_start() {
    for (after_start, expected) in [(true, BreakerState::Open), (false, BreakerState::Closed)] {
        let breaker = CircuitBreaker::consecutive(1);
        let control = breaker.control();
        let builder = Pipeline::builder().circuit_breaker(breaker);
        let pipeline = builder.strategy("own", Refuses { after_start }).build().unwrap();
        let refused = pipeline.execute(|_| ready(Ok::<u32, ()>(1))).await.unwrap_err();
        assert_eq!(refused.rejected().unwrap().has_started(), after_start);
        assert_eq!(control.state(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn tries_of_which_one_was_let_through_and_the_last_refused_are_a_failure() {
    let outer = CircuitBreaker::consecutive(1);
    let control = outer.control();
    let pipeline = Pipeline::builder()
        .circuit_breaker(outer)
        .retry(Retry::immediately().max_retries(2))
        .circuit_breaker(CircuitBreaker::consecutive(1))
        .build()
        .unwrap();
    let failed = pipeline.execute(|_| ready(Err::<u32, _>("x"))).await.unwrap_err();
    assert!(failed.rejected().is_some_and(Rejected::has_started), "{failed:?}");
    assert_eq!(control.state(), BreakerState::Open, "it ran, and failed");
    control.reset();
    let refused = pipeline.execute(|_| ready(Ok::<u32, &str>(1))).await.unwrap_err();
    assert!(!refused.rejected().unwrap().has_started(), "{refused:?}");
    assert_eq!(control.state(), BreakerState::Closed, "counts neither way");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_hedge_that_decides_is_no_rejection_of_work_that_ran() {
    let (full, _held) = full();
    let targets = [("a", ConcurrencyLimiter::new(1)), ("b", full)];
    let endpoint = |limiter| Pipeline::builder().concurrency_limiter(limiter).build().unwrap();
    let pipeline = Pipeline::builder()
        .hedge(Hedge::after(ms(10)).rejected_hedge(RejectedHedge::Decide))
        .with(PerTarget::new(targets.map(|(name, limiter)| (name, endpoint(limiter)))))
        .build()
        .unwrap();
    let decided = pipeline.execute(|_| pending::<Result<u32, ()>>()).await.unwrap_err();
    assert!(decided.rejected().unwrap().has_started(), "the primary ran until then");
}

/// An action that only runs the rest.
fn runs_the_rest(hedge: Hedge) -> Hedging<Inherit, ActBy<Acts>> {
    let acts: Acts = |_, rest| Ok(NextAction::Run(rest.into_future()));
    Hedging::new(hedge).next_action(acts)
}

#[tokio::test(start_paused = true)]
async fn a25_the_rest_begins_with_the_properties_that_its_attempt_starts_with() {
    let lines = Lines::default();
    let properties = Properties::new();
    properties.insert(7_u32);
    let hook = {
        let properties = properties.clone();
        move |_: &NextHedge<'_>| properties.insert(8_u32)
    };
    let pipeline = Pipeline::builder()
        .observer(lines.observer())
        .hedge(runs_the_rest(Hedge::after(ms(10))).on_hedge(hook))
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let work = |attempt: Attempt| {
        lock(&seen).push(attempt.properties().get::<u32>());
        attempt.properties().insert(100 + attempt.number());
        async move { if attempt.number() == 0 { pending().await } else { Ok(1) } }
    };
    assert_eq!(pipeline.execute(work).properties(&properties).await, Ok(1));
    assert_eq!(*lock(&seen), [Some(7), Some(8)], "as the hook left them");
    assert_eq!(properties.get::<u32>(), Some(101), "the winner's");
}

/// Fails at once, the primary after a while.
async fn fails(attempt: Attempt) -> Result<u32, &'static str> {
    if attempt.number() == 0 {
        tokio::time::sleep(ms(55)).await;
    }
    Err("x")
}

#[tokio::test(start_paused = true)]
async fn an_actions_rest_knows_what_is_left_of_a_limit_around() {
    let retry = || Retry::constant().base(ms(50)).max_retries(1);
    let pipeline = Pipeline::builder()
        .timeout(ms(100))
        .hedge(runs_the_rest(Hedge::after(ms(500))))
        .retry(retry())
        .build()
        .unwrap();
    assert_eq!(pipeline.execute(fails).await, Err(PipelineError::Failed("x")), "no wait was begun");
}

/// Waits before it runs what is inside, and says so.
#[derive(Debug)]
struct Later(Duration);

impl<'p, N> CustomStrategy<N> for &'p Later
where
    N: Next<Value: Send, Error: Send, Run: Send> + Send + Sync + 'p,
{
    type Run = Pin<Box<dyn Future<Output = PipelineResult<N::Value, N::Error>> + Send + 'p>>;

    fn run(self, next: N, cx: Context) -> Self::Run {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            next.run_once(&cx.later(self.0)).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_of_ones_own_that_waits_can_say_so() {
    for (waits, expected) in [(60, "no time"), (40, "time")] {
        let pipeline = Pipeline::builder()
            .timeout(ms(100))
            .strategy("later", Later(ms(waits)))
            .retry(Retry::constant().base(ms(50)).max_retries(1))
            .build()
            .unwrap();
        let work = |attempt: Attempt| {
            ready(if attempt.number() == 0 { Err("no time") } else { Err("time") })
        };
        let failed = pipeline.execute(work).await as Result<u32, _>;
        assert_eq!(failed, Err(PipelineError::Failed(expected)));
    }
}
