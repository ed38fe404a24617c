//! Latency buckets: 32 to a doubling, so that each is about 3 % wide.

use std::time::Duration;

/// Bits of the mantissa that choose a bucket inside its doubling.
const BITS: u32 = 5;
/// The shortest latency that has a bucket of its own: 2^10 ns, about a microsecond.
const LOWEST: u32 = 10;
/// The longest: 2^40 ns, about 1,100 seconds.
const HIGHEST: u32 = 40;

/// How many buckets there are: one below the range, 32 for each of 30 doublings, one above.
pub const BUCKETS: usize = ((HIGHEST - LOWEST) << BITS) as usize + 2;

/// A range of latencies, about 3 % wide.
///
/// From one microsecond to 1,100 seconds the relative error of a bucket's middle is at most 1.6 %.
/// What is shorter or longer shares the first or the last bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket of a latency.
    #[inline]
    pub fn of(latency: Duration) -> Self {
        Self::of_nanos(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The bucket of a latency in nanoseconds: no logarithm, only the leading bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an index below BUCKETS")]
    pub fn of_nanos(nanos: u64) -> Self {
        if nanos < 1 << LOWEST {
            return Self(0);
        }
        if nanos >= 1 << HIGHEST {
            return Self(BUCKETS as u16 - 1);
        }
        let doubling = nanos.ilog2();
        let mantissa = (nanos >> (doubling - BITS)) as u32 & ((1 << BITS) - 1);
        Self((((doubling - LOWEST) << BITS) + mantissa + 1) as u16)
    }

    /// The bucket with this index.
    pub(super) fn at(index: usize) -> Self {
        Self(u16::try_from(index.min(BUCKETS - 1)).unwrap_or(0))
    }

    /// Its place among the buckets, from the shortest latency on.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The shortest latency in it, in nanoseconds.
    pub fn lower(self) -> u64 {
        match self.index() {
            0 => 0,
            index => edge(index - 1),
        }
    }

    /// The latency at which the next bucket begins, in nanoseconds. The last one ends nowhere; it
    /// is taken to be one doubling wide.
    pub fn upper(self) -> u64 {
        match self.index() {
            index if index == BUCKETS - 1 => 1 << (HIGHEST + 1),
            index => edge(index),
        }
    }
}

/// Where the bucket with index `step + 1` begins.
fn edge(step: usize) -> u64 {
    let (doubling, mantissa) = (step >> BITS, step & ((1 << BITS) - 1));
    ((1 << BITS) + mantissa as u64) << (doubling + (LOWEST - BITS) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_lies_in_its_bucket() {
        for nanos in (0..41).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3, power + power / 2]
        }) {
            let bucket = Bucket::of_nanos(nanos);
            let last = bucket.index() == BUCKETS - 1;
            assert!(bucket.lower() <= nanos && (nanos < bucket.upper() || last), "{nanos}");
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for index in 1..BUCKETS {
            assert_eq!(Bucket::at(index - 1).upper(), Bucket::at(index).lower());
            assert_eq!(Bucket::of_nanos(Bucket::at(index).lower()).index(), index);
        }
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn buckets_are_about_three_percent_wide() {
        for index in 1..BUCKETS - 1 {
            let bucket = Bucket::at(index);
            let width = bucket.upper() as f64 / bucket.lower() as f64;
            assert!(width <= 1.0 + 1.0 / 32.0 + 1e-9, "{width}");
        }
    }

    #[test]
    fn pr_83_and_88_the_range_is_wide_and_its_ends_are_safe() {
        assert_eq!(Bucket::of(Duration::ZERO).index(), 0);
        assert_eq!(Bucket::of(Duration::MAX).index(), BUCKETS - 1);
        assert_eq!(Bucket::of(Duration::from_secs(6 * 3600)).index(), BUCKETS - 1);
        assert_ne!(Bucket::of(Duration::from_micros(200)), Bucket::of(Duration::from_micros(400)));
        assert!(Bucket::of(Duration::from_secs(120)).index() < BUCKETS - 1);
    }
}
