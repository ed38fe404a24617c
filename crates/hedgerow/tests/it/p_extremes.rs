//! Pipelines at the end of time, and after centuries.

use std::future::{IntoFuture, pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hedgerow::pipeline::{Chaos, Pipeline, PipelineError, RateLimiter, Retry};
use hedgerow::{Attempt, Clock, Hedge, Sleep};

use crate::p_rate::{now, on_a_clock};
use crate::support::{Answer, act, ms, never, poll_once};

const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Stands a second before the last moment that there is.
#[derive(Debug)]
struct Last(Instant);

impl Last {
    fn new() -> Self {
        let (mut last, mut step) = (Instant::now(), Duration::MAX);
        while step >= ms(1_000) {
            match last.checked_add(step) {
                Some(later) => last = later,
                None => step /= 2,
            }
        }
        Self(last)
    }
}

impl Clock for Last {
    fn now(&self) -> Instant {
        self.0
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        Box::pin(pending())
    }
}

#[test]
fn a_wait_past_the_end_of_time_never_ends() {
    let clock: Arc<dyn Clock> = Arc::new(Last::new());
    let builder = || Pipeline::builder().clock(Arc::clone(&clock));
    let hour = Duration::from_secs(3_600);
    let limited = builder().timeout(hour).build().unwrap();
    assert!(poll_once(pin!(limited.execute(|_| act(never())).into_future())).is_pending());
    let answer = limited.execute(|_| async { Answer::Ok("a") }).deadline(hour);
    assert_eq!(futures_executor::block_on(answer.into_future()), Ok("a"));
    let fails = |_: Attempt| ready(Answer::Err("x"));
    let retried = builder().retry(Retry::constant().base(hour).max_delay(hour)).build().unwrap();
    assert!(poll_once(pin!(retried.execute(fails).into_future())).is_pending());
    let late = builder().chaos(Chaos::latency(hour).rate(1.0)).build().unwrap();
    assert!(poll_once(pin!(late.execute(fails).into_future())).is_pending());
    let hedged = builder().hedge(Hedge::after(hour)).build().unwrap();
    assert!(poll_once(pin!(hedged.execute(|_| act(never())).into_future())).is_pending());
    let answer = hedged.execute(|attempt| ready(attempt.number().checked_sub(1).ok_or("x")));
    assert_eq!(futures_executor::block_on(answer.into_future()), Ok(0));
    let rare = RateLimiter::per(1, hour);
    let rare = builder().rate_limiter(rare.max_wait(Duration::MAX)).build().unwrap();
    let refused = futures_executor::block_on(rare.execute(fails).into_future());
    assert_eq!(refused, Err(PipelineError::Failed("x")), "it had its permit");
    assert!(poll_once(pin!(rare.execute(fails).into_future())).is_pending());
}

#[test]
fn permits_come_back_however_long_it_has_been() {
    let (pipeline, clock) = on_a_clock(&RateLimiter::per(2, ms(1_000)));
    for centuries in [1, 2, 4, 6, 100, 1] {
        clock.advance(CENTURY * centuries);
        assert_eq!([now(&pipeline), now(&pipeline)], [Ok(()); 2], "after {centuries}");
        for _ in 0..3 {
            assert_eq!(now(&pipeline), Err(Some(ms(500))));
            clock.advance(ms(500));
            assert_eq!(now(&pipeline), Ok(()));
        }
    }
}
