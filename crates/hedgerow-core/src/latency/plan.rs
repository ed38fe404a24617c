//! What a learner has decided, in one word that every call can read at once.

use std::time::Duration;

use super::buckets::Bucket;

/// When to hedge: the first timer with a probability, the second for calls that lost the coin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The delay of calls that win the coin; `None` while nothing is known.
    pub delay: Option<Duration>,
    /// The chance to win it.
    pub probability: f64,
    /// The delay of calls that lost it; `None`: they are not hedged.
    pub backstop: Option<Duration>,
}

impl Plan {
    /// Nothing is known: no hedge.
    pub const COLD: Self = Self { delay: None, probability: 0.0, backstop: None };

    /// The word of a learner that has no plan of its own: no plan packs to it.
    pub(super) const FOLLOWS: u64 = u64::MAX;

    const NONE: u64 = 0xFFFF;
    const CERTAIN: u64 = 0xFFFF;

    /// The same, with no delay shorter than `min` or longer than `max`.
    #[inline]
    pub(super) fn within(self, min: Duration, max: Duration) -> Self {
        let within = |delay: Duration| delay.min(max).max(min);
        let (delay, backstop) = (self.delay.map(within), self.backstop.map(within));
        Self { delay, backstop, ..self }
    }

    /// Delay as a float of nanoseconds (32 bits), probability (16), backstop as a bucket (16).
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few significant digits of a latency, and a probability in sixteen bits"
    )]
    pub(super) fn pack(self) -> u64 {
        let delay = self.delay.map_or(f32::INFINITY, |delay| delay.as_nanos() as f32);
        let probability = (self.probability.clamp(0.0, 1.0) * Self::CERTAIN as f64) as u64;
        let backstop = self.backstop.map_or(Self::NONE, |delay| Bucket::of(delay).index() as u64);
        u64::from(delay.to_bits()) << 32 | probability << 16 | backstop
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "what was packed"
    )]
    pub(super) fn unpack(word: u64) -> Self {
        let delay = f32::from_bits((word >> 32) as u32);
        let delay = delay.is_finite().then(|| Duration::from_nanos(delay as u64));
        let probability = ((word >> 16) & 0xFFFF) as f64 / Self::CERTAIN as f64;
        let backstop = word & 0xFFFF;
        let backstop = (backstop != Self::NONE)
            .then(|| Duration::from_nanos(Bucket::at(backstop as usize).upper()));
        Self { delay, probability, backstop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_its_word() {
        assert_ne!(Plan::COLD.pack(), Plan::FOLLOWS);
        assert_ne!(Plan { probability: 1.0, ..Plan::COLD }.pack(), Plan::FOLLOWS);
        assert_eq!(Plan::unpack(Plan::COLD.pack()), Plan::COLD);
        let plan = Plan {
            delay: Some(Duration::from_micros(12_430)),
            probability: 0.909,
            backstop: Some(Duration::from_millis(20)),
        };
        let read = Plan::unpack(plan.pack());
        let near =
            |a: Duration, b: Duration| (a.as_secs_f64() / b.as_secs_f64() - 1.0).abs() < 0.04;
        assert!(near(read.delay.unwrap(), Duration::from_micros(12_430)));
        assert!((read.probability - 0.909).abs() < 1e-4);
        assert!(near(read.backstop.unwrap(), Duration::from_millis(20)));
        let certain = Plan { probability: 1.0, backstop: None, ..plan };
        assert!((Plan::unpack(certain.pack()).probability - 1.0).abs() < 1e-12);
        assert_eq!(Plan::unpack(certain.pack()).backstop, None);
    }
}
