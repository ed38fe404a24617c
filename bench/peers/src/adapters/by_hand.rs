//! Hedges as people write them without a library. First success wins, else the last failure.

use std::pin::pin;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use counts::operation::{Failure, Operation, Outcome};
use counts::scheduler::in_turns;
use tokio::select;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::contender::{Call, Contender, Kind};

/// With `select!`, everything in one future.
pub struct Select;

struct SelectCall<O> {
    operation: O,
    delay: Duration,
}

impl<O: Operation> Call for SelectCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let mut primary = pin!(self.operation.start(request));
        select! {
            biased;
            outcome = &mut primary => return outcome,
            () = sleep(self.delay) => {}
        }
        let mut hedge = pin!(self.operation.start(request));
        select! {
            biased;
            outcome = &mut primary => if outcome.is_ok() { outcome } else { hedge.await },
            outcome = &mut hedge => if outcome.is_ok() { outcome } else { primary.await },
        }
    }
}

impl Contender for Select {
    const NAME: &'static str = "hand select!";
    const KIND: Kind = Kind::ByHand;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        SelectCall { operation, delay }
    }
}

/// The same with a bucket of tokens: a call earns a tenth of a hedge, and at most 20 are saved up.
/// Shows in the overload runs what a budget alone is worth.
pub struct SelectWithBudget;

/// What a hedge takes from the bucket; a call puts in one.
const HEDGE_PRICE: i64 = 10;
const FULL_BUCKET: i64 = 20 * HEDGE_PRICE;

struct SelectWithBudgetCall<O> {
    operation: O,
    delay: Duration,
    bucket: AtomicI64,
}

impl<O> SelectWithBudgetCall<O> {
    fn earn(&self) {
        if self.bucket.load(Relaxed) < FULL_BUCKET {
            self.bucket.fetch_add(1, Relaxed);
        }
    }

    fn pay(&self) -> bool {
        let paid = |tokens| (tokens >= HEDGE_PRICE).then_some(tokens - HEDGE_PRICE);
        self.bucket.fetch_update(Relaxed, Relaxed, paid).is_ok()
    }
}

impl<O: Operation> Call for SelectWithBudgetCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let mut primary = pin!(self.operation.start(request));
        self.earn();
        select! {
            biased;
            outcome = &mut primary => return outcome,
            () = sleep(self.delay) => {}
        }
        if !self.pay() {
            return primary.await;
        }
        let mut hedge = pin!(self.operation.start(request));
        select! {
            biased;
            outcome = &mut primary => if outcome.is_ok() { outcome } else { hedge.await },
            outcome = &mut hedge => if outcome.is_ok() { outcome } else { primary.await },
        }
    }
}

impl Contender for SelectWithBudget {
    const NAME: &'static str = "hand select! + 10 % budget";
    const KIND: Kind = Kind::ByHand;
    const FIXED_DELAY: bool = false;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        SelectWithBudgetCall { operation, delay, bucket: AtomicI64::new(FULL_BUCKET) }
    }
}

/// With a task per attempt.
pub struct Spawned;

struct SpawnedCall<O> {
    operation: O,
    delay: Duration,
}

impl<O: Operation> Call for SpawnedCall<O> {
    async fn call(&self, request: u64) -> Outcome {
        let mut attempts = JoinSet::new();
        attempts.spawn(in_turns(self.operation.start(request)));
        let mut failure = match timeout(self.delay, attempts.join_next()).await {
            Ok(Some(Ok(outcome))) => return outcome,
            Ok(Some(Err(error))) => return Err(Failure::new(error.to_string())),
            Ok(None) | Err(_) => Failure::new("no attempt has ended"),
        };
        attempts.spawn(in_turns(self.operation.start(request)));
        while let Some(ended) = attempts.join_next().await {
            match ended {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = Failure::new(error.to_string()),
            }
        }
        Err(failure)
    }
}

impl Contender for Spawned {
    const NAME: &'static str = "hand JoinSet";
    const KIND: Kind = Kind::ByHand;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        SpawnedCall { operation, delay }
    }
}
