//! How sure figures from samples are.

use super::curve::FineCurve;
use super::figures::{Interval, Quantiles};
use super::latencies::{Latencies, real};
use super::solve::Plan;

/// The normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.96;
/// How often the counts are drawn anew.
const REPLICATES: usize = 200;
/// From here on a Poisson count is drawn as a normal one.
const LARGE: f64 = 24.0;
/// Fewer samples than this beyond a latency do not bound it from above.
const LEAST_BEYOND: f64 = 4.0;

/// The interval of each quantile of the samples: between those that the ranks allow, whatever the
/// distribution.
pub(super) fn ranks(curve: &FineCurve, samples: u64) -> Quantiles<Interval> {
    let n = real(samples.max(1));
    Quantiles::of(|chance| {
        let margin = Z * (chance * (1.0 - chance) / n).sqrt() + 0.5 / n;
        let low = curve.exceeded_with((chance + margin).min(1.0));
        let high = (chance > margin).then(|| curve.exceeded_with(chance - margin));
        Interval { low, high }
    })
}

/// What resampling says of a plan.
pub(super) struct Resampled {
    pub(super) quantiles: Quantiles<Interval>,
    /// The gain at the target, as a share: low and high end.
    pub(super) gain: (f64, f64),
}

/// Draws the counts anew, a Poisson number for each bucket, and looks how the prediction varies.
pub(super) fn resample(
    latencies: &Latencies,
    curve: &FineCurve,
    plan: &Plan,
    allowed: f64,
    seed: u64,
) -> Resampled {
    let mut dice = Dice(seed);
    let counts: Vec<f64> = latencies.buckets().map(|(.., count)| real(count)).collect();
    let mut drawn = vec![0.0; counts.len()];
    let mut replicates = Vec::with_capacity(REPLICATES);
    let mut gains = Vec::with_capacity(REPLICATES);
    for _ in 0..REPLICATES {
        for (drawn, count) in drawn.iter_mut().zip(&counts) {
            *drawn = dice.poisson(*count);
        }
        if drawn.iter().all(|count| *count == 0.0) {
            continue;
        }
        let curve = curve.with_counts(&drawn);
        replicates.push(Quantiles::of(|chance| curve.hedged(chance, plan)).each());
        gains.push(gain(&curve, plan, allowed));
    }
    let samples = real(latencies.count());
    let mut place = 0;
    let quantiles = Quantiles::of(|_| {
        let mut values: Vec<f64> = replicates.iter().map(|each| each[place]).collect();
        place += 1;
        let (low, high) = middle(&mut values);
        let beyond = samples * curve.survival(high);
        Interval { low, high: (beyond >= LEAST_BEYOND).then_some(high) }
    });
    Resampled { quantiles, gain: middle(&mut gains) }
}

/// How much sooner the target is reached with a plan, as a share.
pub(super) fn gain(curve: &FineCurve, plan: &Plan, allowed: f64) -> f64 {
    let without = curve.exceeded_with(allowed);
    if without > 0.0 { 1.0 - curve.hedged(allowed, plan) / without } else { 0.0 }
}

/// The ends of the middle 95 %.
fn middle(values: &mut [f64]) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 40;
    match (values.get(cut), values.len().checked_sub(cut + 1)) {
        (Some(low), Some(high)) => (*low, values[high]),
        _ => (0.0, 0.0),
    }
}

/// Random numbers from a seed: `SplitMix64`.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0 and up to 1.
    pub(super) fn uniform(&mut self) -> f64 {
        real((self.next() >> 11) + 1) / real(1 << 53)
    }

    /// Normal, mean 0, variance 1.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A Poisson count with this mean.
    fn poisson(&mut self, mean: f64) -> f64 {
        if mean >= LARGE {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let (floor, mut product, mut count) = ((-mean).exp(), self.uniform(), 0.0);
        while product > floor {
            product *= self.uniform();
            count += 1.0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_counts_have_their_mean_and_their_variance() {
        for mean in [0.3, 5.0, 60.0, 1_000.0] {
            let mut dice = Dice(7);
            let draws: Vec<f64> = (0..20_000).map(|_| dice.poisson(mean)).collect();
            let average = draws.iter().sum::<f64>() / 20_000.0;
            let variance =
                draws.iter().map(|draw| (draw - average).powi(2)).sum::<f64>() / 20_000.0;
            assert!((average / mean - 1.0).abs() < 0.03, "{mean}: {average}");
            assert!((variance / mean - 1.0).abs() < 0.06, "{mean}: {variance}");
        }
    }

    #[test]
    fn the_interval_of_a_quantile_holds_it_in_about_19_of_20_cases() {
        let mut dice = Dice(1);
        let mut held = 0;
        for _ in 0..400 {
            let mut latencies = Latencies::default();
            for _ in 0..500 {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small"
                )]
                latencies.record((dice.uniform() * 1e9) as u64);
            }
            let Interval { low, high } = ranks(&FineCurve::new(&latencies), 500).p90;
            held += u32::from(low <= 9e8 && high.is_some_and(|high| high >= 9e8));
        }
        assert!((372..=398).contains(&held), "{held} of 400");
    }

    #[test]
    fn too_few_samples_do_not_bound_the_tail() {
        let mut latencies = Latencies::default();
        (1..=100).for_each(|ms| latencies.record(ms * 1_000_000));
        let intervals = ranks(&FineCurve::new(&latencies), latencies.count());
        assert!(intervals.p50.high.is_some());
        assert_eq!(intervals.p999.high, None);
    }
}
