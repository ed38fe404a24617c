//! What a call costs without hedging.

use std::pin::Pin;
use std::time::Duration;

use counts::operation::{Failure, Operation, Outcome};
use tokio::time::timeout;

use crate::contender::{Call, Contender, Kind};

/// The operation itself.
pub struct Bare;

struct BareCall<O> {
    operation: O,
}

impl<O: Operation> Call for BareCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        self.operation.start(request).await
    }
}

impl Contender for Bare {
    const NAME: &'static str = "bare call";
    const KIND: Kind = Kind::Bare;

    fn build<O: Operation>(operation: O, _: Duration) -> impl Call {
        BareCall { operation }
    }
}

/// The operation in a box, as every call of an async trait object is.
pub struct Boxed;

struct BoxedCall<O> {
    operation: O,
}

impl<O: Operation> Call for BoxedCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let attempt: Pin<Box<dyn Future<Output = Outcome> + Send>> =
            Box::pin(self.operation.start(request));
        attempt.await
    }
}

impl Contender for Boxed {
    const NAME: &'static str = "boxed call";
    const KIND: Kind = Kind::Baseline;

    fn build<O: Operation>(operation: O, _: Duration) -> impl Call {
        BoxedCall { operation }
    }
}

/// The operation under tokio's timeout, after the delay that others hedge after.
pub struct Timeout;

struct TimeoutCall<O> {
    operation: O,
    limit: Duration,
}

impl<O: Operation> Call for TimeoutCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        match timeout(self.limit, self.operation.start(request)).await {
            Ok(outcome) => outcome,
            Err(elapsed) => Err(Failure::new(elapsed.to_string())),
        }
    }
}

impl Contender for Timeout {
    const NAME: &'static str = "tokio timeout";
    const KIND: Kind = Kind::Baseline;

    fn build<O: Operation>(operation: O, limit: Duration) -> impl Call {
        TimeoutCall { operation, limit }
    }
}
