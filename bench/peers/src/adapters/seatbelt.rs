//! The hedge of `seatbelt`, on its own service trait and on tower's.

use std::time::Duration;

use counts::operation::{Operation, Outcome};
use layered::{Execute, Layer};
use seatbelt::hedging::Hedging;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;

use super::tower::{Cloned, Service};
use crate::contender::{Call, Contender, Kind};

/// A layered service as a contender.
pub(super) struct Executed<S>(pub(super) S);

impl<S> Call for Executed<S>
where
    S: layered::Service<u64, Out = Outcome> + 'static,
{
    fn call(&self, request: u64) -> impl Future<Output = Outcome> + Send {
        self.0.execute(request)
    }
}

/// Every failure is worth another attempt.
pub(super) fn recovery(outcome: &Outcome) -> RecoveryInfo {
    if outcome.is_ok() { RecoveryInfo::never() } else { RecoveryInfo::retry() }
}

/// Clock and telemetry of a contender, on the runtime that it is built in.
pub(super) fn context() -> ResilienceContext<u64, Outcome> {
    ResilienceContext::new(Clock::new_tokio())
}

/// On `layered`, seatbelt's own service trait.
pub struct Layered;

impl Contender for Layered {
    const NAME: &'static str = "seatbelt 0.11";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let hedging = Hedging::layer("hedge", &context())
            .clone_input()
            .recovery_with(|outcome, _| recovery(outcome))
            .hedging_delay(delay)
            .max_hedged_attempts(1);
        Executed(hedging.layer(Execute::new(move |request: u64| operation.start(request))))
    }
}

/// On tower.
pub struct AsTower;

impl Contender for AsTower {
    const NAME: &'static str = "seatbelt (tower)";
    const KIND: Kind = Kind::Library;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let hedging = Hedging::layer("hedge", &context())
            .clone_input()
            .recovery_with(|outcome, _| recovery(outcome))
            .hedging_delay(delay)
            .max_hedged_attempts(1);
        Cloned(hedging.layer(Service(operation)))
    }
}
