//! Work that is done now and then, by whoever comes first.

use std::time::Duration;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};
use crate::time::Moment;

/// Something that one thread at a time looks after, at most once in each interval. The others do
/// not wait for it.
pub(super) struct Rounds<T> {
    thing: Mutex<T>,
    every: Duration,
    /// When the next round is due, in nanoseconds.
    next: AtomicU64,
}

impl<T> Rounds<T> {
    /// The first round is due at once.
    pub(super) fn new(thing: T, every: Duration) -> Self {
        Self { thing: Mutex::new(thing), every, next: AtomicU64::new(0) }
    }

    /// Whether a round may be due: what is cheap to ask all the time.
    #[inline]
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now.as_nanos() >= self.next.load(Ordering::Relaxed)
    }

    /// Begins the round, which lasts as long as the guard; `None` if somebody else is at it or has
    /// just been.
    pub(super) fn begin(&self, now: Moment) -> Option<MutexGuard<'_, T>> {
        let thing = self.thing.try_lock().ok()?;
        // Who came here while another finished a round has been overtaken.
        if !self.is_due(now) {
            return None;
        }
        self.next.store(now.after(self.every).as_nanos(), Ordering::Relaxed);
        Some(thing)
    }

    /// The next round is not due before this. For whoever is at a round.
    pub(super) fn put_off(&self, until: Moment) {
        self.next.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// The thing between two rounds: waits for one that is under way, and keeps the next from
    /// beginning.
    pub(super) fn between(&self) -> MutexGuard<'_, T> {
        self.thing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_due_once_in_each_interval() {
        let rounds = Rounds::new((), Duration::from_millis(50));
        let begins = |ms| rounds.begin(Moment::from_millis(ms)).is_some();
        assert!(begins(0));
        assert!(!begins(0) && !begins(49));
        assert!(begins(50), "and not on a grid:");
        assert!(!begins(99) && begins(140) && !begins(189) && begins(190));
    }

    #[test]
    fn nobody_waits_for_a_round() {
        let rounds = Rounds::new((), Duration::from_millis(50));
        let round = rounds.begin(Moment::ZERO);
        assert!(rounds.begin(Moment::from_millis(60)).is_none());
        drop(round);
        assert!(rounds.begin(Moment::from_millis(60)).is_some());
    }
}
