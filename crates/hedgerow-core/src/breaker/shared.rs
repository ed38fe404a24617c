//! One breaker for many: switched by hand even before it is known how it is set.

use std::fmt;

use super::{Breaker, BreakerSettings, BreakerState, Transition};
use crate::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A breaker that is made when it is known how it is set. What is done to it by hand before that
/// holds from then on.
#[derive(Default)]
pub struct SharedBreaker {
    made: OnceLock<Breaker>,
    /// What the hand did last. The breaker is made, and switched by hand, under this lock, so that
    /// whoever switches it meanwhile does so before it is made or after.
    isolated: Mutex<bool>,
}

impl SharedBreaker {
    /// The breaker; set like this, if it is not made yet.
    #[inline]
    pub fn get_or_make(&self, settings: &BreakerSettings) -> &Breaker {
        match self.made.get() {
            Some(breaker) => breaker,
            None => self.make(settings),
        }
    }

    #[cold]
    fn make(&self, settings: &BreakerSettings) -> &Breaker {
        let isolated = self.lock();
        self.made.get_or_init(|| {
            let breaker = Breaker::new(settings.clone());
            if *isolated {
                breaker.isolate();
            }
            breaker
        })
    }

    /// See [`Breaker::state`].
    pub fn state(&self) -> BreakerState {
        match self.made.get() {
            Some(breaker) => breaker.state(),
            None if *self.lock() => BreakerState::Isolated,
            None => BreakerState::Closed,
        }
    }

    /// See [`Breaker::isolate`]. `None`, too, if it is not made yet.
    pub fn isolate(&self) -> Option<Transition> {
        self.switch(true, Breaker::isolate)
    }

    /// See [`Breaker::reset`]. `None`, too, if it is not made yet.
    pub fn reset(&self) -> Option<Transition> {
        self.switch(false, Breaker::reset)
    }

    fn switch(
        &self,
        isolated: bool,
        switch: impl FnOnce(&Breaker) -> Option<Transition>,
    ) -> Option<Transition> {
        let mut latest = self.lock();
        *latest = isolated;
        self.made.get().and_then(switch)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        // Nothing panics under the lock.
        self.isolated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBreaker").field("state", &self.state()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_before_it_is_made_holds_from_then_on() {
        let settings = BreakerSettings::default();
        for (switches, expected) in [
            (vec![], BreakerState::Closed),
            (vec![true], BreakerState::Isolated),
            (vec![true, false], BreakerState::Closed),
            (vec![false, true], BreakerState::Isolated),
        ] {
            let shared = SharedBreaker::default();
            for isolated in switches {
                let told = if isolated { shared.isolate() } else { shared.reset() };
                assert_eq!(told, None, "there is nothing yet that changes");
            }
            assert_eq!(shared.state(), expected);
            assert_eq!(shared.get_or_make(&settings).state(), expected);
            assert_eq!(shared.state(), expected);
        }
    }

    #[test]
    fn it_is_made_once_and_switched_after_that() {
        let shared = SharedBreaker::default();
        let probes = |probes| BreakerSettings { probes, ..BreakerSettings::default() };
        assert_eq!(shared.get_or_make(&probes(1)).settings().probes, 1);
        assert_eq!(shared.get_or_make(&probes(2)).settings().probes, 1);
        assert_eq!(shared.isolate().map(|told| told.state), Some(BreakerState::Isolated));
        assert_eq!(shared.isolate(), None);
        assert_eq!(shared.get_or_make(&probes(1)).state(), BreakerState::Isolated);
        assert_eq!(shared.reset().map(|told| told.state), Some(BreakerState::Closed));
    }
}
