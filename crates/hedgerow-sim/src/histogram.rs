//! Counts of latencies.

/// Bits of the mantissa that choose a bucket: 256 to a doubling, each 0.4 % wide or less.
const BITS: u32 = 8;
/// Latencies below 2^8 ns have a bucket for each nanosecond.
const EXACT: u64 = 1 << BITS;

/// Counts of latencies in buckets of at most 0.4 %.
///
/// Two histograms merge into what one would have counted, to the last bit, in whatever order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
    /// Every latency, if exact quantiles are wanted.
    exact: Option<Vec<u64>>,
}

impl Histogram {
    /// An empty histogram that also keeps every latency, so that its quantiles are exact.
    pub fn exact() -> Self {
        Self { exact: Some(Vec::new()), ..Self::default() }
    }

    /// Counts a latency.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let index = index(nanos);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
        if let Some(exact) = &mut self.exact {
            exact.push(nanos);
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        let empty = self.count == 0;
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        match (&mut self.exact, &other.exact) {
            (Some(mine), Some(theirs)) => mine.extend(theirs),
            (None, Some(theirs)) if empty => self.exact = Some(theirs.clone()),
            _ => self.exact = None,
        }
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest, in milliseconds; 0 if there is none.
    pub fn max_ms(&self) -> f64 {
        ms(self.max)
    }

    /// The mean in milliseconds; 0 if there is none.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 / 1e6 }
    }

    /// The latency in milliseconds that this share (0 to 1) stays at or below; 0 if there is none.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = self.rank(share);
        if let Some(exact) = &self.exact {
            let mut sorted = exact.clone();
            sorted.sort_unstable();
            let index = usize::try_from(rank.saturating_sub(1)).unwrap_or(usize::MAX);
            return sorted.get(index).copied().map_or(0.0, ms);
        }
        let mut before = 0;
        for (index, count) in self.counts.iter().enumerate() {
            if before + count >= rank && *count > 0 {
                let (lower, upper) = edges(index);
                #[expect(clippy::cast_precision_loss, reason = "a share of a bucket")]
                let part = (rank - before) as f64 / *count as f64;
                return (ms(lower) + (ms(upper) - ms(lower)) * part).min(self.max_ms());
            }
            before += count;
        }
        self.max_ms()
    }

    /// The survival curve, corner by corner and in order: latencies in milliseconds, and which share
    /// of all takes longer. It begins with a share of 1 at the shortest, ends with 0 at the longest,
    /// and is good to a bucket in between. Nothing if there is none.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn survival(&self) -> impl Iterator<Item = (f64, f64)> {
        let (all, mut beyond) = (self.count as f64, self.count);
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let corners = counted.flat_map(move |(index, count)| {
            let (lower, upper) = edges(index);
            let before = beyond as f64 / all;
            beyond -= count;
            [(ms(lower), before), (ms(upper.min(self.max)), beyond as f64 / all)]
        });
        // Where buckets touch, the end of one is the beginning of the next.
        let mut last = None;
        corners.filter(move |corner| last.replace(*corner) != Some(*corner))
    }

    /// The place of this share among the latencies in order, from 1.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the count"
    )]
    fn rank(&self, share: f64) -> u64 {
        // A share such as 0.999 is a hair off as a double: that must not cost a whole place.
        ((share * self.count as f64 - 1e-6).ceil().max(1.0) as u64).min(self.count)
    }
}

/// The bucket of a latency: linear below 256 ns, then 256 to a doubling.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 57 doublings of 256")]
fn index(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - BITS;
    (u64::from(shift) * EXACT + (nanos >> shift)) as usize
}

/// Where a bucket begins, and where the next one does.
fn edges(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < EXACT {
        return (index, index + 1);
    }
    let shift = index / EXACT - 1;
    let mantissa = index % EXACT + EXACT;
    (mantissa << shift, ((mantissa + 1) << shift).max(mantissa << shift))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_lies_in_its_bucket() {
        for nanos in (0..63).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        }) {
            let (lower, upper) = edges(index(nanos));
            assert!(lower <= nanos && nanos < upper, "{nanos}: {lower}..{upper}");
            assert!(upper - lower <= (lower / 256).max(1), "{nanos}: {lower}..{upper}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_latencies() {
        let (mut buckets, mut exact) = (Histogram::default(), Histogram::exact());
        for micros in 1..=10_000 {
            buckets.record(micros * 1_000);
            exact.record(micros * 1_000);
        }
        for (share, wanted) in [(0.5, 5.0), (0.9, 9.0), (0.99, 9.9), (0.999, 9.99), (1.0, 10.0)] {
            assert!((exact.quantile_ms(share) - wanted).abs() < 1e-9);
            let near = buckets.quantile_ms(share);
            assert!((near / wanted - 1.0).abs() < 0.002, "{share}: {near}");
        }
        assert!((buckets.mean_ms() - 5.0005).abs() < 1e-9);
    }

    #[test]
    fn survival_has_a_corner_wherever_it_turns() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.survival().count(), 0);
        for nanos in [10, 10, 11, 200] {
            histogram.record(nanos);
        }
        let corners: Vec<_> =
            histogram.survival().map(|(ms, share)| ((ms * 1e6).round(), share)).collect();
        // Eleven is a bucket of its own and ends at twelve; the last ends at the longest.
        let wanted = [(10.0, 1.0), (11.0, 0.5), (12.0, 0.25), (200.0, 0.25), (200.0, 0.0)];
        assert_eq!(corners, wanted);
    }

    #[test]
    fn parts_merge_into_the_whole() {
        let (mut whole, mut left, mut right) = <(Histogram, Histogram, Histogram)>::default();
        for nanos in (0..10_000_u64).map(|i| i * i * 1_000) {
            whole.record(nanos);
            if nanos % 3 == 0 { left.record(nanos) } else { right.record(nanos) }
        }
        left.merge(&right);
        assert_eq!(left, whole);
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert!(Histogram::default().quantile_ms(0.99).abs() < 1e-12);
        assert!(Histogram::exact().quantile_ms(0.99).abs() < 1e-12);
    }
}
