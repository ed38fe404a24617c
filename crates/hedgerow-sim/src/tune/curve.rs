//! The survival curve of one attempt, fine enough for a tuner.

use std::rc::Rc;

use super::latencies::{Latencies, real};
use super::solve::Plan;

/// How closely a latency with hedging is found, relative.
const PRECISION: f64 = 1e-7;

/// How likely an attempt is to take longer than a latency: the curve of the core on buckets eight
/// times as fine, and only on those that hold something.
#[derive(Clone, Debug)]
pub struct FineCurve {
    /// Lower and upper edge of each bucket.
    edges: Rc<[(f64, f64)]>,
    /// The survival at each upper edge.
    survival: Vec<f64>,
}

impl FineCurve {
    /// The curve of these latencies.
    pub fn new(latencies: &Latencies) -> Self {
        let (mut edges, mut counts) = (Vec::new(), Vec::new());
        for (lower, upper, count) in latencies.buckets() {
            edges.push((lower, upper));
            counts.push(real(count));
        }
        Self::of(edges.into(), &counts)
    }

    /// The curve of these counts in these buckets.
    fn of(edges: Rc<[(f64, f64)]>, counts: &[f64]) -> Self {
        let total: f64 = counts.iter().sum();
        let mut beyond = total;
        let survival = counts.iter().map(|count| {
            beyond -= count;
            (beyond / total).max(0.0)
        });
        let mut survival: Vec<f64> = survival.collect();
        // Sums of doubles may leave a crumb; nothing lies beyond the longest.
        if let Some(last) = survival.last_mut() {
            *last = 0.0;
        }
        Self { edges, survival }
    }

    /// The same buckets with other counts.
    pub(super) fn with_counts(&self, counts: &[f64]) -> Self {
        Self::of(Rc::clone(&self.edges), counts)
    }

    /// The chance that an attempt takes longer than this many nanoseconds.
    pub fn survival(&self, nanos: f64) -> f64 {
        let index = self.edges.partition_point(|(_, upper)| *upper <= nanos);
        let before = self.before(index);
        let Some((lower, upper)) = self.edges.get(index) else { return before };
        if nanos <= *lower {
            return before;
        }
        before + (self.survival[index] - before) * (nanos - lower) / (upper - lower)
    }

    /// The survival at the lower edge of a bucket.
    fn before(&self, index: usize) -> f64 {
        index.checked_sub(1).map_or(1.0, |before| self.survival[before])
    }

    /// The latency in nanoseconds that an attempt exceeds with this chance.
    pub fn exceeded_with(&self, chance: f64) -> f64 {
        let index = self.survival.partition_point(|survival| *survival > chance);
        let Some((lower, upper)) = self.edges.get(index) else {
            return self.edges.last().map_or(0.0, |(_, upper)| *upper);
        };
        let (before, after) = (self.before(index), self.survival[index]);
        let part = if before > after { (before - chance) / (before - after) } else { 0.0 };
        lower + (upper - lower) * part.clamp(0.0, 1.0)
    }

    /// The chance that a call takes longer than this under a plan, if attempts are independent.
    pub fn late(&self, nanos: f64, plan: &Plan) -> f64 {
        let alone = self.survival(nanos);
        if nanos <= plan.delay {
            return alone;
        }
        let answered = 1.0 - self.survival(nanos - plan.delay);
        alone * (1.0 - plan.probability * answered)
    }

    /// The latency that a call exceeds with this chance under a plan.
    pub fn hedged(&self, chance: f64, plan: &Plan) -> f64 {
        let without = self.exceeded_with(chance);
        let (mut low, mut high) = (plan.delay.min(without), without);
        while high - low > PRECISION * high {
            let middle = f64::midpoint(low, high);
            if self.late(middle, plan) <= chance { high = middle } else { low = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(latencies: impl IntoIterator<Item = u64>) -> FineCurve {
        let mut counts = Latencies::default();
        latencies.into_iter().for_each(|nanos| counts.record(nanos));
        FineCurve::new(&counts)
    }

    fn close(value: f64, wanted: f64) {
        assert!((value / wanted - 1.0).abs() < 0.002, "{value} is not {wanted}");
    }

    #[test]
    fn quantiles_are_those_of_the_latencies() {
        let curve = curve((1..=10_000).map(|micros| micros * 1_000));
        for (chance, wanted) in [(0.5, 5.0e6), (0.1, 9.0e6), (0.01, 9.9e6), (0.001, 9.99e6)] {
            close(curve.exceeded_with(chance), wanted);
            assert!((curve.survival(wanted) - chance).abs() < 2e-4);
        }
        close(curve.exceeded_with(0.0), 10e6);
    }

    #[test]
    fn nothing_has_no_latency_and_a_constant_has_one() {
        assert!(curve([]).exceeded_with(0.01).abs() < 1e-9);
        let constant = curve([7; 50]);
        close(constant.exceeded_with(0.99), 7.0);
        close(constant.exceeded_with(0.0), 7.0);
        close(constant.survival(6.9), 1.0);
        assert!(constant.survival(7.0).abs() < 1e-9);
    }

    #[test]
    fn a_hedge_for_everybody_squares_the_survival() {
        let curve = curve((1..=10_000).map(|micros| micros * 1_000));
        let both = Plan { delay: 0.0, probability: 1.0, extra_load: 1.0 };
        close(curve.late(5e6, &both), 0.25);
        close(curve.hedged(0.01, &both), 9.0e6);
    }

    #[test]
    fn before_the_delay_nothing_changes() {
        let curve = curve((1..=10_000).map(|micros| micros * 1_000));
        let plan = Plan { delay: 8e6, probability: 0.5, extra_load: 0.1 };
        close(curve.hedged(0.5, &plan), 5e6);
        // At 9 ms one in ten runs; half of them have had a copy for 1 ms, which ended for a tenth.
        close(curve.late(9e6, &plan), 0.1 * 0.95);
    }
}
