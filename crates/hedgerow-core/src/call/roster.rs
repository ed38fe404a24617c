//! Who started, who runs, who failed in which order.

use crate::options::MOST_HEDGES;
use crate::time::Moment;

/// The primary and every hedge.
const MOST: u8 = MOST_HEDGES + 1;

/// The attempts of one call, by their number: 0 is the primary.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    started: u8,
    running: u16,
    failed: [u8; MOST as usize],
    failures: u8,
    latest_start: Moment,
}

impl Roster {
    /// How many attempts started; the next one gets this number.
    pub(super) fn started(&self) -> u8 {
        self.started
    }

    pub(super) fn is_running(&self, attempt: u8) -> bool {
        attempt < self.started && self.running & (1 << attempt) != 0
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// The attempts that run, in launch order.
    pub(super) fn running(&self) -> impl Iterator<Item = u8> + use<> {
        let mut running = self.running;
        std::iter::from_fn(move || {
            let attempt = u8::try_from(running.trailing_zeros()).ok().filter(|n| *n < MOST)?;
            running &= running - 1;
            Some(attempt)
        })
    }

    /// The failures so far, in completion order.
    pub(super) fn failed(&self) -> &[u8] {
        &self.failed[..usize::from(self.failures)]
    }

    pub(super) fn latest_start(&self) -> Moment {
        self.latest_start
    }

    pub(super) fn start(&mut self, now: Moment) -> u8 {
        let attempt = self.started;
        self.latest_start = now;
        self.running |= 1 << attempt;
        self.started += 1;
        attempt
    }

    /// Takes the attempt off the running ones.
    pub(super) fn end(&mut self, attempt: u8) {
        self.running &= !(1 << attempt);
    }

    pub(super) fn fail(&mut self, attempt: u8) {
        self.failed[usize::from(self.failures)] = attempt;
        self.failures += 1;
    }

    /// Forgets what runs: it goes on without the call.
    pub(super) fn let_go(&mut self) {
        self.running = 0;
    }
}
