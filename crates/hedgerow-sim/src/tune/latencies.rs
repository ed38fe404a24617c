//! Counts of latencies, in little memory however many there are.

/// Bits of the mantissa that choose a bucket: 256 to a doubling, each at most 0.4 % wide.
const BITS: u32 = 8;
/// Buckets of a doubling. Below this many nanoseconds each nanosecond has its own.
const WIDTH: usize = 1 << BITS;
/// One block below 256 ns, and one for each doubling that 64 bits hold beyond.
const BLOCKS: usize = (u64::BITS - BITS) as usize + 1;

/// The counts of one doubling.
type Block = [u64; WIDTH];

/// Counts of latencies by bucket of at most 0.4 %, exact in number: what a tuner needs of a log,
/// whatever its length.
///
/// Only doublings that hold something take room, 2 KiB each: a log from 1 ms to 10 s needs 30 KiB.
#[derive(Clone, Debug)]
pub struct Latencies {
    blocks: [Option<Box<Block>>; BLOCKS],
    count: u64,
    min: u64,
    max: u64,
    zeros: u64,
    /// What every latency is a multiple of: the resolution of the log's clock.
    grain: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            blocks: [const { None }; BLOCKS],
            count: 0,
            min: u64::MAX,
            max: 0,
            zeros: 0,
            grain: 0,
        }
    }
}

impl Latencies {
    /// Counts a latency of this many nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let (block, slot) = place(nanos);
        let block = self.blocks[block].get_or_insert_with(|| Box::new([0; WIDTH]));
        block[slot] += 1;
        self.count += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.zeros += u64::from(nanos == 0);
        self.grain = common(self.grain, nanos);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are exactly 0: more than a few mean that the log's clock is too coarse.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// The longest in nanoseconds; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The buckets that hold something, in order: lower edge, upper edge, count. The first begins
    /// at the shortest latency and the last ends at the longest, so that a constant stays one; one
    /// that is too narrow for two readings of the log's clock has no width, because all of its calls
    /// took the same time.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let blocks = self.blocks.iter().enumerate();
        let counted = blocks.flat_map(|(block, counts)| {
            let counts = counts.iter().flat_map(|counts| counts.iter().enumerate());
            counts.map(move |(slot, count)| (block, slot, *count))
        });
        counted.filter(|(.., count)| *count > 0).map(|(block, slot, count)| {
            let (lower, upper) = edges(block, slot);
            let grain = self.grain.max(1);
            let reading = lower.div_ceil(grain).saturating_mul(grain);
            if upper - reading <= grain {
                return (real(reading), real(reading), count);
            }
            (real(lower.max(self.min)), real(upper.min(self.max)), count)
        })
    }
}

/// The block and the slot of a latency: linear below 256 ns, then 256 to a doubling.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below 256, by the shift")]
fn place(nanos: u64) -> (usize, usize) {
    let doubling = (nanos | 1).ilog2();
    if doubling < BITS {
        return (0, nanos as usize);
    }
    let shift = doubling - BITS;
    (shift as usize + 1, (nanos >> shift) as usize - WIDTH)
}

/// Where a bucket begins, and where the next one does.
fn edges(block: usize, slot: usize) -> (u64, u64) {
    let Some(shift) = block.checked_sub(1) else { return (slot as u64, slot as u64 + 1) };
    let mantissa = (WIDTH + slot) as u64;
    // The last bucket of all ends where 64 bits do.
    let upper = u128::from(mantissa + 1) << shift;
    (mantissa << shift, u64::try_from(upper).unwrap_or(u64::MAX))
}

/// The largest number of which both are multiples; 0 is one of every number.
#[inline]
fn common(grain: u64, nanos: u64) -> u64 {
    // Soon nothing changes any more, and in a fine log nothing can.
    if grain == 1 || grain > 0 && nanos.is_multiple_of(grain) {
        return grain;
    }
    let (mut one, mut other) = (nanos, grain);
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[expect(clippy::cast_precision_loss, reason = "a latency: 53 bits are far more than it has")]
pub(super) fn real(nanos: u64) -> f64 {
    nanos as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_lies_in_its_bucket() {
        for nanos in (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        }) {
            let (block, slot) = place(nanos);
            let (lower, upper) = edges(block, slot);
            assert!(lower <= nanos && nanos < upper, "{nanos}: {lower}..{upper}");
            assert!(upper - lower <= (lower / 256).max(1), "{nanos}: {lower}..{upper}");
        }
        let (block, slot) = place(u64::MAX);
        assert!(edges(block, slot).0 < u64::MAX);
    }

    #[test]
    fn a_constant_has_one_bucket_without_width() {
        let mut latencies = Latencies::default();
        (0..100).for_each(|_| latencies.record(5_000_000));
        let buckets: Vec<_> = latencies.buckets().collect();
        assert_eq!(buckets, [(5e6, 5e6, 100)]);
        assert_eq!((latencies.count(), latencies.zeros(), latencies.max()), (100, 0, 5_000_000));
    }

    #[test]
    fn readings_of_a_coarse_clock_stay_apart() {
        let mut latencies = Latencies::default();
        for nanos in [0, 3_000_000, 4_000_000, 700_000_000] {
            latencies.record(nanos);
        }
        let edges: Vec<_> = latencies.buckets().map(|(lower, upper, _)| (lower, upper)).collect();
        // At 700 ms a bucket is 2.1 ms wide and may hold two readings.
        assert_eq!(edges[..3], [(0.0, 0.0), (3e6, 3e6), (4e6, 4e6)]);
        assert!(edges[3].0 < edges[3].1, "{edges:?}");
        for (one, other, wanted) in [(0, 0, 0), (0, 6, 6), (6, 0, 6), (6, 4, 2), (1, 7, 1)] {
            assert_eq!(common(one, other), wanted);
        }
    }
}
