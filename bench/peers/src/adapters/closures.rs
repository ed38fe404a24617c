//! The libraries that are handed a closure and call it once per attempt: hedged, do-over, fure.

use std::time::Duration;

use counts::operation::{Failure, Operation, Outcome};
use do_over::error::DoOverError;
use do_over::policy::Policy;
use fure::policies::{attempts, interval};

use crate::contender::{Call, Contender, Kind};

struct HedgedCall<O> {
    operation: O,
    hedge: hedged::Hedge,
}

impl<O: Operation> Call for HedgedCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let (outcome, loser) = self.hedge.send(|| self.operation.start(request)).await;
        drop(loser);
        outcome
    }
}

/// Histogram of `hedged`: 2^7 buckets a power of two, latencies below 2^64 ns.
const GROUPING: u8 = 7;
const POWERS: u8 = 64;
const PERCENTILE: f64 = 0.95;

/// `hedged` with a period that never ends, so that its first delay stays.
pub struct Hedged;

impl Contender for Hedged {
    const NAME: &'static str = "hedged 0.2 (no re-estimate)";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let hedge = hedged::Hedge::new(GROUPING, POWERS, delay, u64::MAX, PERCENTILE);
        HedgedCall { operation, hedge: hedge.expect("valid histogram") }
    }
}

/// `hedged` as it comes: the percentile is taken anew every 10 calls.
pub struct HedgedPeriod10;

impl Contender for HedgedPeriod10 {
    const NAME: &'static str = "hedged 0.2 (period 10)";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let least = delay.min(Duration::from_millis(1));
        let hedge = hedged::Hedge::new(GROUPING, POWERS, delay, 10, PERCENTILE)
            .and_then(|hedge| hedge.with_min_timeout(least));
        HedgedCall { operation, hedge: hedge.expect("valid histogram") }
    }
}

/// `do-over`: boxed calls, first completion wins.
pub struct DoOver;

struct DoOverCall<O> {
    operation: O,
    hedge: do_over::hedge::Hedge,
}

impl<O: Operation> Call for DoOverCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let attempt = || {
            let attempt = self.operation.start(request);
            async move { attempt.await.map_err(DoOverError::Inner) }
        };
        self.hedge.execute(attempt).await.map_err(|error| match error {
            DoOverError::Inner(failure) => failure,
            other => Failure::new(other.to_string()),
        })
    }
}

impl Contender for DoOver {
    const NAME: &'static str = "do-over 0.1";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        DoOverCall { operation, hedge: do_over::hedge::Hedge::new(delay) }
    }
}

/// `fure` with its interval policy: the next attempt after a delay or at a failure.
pub struct Fure;

struct FureCall<O> {
    operation: O,
    delay: Duration,
}

impl<O: Operation> Call for FureCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let policy = attempts(interval(self.delay), 1);
        fure::retry(|| self.operation.start(request), policy).await
    }
}

impl Contender for Fure {
    const NAME: &'static str = "fure 0.6 interval";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        FureCall { operation, delay }
    }
}
