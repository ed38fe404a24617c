//! The rate limiter.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hedgerow::pipeline::{End, Pipeline, RateLimiter, Then};
use hedgerow::{Hedge, ManualClock, StrategyEventKind};
use tokio::time::Instant;

use crate::p_told::{Told, exhaust_budget, refusal};
use crate::support::{Answer, act, err, ms, ok, poll_once};

pub(crate) type Limited = Pipeline<Then<RateLimiter, End>>;

pub(crate) fn limited(limiter: &RateLimiter) -> Limited {
    Pipeline::builder().rate_limiter(limiter.clone()).build().unwrap()
}

/// On a clock that stands until it is told to go on.
pub(crate) fn on_a_clock(limiter: &RateLimiter) -> (Limited, ManualClock) {
    let clock = ManualClock::new();
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    (builder.rate_limiter(limiter.clone()).build().unwrap(), clock)
}

/// Whether an execution is let through now: `Err` says when it is worth another try.
pub(crate) fn now(pipeline: &Limited) -> Result<(), Option<Duration>> {
    let call = pipeline.execute(|_| async { Answer::Ok("a") });
    match poll_once(pin!(call.into_future())) {
        Poll::Ready(Ok(_)) => Ok(()),
        Poll::Ready(outcome) => {
            assert_eq!(refusal(&outcome), "rate exceeded");
            Err(outcome.unwrap_err().rejected().unwrap().retry_after())
        }
        Poll::Pending => panic!("it waits"),
    }
}

/// As many as are let through now.
fn burst(pipeline: &Limited) -> usize {
    (0..1_000).take_while(|_| now(pipeline).is_ok()).count()
}

#[test]
fn permits_come_back_one_by_one() {
    let (pipeline, clock) = on_a_clock(&RateLimiter::per(20, ms(1_000)));
    assert_eq!(burst(&pipeline), 20, "all are there at first");
    assert_eq!(now(&pipeline), Err(Some(ms(50))));
    clock.advance(ms(49));
    assert_eq!(now(&pipeline), Err(Some(ms(1))));
    clock.advance(ms(1));
    assert_eq!(burst(&pipeline), 1);
    clock.advance(ms(500));
    assert_eq!(burst(&pipeline), 10);
    clock.advance(ms(10_000));
    assert_eq!(burst(&pipeline), 20, "no more than the burst is saved up");
}

#[test]
fn the_burst_is_what_can_be_saved_up() {
    let (pipeline, clock) = on_a_clock(&RateLimiter::per(20, ms(1_000)).burst(1));
    for _ in 0..3 {
        assert_eq!(burst(&pipeline), 1);
        clock.advance(ms(50));
    }
    let (pipeline, clock) = on_a_clock(&RateLimiter::per(1, ms(1_000)).burst(3));
    assert_eq!(burst(&pipeline), 3);
    clock.advance(ms(2_000));
    assert_eq!(burst(&pipeline), 2);
}

#[test]
fn clones_share_the_permits() {
    let limiter = RateLimiter::per(4, ms(1_000));
    let (first, clock) = on_a_clock(&limiter);
    let second = limited(&limiter);
    assert_eq!((now(&first), now(&second)), (Ok(()), Ok(())));
    assert_eq!((burst(&second), burst(&first)), (2, 0));
    clock.advance(ms(250));
    assert_eq!(burst(&second), 1, "by the time of the first");
}

#[test]
fn in_a_nested_pipeline_it_is_of_the_time_of_the_whole() {
    let (clock, limiter) = (ManualClock::new(), RateLimiter::per(1, ms(1_000)));
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let whole = builder.pipeline(limited(&limiter)).build().unwrap();
    let taken = || {
        let call = whole.execute(|_| async { Answer::Ok("a") }).into_future();
        futures_executor::block_on(call).is_ok()
    };
    assert_eq!([taken(), taken()], [true, false]);
    clock.advance(ms(1_000));
    assert_eq!(now(&limited(&limiter)), Ok(()), "wherever it is used from then on");
    clock.advance(ms(1_000));
    assert_eq!([taken(), taken()], [true, false]);
}

