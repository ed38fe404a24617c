//! The hedges for tower: its own and `tower-resilience-hedge`.

use std::fmt::Display;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use counts::operation::{Failure, Operation, Outcome};
use tower::hedge::{Hedge, Policy};
use tower::{BoxError, Layer};
use tower_resilience_hedge::HedgeLayer;

use crate::contender::{Call, Contender, Kind};

/// An operation as a tower service that is always ready.
#[derive(Clone)]
pub(super) struct Service<O>(pub(super) O);

impl<O: Operation> tower::Service<u64> for Service<O> {
    type Response = u64;
    type Error = Failure;
    type Future = O::Attempt;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> O::Attempt {
        self.0.start(request)
    }
}

/// A service that is cloned, driven to readiness and called, as servers do it.
pub(super) struct Cloned<S>(pub(super) S);

impl<S> Call for Cloned<S>
where
    S: tower::Service<u64, Response = u64> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Display + Send,
{
    async fn call(&self, request: u64) -> Outcome {
        let mut service = self.0.clone();
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(failure)?;
        service.call(request).await.map_err(failure)
    }
}

fn failure(error: impl Display) -> Failure {
    Failure::new(error.to_string())
}

/// `tower-resilience-hedge`, whose count of attempts includes the primary.
pub struct Resilience;

impl Contender for Resilience {
    const NAME: &'static str = "tower-resilience-hedge 0.14";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let hedge = HedgeLayer::builder().delay(delay).max_hedged_attempts(2).build();
        Cloned(hedge.layer(Service(operation)))
    }
}

/// A service that cannot be cloned, as tower's hedge: shared behind a lock.
struct Locked<S>(Mutex<S>);

impl<S> Call for Locked<S>
where
    S: tower::Service<u64, Response = u64, Error = BoxError> + Send + 'static,
    S::Future: Send,
{
    async fn call(&self, request: u64) -> Outcome {
        let call = {
            let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => service.call(request),
                Poll::Ready(Err(error)) => return Err(failure(error)),
                Poll::Pending => return Err(Failure::new("not ready")),
            }
        };
        call.await.map_err(failure)
    }
}

/// Every request may be sent twice.
#[derive(Clone)]
struct AnyRequest;

impl Policy<u64> for AnyRequest {
    fn clone_request(&self, request: &u64) -> Option<u64> {
        Some(*request)
    }

    fn can_retry(&self, _: &u64) -> bool {
        true
    }
}

/// Tower's hedge after the 95th percentile of the last period's latencies; of `delay` at first.
fn tower_hedge<O: Operation>(
    operation: O,
    delay: Duration,
    least_points: u64,
    period: Duration,
) -> impl Call {
    const PERCENTILE: f32 = 0.95;
    let latency = u64::try_from(delay.as_millis()).expect("a delay of less than an age");
    let hedge = Hedge::new_with_mock_latencies(
        Service(operation),
        AnyRequest,
        least_points,
        PERCENTILE,
        period,
        &[latency; 10],
    );
    Locked(Mutex::new(hedge))
}

/// Tower's hedge in a period that outlasts the benchmark, so that its first delay stays.
pub struct FixedPercentile;

impl Contender for FixedPercentile {
    const NAME: &'static str = "tower 0.5 hedge";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        tower_hedge(operation, delay, 1, Duration::from_hours(1))
    }
}

/// Tower's hedge as people run it: the percentile of the last second.
pub struct Adaptive;

impl Contender for Adaptive {
    const NAME: &'static str = "tower hedge, adaptive p95";
    const KIND: Kind = Kind::Library;
    const FIXED_DELAY: bool = false;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        tower_hedge(operation, delay, 10, Duration::from_secs(1))
    }
}
