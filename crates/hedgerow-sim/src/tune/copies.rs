//! What pairs of copies tell and single latencies cannot: whether a second copy would be quicker.

use super::latencies::real;
use super::noise::Dice;
use super::solve::Plan;

/// The normal quantile of a two-sided 99 % interval.
const Z: f64 = 2.576;
/// Hedges that win less often than this make no tail shorter to speak of.
const LEAST_WINS: f64 = 0.10;
/// How many hedges it takes to be sure that they help.
const ENOUGH: u64 = 200;

/// Latencies of calls that were sent twice: of the first copy, and of the second from its own
/// start. Of more pairs than it has room for it keeps a random sample.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// When the second copy started, in nanoseconds after the first.
    delay: f64,
    room: usize,
    seen: u64,
    kept: Vec<(f32, f32)>,
    dice: Dice,
}

impl Pairs {
    /// No pairs yet. Their second copies start `delay` nanoseconds after the first ones, and at
    /// most `room` of them are kept.
    pub fn new(delay: f64, room: usize, seed: u64) -> Self {
        Self { delay, room, seen: 0, kept: Vec::new(), dice: Dice(seed) }
    }

    /// Counts a pair, in nanoseconds.
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are enough to compare")]
    pub fn record(&mut self, first: f64, second: f64) {
        self.seen += 1;
        let pair = (first as f32, second as f32);
        if self.kept.len() < self.room {
            self.kept.push(pair);
        } else if let Ok(index) = usize::try_from(self.dice.next() % self.seen)
            && let Some(slot) = self.kept.get_mut(index)
        {
            *slot = pair;
        }
    }

    /// How many there are, kept or not.
    pub fn count(&self) -> u64 {
        self.seen
    }

    fn each(&self) -> impl Iterator<Item = (f64, f64)> {
        self.kept.iter().map(|(first, second)| (f64::from(*first), f64::from(*second)))
    }

    /// What they say of a plan.
    pub(super) fn judge(&self, plan: &Plan, allowed: f64) -> Copies {
        let delay = plan.delay.max(self.delay);
        let (mut hedged, mut won) = (0, 0);
        for (first, second) in self.each().filter(|(first, _)| *first > delay) {
            hedged += 1;
            won += u64::from(delay + second < first);
        }
        let (low, high) = wilson(won, hedged);
        let finding = match hedged {
            ENOUGH.. if low > LEAST_WINS => Finding::Helps,
            _ if high < LEAST_WINS => Finding::DoNotHedge,
            _ => Finding::Unclear,
        };
        let reached = self.reached(plan.probability, delay, allowed);
        Copies { hedged, won, low, high, correlation: self.correlation(), reached, finding }
    }

    /// The latency that the share `allowed` of the pairs exceeds under a plan; none from too few.
    fn reached(&self, probability: f64, delay: f64, allowed: f64) -> Option<f64> {
        let weight = real(self.kept.len() as u64);
        if weight * allowed < 10.0 {
            return None;
        }
        let ends = self.each().flat_map(|(first, second)| {
            let hedged = if first > delay { probability } else { 0.0 };
            [(first, 1.0 - hedged), (first.min(delay + second), hedged)]
        });
        let mut ends: Vec<_> = ends.filter(|(_, weight)| *weight > 0.0).collect();
        ends.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut beyond = 0.0;
        let end = ends.iter().find(|(_, share)| {
            beyond += share / weight;
            beyond > allowed
        });
        end.map(|(end, _)| *end)
    }

    /// Spearman's: 1 where the slower call has the slower copy.
    fn correlation(&self) -> f64 {
        let (firsts, seconds): (Vec<_>, Vec<_>) = self.each().unzip();
        let (a, b) = (ranks(&firsts), ranks(&seconds));
        let mean = f64::midpoint(real(a.len() as u64), 1.0);
        let (mut both, mut left, mut right) = (0.0, 0.0, 0.0);
        for (a, b) in a.iter().zip(&b) {
            both += (a - mean) * (b - mean);
            left += (a - mean).powi(2);
            right += (b - mean).powi(2);
        }
        if left > 0.0 && right > 0.0 { both / (left * right).sqrt() } else { 0.0 }
    }
}

/// The rank of each value, from 1; equal ones share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let rank = real(before) + f64::midpoint(real(equal.len() as u64), 1.0);
        for place in equal {
            ranks[*place] = rank;
        }
        before += equal.len() as u64;
    }
    ranks
}

/// The ends of Wilson's 99 % interval for a share.
fn wilson(won: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (real(of), real(won) / real(of));
    let centre = share + Z * Z / (2.0 * n);
    let margin = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    ((centre - margin) / scale, (centre + margin) / scale)
}

/// What pairs say of hedging.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Copies {
    /// How many pairs had a first copy slower than the delay.
    pub hedged: u64,
    /// In how many of these the second one, started at the delay, would have ended first.
    pub won: u64,
    /// The share that wins is not below this, in 99 of 100 cases.
    pub low: f64,
    /// And not above this.
    pub high: f64,
    /// The rank correlation of the two copies: 1 if size, or a cause they share, explains all.
    pub correlation: f64,
    /// The target under the plan as the pairs have it, in nanoseconds; none from too few of them.
    pub reached: Option<f64>,
    /// The verdict.
    pub finding: Finding,
}

/// Whether a second copy wins often enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// More than one in ten wins, for certain.
    Helps,
    /// Fewer than one in ten, for certain.
    DoNotHedge,
    /// Too few pairs are slow enough to say.
    Unclear,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_bounds_are_the_known_ones() {
        let (low, high) = wilson(0, 200);
        assert!(low.abs() < 1e-9 && (high - 0.0321).abs() < 1e-3, "{low} {high}");
        let (low, high) = wilson(50, 100);
        assert!((low - 0.3753).abs() < 2e-3 && (high - 0.6247).abs() < 2e-3, "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn ranks_are_shared_by_equals() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }

    #[test]
    fn a_sample_is_kept_of_what_has_no_room() {
        let mut pairs = Pairs::new(0.0, 100, 1);
        (0..10_000_u32).for_each(|pair| pairs.record(pair.into(), 0.0));
        let average = pairs.each().map(|(first, _)| first).sum::<f64>() / 100.0;
        assert_eq!((pairs.count(), pairs.kept.len()), (10_000, 100));
        assert!((4_000.0..6_000.0).contains(&average), "{average}");
    }
}
