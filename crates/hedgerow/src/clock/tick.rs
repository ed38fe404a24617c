//! The system's latest tick, some milliseconds ago: known without asking the processor, which takes a
//! tenth of the time.

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::time::{ClockId, clock_gettime};

use super::{Time, virtual_now};

/// A moment as the system counts: nanoseconds since some other, which [`Instant`] does not tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Tick(u64);

impl Time {
    /// The latest tick: at most 10 ms ago, and a few more where the system skips some. `None` where only
    /// the clock will do: time may be tokio's, which may be virtual, or that of a clock of one's own.
    #[inline]
    pub(crate) fn tick(&self) -> Option<Tick> {
        match self {
            Self::Own(_) => None,
            Self::Automatic if cfg!(feature = "tokio") => None,
            Self::Automatic | Self::Ring => {
                (Tick::TOLD && virtual_now().is_none()).then(Tick::latest)
            }
        }
    }
}

impl Tick {
    /// How long after `earlier` it is; zero if it is not.
    #[inline]
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Where nobody tells.
#[cfg(not(target_os = "linux"))]
impl Tick {
    const TOLD: bool = false;

    fn latest() -> Self {
        Self(0)
    }

    pub(crate) fn of(_: Instant) -> Self {
        Self(0)
    }
}

#[cfg(target_os = "linux")]
impl Tick {
    const TOLD: bool = true;

    #[inline]
    fn latest() -> Self {
        Self::by(ClockId::MonotonicCoarse)
    }

    /// This moment, or a little later.
    pub(crate) fn of(instant: Instant) -> Self {
        let look = || {
            let (now, tick) = (Instant::now(), Self::by(ClockId::Monotonic));
            (now.elapsed(), now, tick)
        };
        // Of several looks that during which the least else was done: a thread may be stopped anywhere.
        let looks = (1..16).map(|_| look());
        let shorter = |best: (Duration, _, _), next: (Duration, _, _)| {
            if next.0 < best.0 { next } else { best }
        };
        let (_, now, Self(tick)) = looks.fold(look(), shorter);
        let nanos = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let before = nanos(now.saturating_duration_since(instant));
        let after = nanos(instant.saturating_duration_since(now));
        Self(tick.saturating_sub(before).saturating_add(after))
    }

    /// What a clock of the system says, which is never negative.
    #[inline]
    fn by(clock: ClockId) -> Self {
        let now = clock_gettime(clock);
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        Self(part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn it_is_never_later_than_now_and_never_goes_back() {
        let mut before = Time::Ring.tick().unwrap();
        for _ in 0..10_000 {
            let tick = Time::Ring.tick().unwrap();
            assert!(before <= tick && tick <= Tick::of(Instant::now()));
            before = tick;
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn instants_are_as_far_apart_as_their_ticks() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3_600));
        let (tick, later) = (Tick::of(now), Tick::of(now + hour));
        // Both are right to the time that a look takes.
        assert!(later.since(tick).abs_diff(hour) < hour / 100, "{tick:?} {later:?}");
        assert_eq!(tick.since(later), Duration::ZERO);
    }

    #[test]
    fn a_clock_of_ones_own_has_none() {
        let time = Time::Own(std::sync::Arc::new(crate::ManualClock::new()));
        assert_eq!(time.tick(), None);
    }
}
