//! Whole pipelines, the same in every library: a timeout of 1 s around two retries 10 ms apart,
//! around a circuit breaker, around the hedge.

use std::time::Duration;

use counts::operation::{Failure, Operation};
use layered::{Execute, Stack};
use seatbelt::breaker::Breaker;
use seatbelt::hedging::Hedging;
use seatbelt::retry::Retry;
use seatbelt::timeout::Timeout;
use tower::Layer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_hedge::HedgeLayer;
use tower_resilience_retry::RetryLayer;
use tower_resilience_timelimiter::TimeLimiterLayer;

use super::seatbelt::{Executed, context, recovery};
use super::tower::{Cloned, Service};
use crate::contender::{Call, Contender, Kind};

pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const RETRIES: u32 = 2;
pub(super) const BACKOFF: Duration = Duration::from_millis(10);

/// Of `seatbelt`.
pub struct Seatbelt;

impl Contender for Seatbelt {
    const NAME: &'static str = "pipeline of seatbelt";
    const KIND: Kind = Kind::Pipeline;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let context = context();
        let timeout = Timeout::layer("timeout", &context)
            .timeout_error(|_| Failure::new("timeout"))
            .timeout(TIMEOUT);
        let retry = Retry::layer("retry", &context)
            .clone_input()
            .recovery_with(|outcome, _| recovery(outcome))
            .max_retry_attempts(RETRIES)
            .base_delay(BACKOFF);
        let breaker = Breaker::layer("breaker", &context)
            .recovery_with(|outcome, _| recovery(outcome))
            .rejected_input_error(|_, _| Failure::new("open"));
        let hedging = Hedging::layer("hedge", &context)
            .clone_input()
            .recovery_with(|outcome, _| recovery(outcome))
            .hedging_delay(delay)
            .max_hedged_attempts(1);
        let work = Execute::new(move |request: u64| operation.start(request));
        Executed((timeout, retry, breaker, hedging, work).into_service())
    }
}

/// Of the `tower-resilience` crates.
pub struct TowerResilience;

impl Contender for TowerResilience {
    const NAME: &'static str = "pipeline of tower-resilience";
    const KIND: Kind = Kind::Pipeline;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let attempts = usize::try_from(RETRIES + 1).expect("a few attempts");
        let timeout = TimeLimiterLayer::builder().timeout_duration(TIMEOUT).build();
        let retry = RetryLayer::builder().max_attempts(attempts).fixed_backoff(BACKOFF).build();
        let breaker = CircuitBreakerLayer::builder().build().expect("valid defaults");
        let hedge = HedgeLayer::builder().delay(delay).max_hedged_attempts(2).build();
        Cloned(timeout.layer(retry.layer(breaker.layer(hedge.layer(Service(operation))))))
    }
}
