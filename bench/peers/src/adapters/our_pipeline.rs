//! Hedgerow's pipeline: the same strategies as those of the others in [`pipelines`](super::pipelines).

use std::time::Duration;

use counts::operation::{Failure, Operation, Outcome};
use hedgerow::Hedge;
use hedgerow::pipeline::{
    CircuitBreaker, End, Hedging, Pipeline, PipelineError, Retry, Then, Timeout,
};

use super::pipelines::{BACKOFF, RETRIES, TIMEOUT};
use crate::contender::{Call, Contender, Kind};

type Stack = Then<Timeout, Then<Retry, Then<CircuitBreaker, Then<Hedging, End>>>>;

struct Executed<O> {
    pipeline: Pipeline<Stack>,
    operation: O,
}

impl<O: Operation> Executed<O> {
    fn new(operation: O, delay: Duration, on_ring: bool) -> Self {
        let builder = Pipeline::builder()
            .timeout(TIMEOUT)
            .retry(Retry::constant().base(BACKOFF).max_retries(RETRIES))
            .circuit_breaker(CircuitBreaker::default())
            .hedge(Hedge::after(delay).max_hedges(1));
        let builder = if on_ring { builder.ring_timer() } else { builder };
        Self { pipeline: builder.build().expect("valid settings"), operation }
    }
}

impl<O: Operation> Call for Executed<O> {
    async fn call(&self, request: u64) -> Outcome {
        let outcome = self.pipeline.execute(move |_| self.operation.start(request)).await;
        outcome.map_err(|error| match error {
            PipelineError::Failed(failure) => failure,
            other => Failure::new(other.to_string()),
        })
    }
}

/// Tokio's timer.
pub struct OurPipeline;

impl Contender for OurPipeline {
    const NAME: &'static str = "pipeline of hedgerow";
    const KIND: Kind = Kind::Pipeline;
    const OURS: bool = true;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        Executed::new(operation, delay, false)
    }
}

/// The same by the ring timer.
pub struct OnRing;

impl Contender for OnRing {
    const NAME: &'static str = "pipeline of hedgerow, ring";
    const KIND: Kind = Kind::Pipeline;
    const OURS: bool = true;
    const REAL_TIME: bool = true;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        Executed::new(operation, delay, true)
    }
}
