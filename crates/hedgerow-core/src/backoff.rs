//! How long to wait before a try is repeated.

use std::time::Duration;

use crate::invalid::InvalidOption;
use crate::text::format_duration;

/// How the wait grows from retry to retry.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Growth {
    /// It does not: the base each time.
    Constant,
    /// By the base each time: once, twice, three times the base.
    Linear,
    /// By this factor each time; at least 1.
    Exponential(f64),
    /// By chance: between the base and three times the wait before, so that callers who failed
    /// together do not come back together.
    Decorrelated,
}

/// How long to wait before a try is repeated.
///
/// Pure arithmetic: chance comes in as a number. Whatever the numbers are, a wait is never negative
/// and never longer than `max`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    /// How the wait grows.
    pub growth: Growth,
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
    /// How much of the wait is left to chance, from 0 to 1: with 0.2 it is between 80 % and all of
    /// what it would be, with 1 between nothing and that.
    pub jitter: f64,
}

impl Backoff {
    /// The longest wait, unless it is set.
    pub const MAX: Duration = Duration::from_secs(30);

    /// Grows like this from `base` to [`MAX`](Backoff::MAX), without jitter.
    pub const fn new(growth: Growth, base: Duration) -> Self {
        Self { growth, base, max: Self::MAX, jitter: 0.0 }
    }

    /// Says which numbers are impossible.
    pub fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        let Self { growth, base, max, jitter } = *self;
        if let Growth::Exponential(factor) = growth
            && !(factor >= 1.0 && factor.is_finite())
        {
            let remedy = "each wait is so many times the one before; write a number from 1";
            mistakes.push(InvalidOption::new("factor", factor, remedy));
        }
        if max < base {
            mistakes.push(too_long(base, max));
        }
        if !(0.0..=1.0).contains(&jitter) {
            let remedy = "the share of the wait that is left to chance; write 0 to 1";
            mistakes.push(InvalidOption::new("jitter", jitter, remedy));
        }
    }

    /// The wait before this retry; 1 is the first. `before` is the wait before the previous one, if
    /// there was one, and `draw` a number from 0 to 1 by chance.
    pub fn delay(&self, retry: u32, before: Option<Duration>, draw: f64) -> Duration {
        if self.base.is_zero() {
            return Duration::ZERO; // nothing grows out of it
        }
        let base = self.base.as_secs_f64();
        let draw = draw.clamp(0.0, 1.0);
        let grown = match self.growth {
            Growth::Constant => return self.jittered(self.base.min(self.max), draw),
            Growth::Linear => base * f64::from(retry.max(1)),
            Growth::Exponential(factor) => base * factor.powf(f64::from(retry.max(1) - 1)),
            Growth::Decorrelated => {
                let most = before.unwrap_or(self.base).as_secs_f64() * 3.0;
                base + draw * (most - base).max(0.0)
            }
        };
        // What is too long for a duration, or was never a number, is the longest wait.
        let capped = Duration::try_from_secs_f64(grown).unwrap_or(self.max).min(self.max);
        match self.growth {
            Growth::Decorrelated => capped,
            _ => self.jittered(capped, draw),
        }
    }

    fn jittered(&self, delay: Duration, draw: f64) -> Duration {
        if self.jitter > 0.0 {
            let kept = 1.0 - self.jitter.min(1.0) * draw;
            Duration::try_from_secs_f64(delay.as_secs_f64() * kept).unwrap_or(delay).min(delay)
        } else {
            delay
        }
    }
}

