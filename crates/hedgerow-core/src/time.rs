//! Time as a value: a moment inside one call.

use std::fmt;
use std::time::Duration;

/// A moment, as nanoseconds since the start of the call.
///
/// The engine never reads a clock: whoever drives it says what time it is. Arithmetic saturates at
/// [`Moment::NEVER`], so that the largest duration means "never" instead of an overflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The start of the call.
    pub const ZERO: Self = Self(0);
    /// Later than any moment that can be reached.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `millis` milliseconds after the start, or [`Moment::NEVER`] past the range.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds since the start, with their fraction.
    #[expect(clippy::cast_precision_loss, reason = "a millisecond figure for people")]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The moment `by` later; [`Moment::NEVER`] if that is out of range.
    #[inline]
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// How long after `earlier` this moment is; zero if it is not.
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whether this is [`Moment::NEVER`].
    #[inline]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl From<Duration> for Moment {
    /// The moment this long after the start of the call.
    fn from(since_start: Duration) -> Self {
        Self::ZERO.after(since_start)
    }
}

impl fmt::Display for Moment {
    /// In milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            f.write_str("never")
        } else {
            write!(f, "{} ms", self.as_millis_f64())
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() { f.write_str("never") } else { write!(f, "{}ms", self.as_millis_f64()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_duration_means_never() {
        assert!(Moment::from_millis(5).after(Duration::MAX).is_never());
        assert!(Moment::from(Duration::MAX).is_never());
        assert_eq!(Moment::NEVER.after(Duration::from_secs(1)), Moment::NEVER);
    }

    #[test]
    fn time_that_ran_backwards_counts_as_none() {
        assert_eq!(Moment::ZERO.since(Moment::from_millis(3)), Duration::ZERO);
    }
}