#[tokio::test(start_paused = true)]
async fn what_fails_has_taken_its_permit_and_rejections_are_told() {
    let told = Told::by("rate-limiter");
    let limiter = RateLimiter::per(2, ms(100));
    let pipeline =
        Pipeline::builder().observer(told.observer()).rate_limiter(limiter).build().unwrap();
    for _ in 0..2 {
        let failed = pipeline.execute(|_| act(err(0, "down"))).await;
        assert_eq!(failed.unwrap_err().failed(), Some(&"down"));
    }
    assert_eq!(refusal(&pipeline.execute(|_| act(ok(0, "a"))).await), "rate exceeded");
    let (reason, retry_after) = ("rate exceeded", Some(ms(50)));
    assert_eq!(told.kinds(), [StrategyEventKind::Rejected { reason, retry_after }]);
}

#[tokio::test(start_paused = true)]
async fn inside_a_hedge_each_attempt_takes_a_permit() {
    let limiter = RateLimiter::per(2, ms(60_000));
    let hedge = Hedge::after(ms(50)).max_hedges(3);
    let pipeline = Pipeline::builder().hedge(hedge).rate_limiter(limiter).build().unwrap();
    let start = Instant::now();
    assert_eq!(pipeline.execute(|_| act(ok(300, "a"))).await, Ok("a"));
    assert_eq!(start.elapsed(), ms(300), "the rejection of the second hedge decides nothing");
    assert_eq!(refusal(&pipeline.execute(|_| act(ok(0, "a"))).await), "rate exceeded");
}

/// The budget of tokio's tasks costs nobody a permit that is there.
#[tokio::test(start_paused = true)]
async fn pr_43_a_task_without_budget_is_not_refused() {
    let pipeline = limited(&RateLimiter::per(10_000, ms(1_000)));
    let rounds = async move {
        exhaust_budget();
        assert_eq!((0..5_000).filter(|_| now(&pipeline).is_err()).count(), 0);
    };
    tokio::spawn(rounds).await.unwrap();
}

#[test]
fn extreme_rates_neither_panic_nor_overflow() {
    let century = Duration::from_secs(100 * 365 * 86_400);
    for period in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 33)] {
        // Never again: the burst is all there is.
        let (pipeline, clock) = on_a_clock(&RateLimiter::per(1, period).burst(3));
        for _ in 0..3 {
            assert_eq!(now(&pipeline), Ok(()));
        }
        for _ in 0..3 {
            assert_eq!(now(&pipeline), Err(None), "{period:?}");
            clock.advance(century);
        }
        let waits = RateLimiter::per(1, period).max_wait(Duration::MAX);
        let (pipeline, _) = on_a_clock(&waits);
        assert_eq!((now(&pipeline), now(&pipeline)), (Ok(()), Err(None)), "not even who has time");
    }
    let (pipeline, clock) = on_a_clock(&RateLimiter::per(1, century));
    for _ in 0..4 {
        assert!(burst(&pipeline) <= 1);
        clock.advance(century);
        clock.advance(Duration::MAX);
    }
    let (pipeline, clock) =
        on_a_clock(&RateLimiter::per(u32::MAX, Duration::from_secs(5)).burst(2));
    assert_eq!(burst(&pipeline), 2);
    clock.advance(Duration::from_nanos(2));
    assert_eq!(burst(&pipeline), 1, "a permit each 1.17 ns, rounded up");
}

#[test]
fn impossible_rates_are_refused() {
    let mistakes = |limiter: RateLimiter| {
        let built = Pipeline::builder().rate_limiter(limiter).build();
        let mistakes = built.unwrap_err();
        let options = mistakes.mistakes().iter().map(|it| it.option().to_owned());
        options.collect::<Vec<_>>().join(" ").replace("rate-limiter.", "")
    };
    assert_eq!(mistakes(RateLimiter::per(0, ms(1))), "permits");
    assert_eq!(mistakes(RateLimiter::per(1, Duration::ZERO)), "period");
    assert_eq!(mistakes(RateLimiter::per(0, Duration::ZERO).burst(0)), "permits period");
    assert_eq!(mistakes(RateLimiter::per(1, ms(1)).burst(0)), "burst");
    assert_eq!(mistakes(RateLimiter::per(2, Duration::from_nanos(1))), "permits");
    assert_eq!(mistakes(RateLimiter::per(1, ms(1_000)).burst(u32::MAX)), "burst");
    let limiter = RateLimiter::per(20, ms(1_000)).burst(5).max_wait(ms(2_000));
    let text = limited(&limiter).to_string();
    assert!(text.contains("20 per 1s, burst 5, the rest waits for 2s"), "{text}");
}