/// That the first wait is longer than the longest: said of the one that was set.
fn too_long(base: Duration, max: Duration) -> InvalidOption {
    let (first, longest) = (format_duration(base), format_duration(max));
    if max == Backoff::MAX {
        let remedy = format!(
            "longer than the longest wait, max_delay = {longest}; raise max_delay, or lower base"
        );
        InvalidOption::new("base", first, remedy)
    } else {
        let remedy =
            format!("less than the first wait, as base = {first}; raise it, or lower base");
        InvalidOption::new("max_delay", longest, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn all(base: Duration, max: Duration, jitter: f64) -> Vec<Backoff> {
        let factors = [1.0, 1.5, 2.0, 1e9, f64::MAX].map(Growth::Exponential);
        let growths = [Growth::Constant, Growth::Linear, Growth::Decorrelated];
        let growths = growths.into_iter().chain(factors);
        growths.map(|growth| Backoff { growth, base, max, jitter }).collect()
    }

    #[test]
    fn pr_73_every_wait_is_between_nothing_and_the_longest() {
        let tries = (1..=5_000).chain([u32::MAX - 1, u32::MAX, 0]);
        let spans = [(2 * SECOND, 30 * SECOND), (Duration::ZERO, SECOND), (SECOND, Duration::MAX)];
        for (base, max) in spans {
            for jitter in [0.0, 0.3, 1.0] {
                for backoff in all(base, max, jitter) {
                    let mut before = None;
                    for retry in tries.clone() {
                        let draw = f64::from(retry % 11) / 10.0;
                        let delay = backoff.delay(retry, before, draw);
                        assert!(delay <= max, "{backoff:?} {retry}: {delay:?}");
                        assert!(!base.is_zero() || delay.is_zero(), "{backoff:?} {retry}");
                        before = Some(delay);
                    }
                }
            }
        }
    }

    #[test]
    fn pr_73_without_jitter_it_never_shrinks_and_stays_at_the_longest() {
        let backoff = Backoff::new(Growth::Exponential(2.0), 2 * SECOND);
        let delays: Vec<_> = (1..=5_000).map(|retry| backoff.delay(retry, None, 0.7)).collect();
        assert_eq!(delays[..4], [2, 4, 8, 16].map(Duration::from_secs));
        assert!(delays.is_sorted());
        assert!(delays[4..].iter().all(|delay| *delay == 30 * SECOND));
    }

    #[test]
    fn pr_73_the_spread_stays_the_same_at_the_longest() {
        let backoff = Backoff { jitter: 0.4, ..Backoff::new(Growth::Exponential(2.0), 2 * SECOND) };
        for retry in [5, 50, 5_000, u32::MAX] {
            assert_eq!(backoff.delay(retry, None, 0.0), 30 * SECOND);
            assert_eq!(backoff.delay(retry, None, 1.0), 18 * SECOND);
        }
    }

    #[test]
    fn each_growth_grows_as_it_says() {
        let delays = |growth| {
            let backoff = Backoff::new(growth, SECOND);
            [1, 2, 3].map(|retry| backoff.delay(retry, None, 0.0).as_secs())
        };
        assert_eq!(delays(Growth::Constant), [1, 1, 1]);
        assert_eq!(delays(Growth::Linear), [1, 2, 3]);
        assert_eq!(delays(Growth::Exponential(3.0)), [1, 3, 9]);
        let backoff = Backoff::new(Growth::Decorrelated, SECOND);
        assert_eq!(backoff.delay(1, None, 1.0), 3 * SECOND);
        assert_eq!(backoff.delay(2, Some(3 * SECOND), 1.0), 9 * SECOND);
        assert_eq!(backoff.delay(3, Some(9 * SECOND), 0.0), SECOND);
        assert_eq!(backoff.delay(4, Some(29 * SECOND), 1.0), 30 * SECOND);
    }

    #[test]
    fn impossible_numbers_are_refused_by_name() {
        let names = |backoff: Backoff| {
            let mut mistakes = Vec::new();
            backoff.check(&mut mistakes);
            mistakes.iter().map(|mistake| mistake.option().to_owned()).collect::<Vec<_>>()
        };
        let fine = Backoff::new(Growth::Exponential(1.0), SECOND);
        assert!(names(fine).is_empty());
        assert_eq!(names(Backoff { max: SECOND / 2, ..fine }), ["max_delay"]);
        assert_eq!(names(Backoff { base: 31 * SECOND, ..fine }), ["base"], "max is the default");
        assert_eq!(names(Backoff { base: 30 * SECOND, ..fine }), [""; 0]);
        for jitter in [-0.1, 1.1, f64::NAN] {
            assert_eq!(names(Backoff { jitter, ..fine }), ["jitter"]);
        }
        for factor in [0.9, -1.0, f64::NAN, f64::INFINITY] {
            let growth = Growth::Exponential(factor);
            assert_eq!(names(Backoff { growth, ..fine }), ["factor"]);
        }
    }
}
