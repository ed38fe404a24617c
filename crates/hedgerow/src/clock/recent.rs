//! What time it was at the system's latest tick: known without asking the processor, which takes a
//! tenth of the time.

use std::time::Instant;

#[cfg(target_os = "linux")]
use super::tick::tick;
use super::{Time, virtual_now};

impl Time {
    /// What time it is, or was some milliseconds ago: at most 10, and a few more where the system
    /// skips ticks. Exact where time may be tokio's, as it may be virtual, and by a clock of one's own.
    #[inline]
    pub(crate) fn recent(&self) -> Instant {
        match self {
            Self::Automatic if cfg!(feature = "tokio") => self.clock().now(),
            Self::Automatic | Self::Ring => virtual_now().unwrap_or_else(tick),
            Self::Own(clock) => clock.now(),
        }
    }
}

/// The moment itself, where nothing is cheaper.
#[cfg(not(target_os = "linux"))]
#[inline]
fn tick() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn it_is_never_later_than_now_and_never_goes_back() {
        let mut before = Time::Ring.recent();
        for _ in 0..10_000 {
            let recent = Time::Ring.recent();
            assert!(before <= recent && recent <= Instant::now());
            before = recent;
        }
    }

    #[test]
    fn a_clock_of_ones_own_is_exact() {
        let clock = crate::ManualClock::new();
        let time = Time::Own(Arc::new(clock.clone()));
        clock.advance(std::time::Duration::from_nanos(1_234_567));
        assert_eq!(time.recent(), clock.now());
    }
}
