//! The system's latest tick, which Linux tells.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The moment of the latest tick, as an [`Instant`]. Never later than now, nor before the first call.
#[inline]
pub(super) fn tick() -> Instant {
    /// Both clocks count from the same moment, which `Instant` does not tell: what they said at once.
    static START: OnceLock<(Instant, Duration)> = OnceLock::new();

    let (start, since) = START.get_or_init(at_once);
    *start + read(ClockId::MonotonicCoarse).saturating_sub(*since)
}

/// The same moment by both clocks: of several tries that between which the least else was done, as a
/// thread may be stopped anywhere.
fn at_once() -> (Instant, Duration) {
    let look = || {
        let (before, since) = (Instant::now(), read(ClockId::Monotonic));
        (before.elapsed(), before, since)
    };
    let shorter = |best: (Duration, _, _), next: (Duration, _, _)| {
        if next.0 < best.0 { next } else { best }
    };
    let (_, start, since) = (1..16).map(|_| look()).fold(look(), shorter);
    (start, since)
}

/// Neither clock is ever negative.
fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
