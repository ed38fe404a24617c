//! One call in flight, whatever world it is in: the same [`Call`] that people deploy.

use hedgerow_core::{Call, Decision, Moment, Step};

use crate::servers::Used;
use crate::stats::Stats;
use crate::strategy::Strategy;
use crate::work::Draws;

/// What a world does for a call.
pub(crate) trait World {
    /// Sends an attempt off.
    fn start(&mut self, attempt: u8);

    /// Where the call's primary went, once it has.
    fn server(&self) -> Option<u32>;

    /// Tells what still runs to stop.
    fn release(&mut self);
}

/// Does what the call wants done now. Answers when it wants to be asked again; `None` if it is over.
#[inline]
pub(crate) fn obey(
    call: &mut Call,
    strategy: &Strategy,
    now: Moment,
    world: &mut impl World,
) -> Option<Moment> {
    loop {
        let policy = strategy.policy_of(world.server());
        match call.step(policy, now) {
            Step::AskDelay { hedge } => call.delay(strategy.delay(policy, hedge, call.draw())),
            Step::Start { attempt, .. } => {
                call.started(policy, now);
                world.start(attempt);
            }
            Step::Release => world.release(),
            Step::Wait { until } => return Some(until),
            Step::Finish(_) => return None,
        }
    }
}

/// What a call carries from attempt to attempt.
#[derive(Clone, Debug)]
pub(crate) struct Copies {
    pub(crate) draws: Draws,
    pub(crate) used: Used,
    /// The step in which the call's request arrived.
    pub(crate) step: usize,
    /// Which attempts are with a server, one bit each.
    with_server: u16,
}

impl Copies {
    pub(crate) fn new(draws: Draws, step: usize) -> Self {
        Self { draws, used: Used::default(), step, with_server: 0 }
    }

    pub(crate) fn sent(&mut self, attempt: u8) {
        self.with_server |= 1 << attempt;
    }

    pub(crate) fn back(&mut self, attempt: u8) {
        self.with_server &= !(1 << attempt);
    }

    /// The attempts that are with a server, in launch order.
    pub(crate) fn with_server(&self) -> impl Iterator<Item = usize> + use<> {
        let mut bits = self.with_server;
        std::iter::from_fn(move || {
            let attempt = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (attempt < 16).then_some(attempt)
        })
    }
}

impl Stats {
    /// Counts a call that is over.
    pub(crate) fn count_call(&mut self, call: &Call) {
        self.calls += 1;
        self.hedges += u64::from(call.started_attempts().saturating_sub(1));
        self.won += u64::from(matches!(call.decision(), Some(Decision::Accepted(1..))));
        self.refused += u64::from(call.closed().is_some());
    }

    /// Counts a request that is over.
    pub(crate) fn count_request(&mut self, latency: u64, in_time: bool) {
        self.latency.record(latency);
        self.in_time += u64::from(in_time);
    }
}
