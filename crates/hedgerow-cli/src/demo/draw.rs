//! Chance by seed: how long an embedded server takes for an answer, and when calls arrive.
//!
//! A service time depends on the seed, the call and the attempt, and on nothing that varies from
//! run to run. Both phases therefore meet the same stalls at the same calls, and the difference
//! between them is hedging and not luck.

use std::{f64::consts::TAU, time::Duration};

/// Service time that half of the answers stay below, stalls aside.
const BODY_MEDIAN: Duration = Duration::from_millis(4);
/// Spread of the logarithm of the service time: one answer in a thousand takes about five medians.
const BODY_SIGMA: f64 = 0.5;
/// Share of answers that stall.
const STALLS: f64 = 0.025;
/// Shortest stall, and how much longer others are.
const STALL_MIN: Duration = Duration::from_millis(200);
const STALL_SPREAD: Duration = Duration::from_millis(200);

/// How long the server takes for this attempt of this call.
pub(super) fn service_time(seed: u64, call: u64, attempt: u64) -> Duration {
    let mut dice = Dice::new(seed).fork(call).fork(attempt);
    let body = BODY_MEDIAN.mul_f64((BODY_SIGMA * dice.normal()).exp());
    if dice.unit() < STALLS { body + STALL_MIN + STALL_SPREAD.mul_f64(dice.unit()) } else { body }
}

/// The `SplitMix64` generator: small, well mixed from neighbouring seeds, and the same on every
/// machine and in every release.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Independent dice for one of many numbered purposes.
    fn fork(mut self, purpose: u64) -> Self {
        Self(self.next() ^ Self(purpose).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept, as many as the type holds")]
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box-Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 20_000;

    fn draws() -> Vec<Duration> {
        let mut times: Vec<_> = (0..DRAWS).map(|call| service_time(1, call, 0)).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.next(), 6_457_827_717_110_365_317);
        assert_eq!(dice.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_service_time_depends_on_seed_call_and_attempt_only() {
        assert_eq!(service_time(1, 2, 3), service_time(1, 2, 3));
        let others = [
            service_time(2, 2, 3),
            service_time(1, 3, 3),
            service_time(1, 2, 2),
            service_time(1, 3, 2),
        ];
        assert!(!others.contains(&service_time(1, 2, 3)));
    }

    #[test]
    fn the_body_is_short_and_stalls_are_rare_and_long() {
        let times = draws();
        let median = times[times.len() / 2];
        assert!(
            median > Duration::from_millis(3) && median < Duration::from_millis(5),
            "{median:?}"
        );
        let stalled = times.iter().filter(|time| **time >= STALL_MIN).count();
        assert!((400..600).contains(&stalled), "{stalled}");
        assert!(times.iter().all(|time| *time < Duration::from_secs(1)));
    }
}
