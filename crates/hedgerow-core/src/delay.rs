//! When the next attempt is due.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::text::format_duration;

/// How long to wait, from the start of the latest attempt, before the next one starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delay {
    /// This long. Zero is the same as [`Delay::Immediately`]; [`Duration::MAX`] means never.
    After(Duration),
    /// At once: all attempts run in parallel, each polled once before the next one starts.
    Immediately,
    /// Only after a failure: the next attempt is a fallback, never a copy of a slow one.
    OnFailure,
}

impl Delay {
    /// Reads a signed number of milliseconds: positive waits, zero starts at once, negative waits
    /// for a failure. This is how systems without an enum spell the three modes (T14-T16).
    ///
    /// ```
    /// use hedgerow_core::Delay;
    /// assert_eq!(Delay::from_signed_millis(-1), Delay::OnFailure);
    /// ```
    pub fn from_signed_millis(millis: i64) -> Self {
        match u64::try_from(millis) {
            Err(_) => Self::OnFailure,
            Ok(0) => Self::Immediately,
            Ok(millis) => Self::After(Duration::from_millis(millis)),
        }
    }
}

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Self {
        Self::After(delay)
    }
}

impl fmt::Display for Delay {
    /// As a configuration file spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(delay) => f.write_str(&format_duration(*delay)),
            Self::Immediately => f.write_str("immediately"),
            Self::OnFailure => f.write_str("on-failure"),
        }
    }
}

/// The delay of each hedge in turn.
#[derive(Clone, PartialEq, Debug)]
pub enum Schedule {
    /// The same delay before every hedge.
    Every(Delay),
    /// One delay per hedge; the last entry repeats. An empty list never starts a hedge by itself.
    Steps(Arc<[Delay]>),
}

impl Schedule {
    /// The delay before hedge number `hedge` (1 is the first).
    #[inline]
    pub fn delay(&self, hedge: u8) -> Delay {
        match self {
            Self::Every(delay) => *delay,
            Self::Steps(steps) => {
                let index = usize::from(hedge.saturating_sub(1));
                steps.get(index).or_else(|| steps.last()).copied().unwrap_or(Delay::OnFailure)
            }
        }
    }
}

impl<D: Into<Delay>> From<D> for Schedule {
    fn from(delay: D) -> Self {
        Self::Every(delay.into())
    }
}

impl<const N: usize> From<[Delay; N]> for Schedule {
    fn from(steps: [Delay; N]) -> Self {
        Self::Steps(Arc::from(steps))
    }
}

impl From<Vec<Delay>> for Schedule {
    fn from(steps: Vec<Delay>) -> Self {
        Self::Steps(Arc::from(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_repeats() {
        let schedule = Schedule::from([Delay::After(Duration::from_millis(100)), Delay::OnFailure]);
        assert_eq!(schedule.delay(1), Delay::After(Duration::from_millis(100)));
        assert_eq!(schedule.delay(2), Delay::OnFailure);
        assert_eq!(schedule.delay(9), Delay::OnFailure);
        assert_eq!(Schedule::from(vec![]).delay(1), Delay::OnFailure);
    }

    #[test]
    fn signs_spell_the_three_modes() {
        assert_eq!(Delay::from_signed_millis(150), Delay::After(Duration::from_millis(150)));
        assert_eq!(Delay::from_signed_millis(0), Delay::Immediately);
        assert_eq!(Delay::from_signed_millis(i64::MIN), Delay::OnFailure);
    }
}
