//! The survival curve of one attempt: how likely it is to take longer than a latency.

use std::ops::Range;

use super::buckets::{BUCKETS, Bucket};

/// The Kaplan-Meier estimate of the chance that an attempt takes longer than a latency.
///
/// Made from two counts per bucket: attempts that finished there, and attempts that were cut short
/// there. Within a bucket that holds cuts, half of them count as at risk: without that the curve
/// would err by up to a fifth where a gap in the latencies meets a bucket of cuts.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The survival at the upper edge of each bucket.
    survival: Box<[f64; BUCKETS]>,
    weight: f64,
}

impl Curve {
    /// The curve of these counts, by bucket index. Counts may be fractions (decayed weights).
    ///
    /// Without any count the curve is 1 throughout: nothing is known to end.
    pub fn new(done: &[f64; BUCKETS], cut: &[f64; BUCKETS]) -> Self {
        let mut curve = Self { survival: Box::new([1.0; BUCKETS]), weight: 0.0 };
        curve.redraw(done, cut, done.iter().chain(cut).sum(), 0..BUCKETS);
        curve
    }

    /// Becomes the curve of these counts, which sum up to `weight` and are all in `used`.
    pub(super) fn redraw(
        &mut self,
        done: &[f64; BUCKETS],
        cut: &[f64; BUCKETS],
        weight: f64,
        used: Range<usize>,
    ) {
        self.weight = weight;
        let mut at_risk = weight;
        let mut alive = 1.0;
        self.survival[..used.start].fill(alive);
        for index in used.clone() {
            let exposed = at_risk - cut[index] / 2.0;
            if done[index] > 0.0 && exposed > 0.0 {
                alive *= (1.0 - done[index] / exposed).clamp(0.0, 1.0);
            }
            at_risk -= done[index] + cut[index];
            self.survival[index] = alive;
        }
        self.survival[used.end..].fill(alive);
    }

    /// How many attempts it is made from.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The chance that an attempt takes longer than this many nanoseconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub fn survival(&self, nanos: f64) -> f64 {
        let bucket = Bucket::of_nanos(nanos.clamp(0.0, 9e18) as u64);
        let (before, after) = self.sides(bucket);
        let (lower, upper) = edges(bucket);
        let part = ((nanos - lower) / (upper - lower)).clamp(0.0, 1.0);
        before + (after - before) * part
    }

    /// The latency in nanoseconds that an attempt exceeds with this chance; `None` if the curve
    /// never falls so low, because too many attempts were cut short.
    pub fn exceeded_with(&self, chance: f64) -> Option<f64> {
        let index = self.first_below(chance);
        if index == BUCKETS {
            return None;
        }
        let bucket = Bucket::at(index);
        let (before, after) = self.sides(bucket);
        let (lower, upper) = edges(bucket);
        let part = if before > after { (before - chance) / (before - after) } else { 0.0 };
        Some(lower + (upper - lower) * part.clamp(0.0, 1.0))
    }

    /// Whether nothing ends in the bucket with this index.
    pub(super) fn is_level(&self, index: usize) -> bool {
        let (before, after) = self.sides(Bucket::at(index));
        before <= after
    }

    /// The first bucket at whose upper edge the survival is at most this chance.
    pub(super) fn first_below(&self, chance: f64) -> usize {
        self.survival.partition_point(|survival| *survival > chance)
    }

    /// The survival at the upper edge of the bucket with this index.
    pub(super) fn at_upper(&self, index: usize) -> f64 {
        self.survival[index]
    }

    /// The lowest chance that the curve reaches.
    pub fn lowest(&self) -> f64 {
        self.survival[BUCKETS - 1]
    }

    /// The survival at the lower and at the upper edge.
    fn sides(&self, bucket: Bucket) -> (f64, f64) {
        let index = bucket.index();
        let before = index.checked_sub(1).map_or(1.0, |before| self.survival[before]);
        (before, self.survival[index])
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 2^41: exact in a double")]
pub(super) fn edges(bucket: Bucket) -> (f64, f64) {
    (bucket.lower() as f64, bucket.upper() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(latencies_ms: &[(f64, f64)]) -> Box<[f64; BUCKETS]> {
        let mut counts = Box::new([0.0; BUCKETS]);
        for (ms, weight) in latencies_ms {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let bucket = Bucket::of_nanos((ms * 1e6) as u64);
            counts[bucket.index()] += weight;
        }
        counts
    }

    fn quantile_ms(curve: &Curve, chance: f64) -> f64 {
        curve.exceeded_with(chance).unwrap() / 1e6
    }

    fn close(value: f64, wanted: f64, relative: f64) {
        assert!((value / wanted - 1.0).abs() <= relative, "{value} is not {wanted}");
    }

    #[test]
    fn nothing_known_means_nothing_ends() {
        let none = counts(&[]);
        let curve = Curve::new(&none, &none);
        assert_eq!(curve.exceeded_with(0.5), None);
        assert!((curve.survival(1e9) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pr_83_latencies_above_ten_seconds() {
        let done = counts(&[(1e3, 900.0), (15e3, 90.0), (120e3, 10.0)]);
        let curve = Curve::new(&done, &counts(&[]));
        close(quantile_ms(&curve, 0.5), 1e3, 0.03);
        close(quantile_ms(&curve, 0.05), 15e3, 0.03);
        close(quantile_ms(&curve, 0.005), 120e3, 0.03);
    }

    #[test]
    fn pr_88_latencies_below_a_millisecond() {
        let uniform = |scale: f64| {
            let each: Vec<_> =
                (0..10_000).map(|i| ((0.2 + f64::from(i) * 2e-5) * scale, 1.0)).collect();
            Curve::new(&counts(&each), &counts(&[]))
        };
        for scale in [1.0, 300.0] {
            let curve = uniform(scale);
            close(quantile_ms(&curve, 0.5), 0.30 * scale, 0.01);
            close(quantile_ms(&curve, 0.05), 0.39 * scale, 0.01);
        }
    }

    /// Exponential latencies cut at random points: the curve must not be pulled down.
    #[test]
    fn cuts_do_not_bias_the_curve() {
        let (mut done, mut cut) = (counts(&[]), counts(&[]));
        let mut seed = 1_u64;
        let mut uniform = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            #[expect(clippy::cast_precision_loss, reason = "53 bits")]
            let value = (seed >> 11) as f64 / (1_u64 << 53) as f64;
            value
        };
        for _ in 0..400_000 {
            let (latency, limit) = (-uniform().ln() * 10e6, -uniform().ln() * 30e6);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let index = Bucket::of_nanos(latency.min(limit) as u64).index();
            if latency <= limit { done[index] += 1.0 } else { cut[index] += 1.0 }
        }
        let curve = Curve::new(&done, &cut);
        close(quantile_ms(&curve, 0.5), 10.0 * 2.0_f64.ln(), 0.02);
        close(quantile_ms(&curve, 0.05), 10.0 * 20.0_f64.ln(), 0.02);
    }

    #[test]
    fn a_curve_that_is_cut_off_does_not_invent_its_tail() {
        let curve = Curve::new(&counts(&[(1.0, 90.0)]), &counts(&[(2.0, 10.0)]));
        assert_eq!(curve.exceeded_with(0.05), None);
        assert!((curve.lowest() - 0.1).abs() < 1e-9);
    }
}
