//! Counts of latencies, written by many threads and read now and then.

use std::ops::Range;

use super::buckets::{BUCKETS, Bucket};
use crate::gate::Gate;
use crate::sharded::{SHARED, of_this_thread};
use crate::sync::{AtomicU32, AtomicU64, OnceLock, Ordering, SHARDS};

const GATES: usize = Gate::ALL.len();

/// Counts finished and cut attempts per bucket, and hedges that were not started per gate.
///
/// Each thread has a shard that only it writes to, so recording is a load and a store: no lock, no
/// atomic read-modify-write, no contention. A shard is made when its thread first records, and
/// takes about 8 kB. Counters only ever grow (and wrap): a reader looks at differences.
#[derive(Default)]
pub(super) struct Recorder {
    shards: [OnceLock<Box<Shard>>; SHARDS],
}

struct Shard {
    done: [AtomicU32; BUCKETS],
    cut: [AtomicU32; BUCKETS],
    draws: AtomicU64,
    /// Which blocks of buckets have ever been counted in, one bit each: latencies of one service
    /// lie in a few of them, and a reader need not look at the others.
    blocks: AtomicU32,
    /// By place in [`Gate::ALL`].
    refused: [AtomicU64; GATES],
}

/// How many buckets are a block: a doubling of the latency.
const BLOCK: usize = 32;
const _: () = assert!(BUCKETS <= BLOCK * u32::BITS as usize, "a bit for each block");

impl Shard {
    fn new() -> Box<Self> {
        Box::new(Self {
            done: std::array::from_fn(|_| AtomicU32::new(0)),
            cut: std::array::from_fn(|_| AtomicU32::new(0)),
            draws: AtomicU64::new(0),
            blocks: AtomicU32::new(0),
            refused: Default::default(),
        })
    }

    /// A bucket has been counted in.
    #[inline]
    fn note(&self, bucket: Bucket) {
        let block = 1 << (bucket.index() / BLOCK);
        if self.blocks.load(Ordering::Relaxed) & block == 0 {
            self.first_in(block);
        }
    }

    #[cold]
    fn first_in(&self, block: u32) {
        self.blocks.fetch_or(block, Ordering::Relaxed);
    }
}

/// The buckets from the first of these blocks to the last.
fn span(blocks: u32) -> Range<usize> {
    let end = (u32::BITS - blocks.leading_zeros()) as usize * BLOCK;
    let start = (blocks.trailing_zeros() as usize * BLOCK).min(end);
    start..end.min(BUCKETS)
}

/// Adds one to a counter that only this thread writes to, unless the shard is shared.
macro_rules! add_one {
    ($counter:expr, $shard:expr) => {{
        let counter = $counter;
        if $shard == SHARED {
            counter.fetch_add(1, Ordering::Relaxed)
        } else {
            let value = counter.load(Ordering::Relaxed);
            counter.store(value.wrapping_add(1), Ordering::Relaxed);
            value
        }
    }};
}

impl Recorder {
    #[inline]
    fn own(&self) -> (usize, &Shard) {
        let shard = of_this_thread();
        (shard, self.shards[shard].get_or_init(Shard::new))
    }

    /// A primary finished.
    #[inline]
    pub(super) fn done(&self, bucket: Bucket) {
        let (number, shard) = self.own();
        add_one!(&shard.done[bucket.index()], number);
        shard.note(bucket);
    }

    /// A primary was cut short.
    #[inline]
    pub(super) fn cut(&self, bucket: Bucket) {
        let (number, shard) = self.own();
        add_one!(&shard.cut[bucket.index()], number);
        shard.note(bucket);
    }

    /// The gate with this place in [`Gate::ALL`] refused a hedge.
    pub(super) fn refused(&self, gate: usize) {
        let (number, shard) = self.own();
        add_one!(&shard.refused[gate], number);
    }

    /// How many hedges that gate refused.
    pub(super) fn refusals(&self, gate: usize) -> u64 {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        shards.map(|shard| shard.refused[gate].load(Ordering::Relaxed)).sum()
    }

    /// How many draws this thread has made before, and which shard it is.
    pub(super) fn draw(&self) -> (usize, u64) {
        let (number, shard) = self.own();
        (number, add_one!(&shard.draws, number))
    }

    /// What all threads have counted since `seen`, which then says so too; and the buckets outside
    /// of which nobody has ever counted.
    ///
    /// What a thread counts meanwhile is in it or comes the next time.
    pub(super) fn since(&self, seen: &mut Counts) -> (Counts, Range<usize>) {
        let (mut counts, mut blocks) = (Counts::NONE, 0);
        for shard in self.shards.iter().filter_map(OnceLock::get) {
            let used = shard.blocks.load(Ordering::Relaxed);
            blocks |= used;
            counts.done.add(&shard.done, span(used));
            counts.cut.add(&shard.cut, span(used));
        }
        let used = span(blocks);
        counts.done.subtract(&mut seen.done, used.clone());
        counts.cut.subtract(&mut seen.cut, used.clone());
        (counts, used)
    }
}

/// Counts by bucket, modulo 2^32.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) done: Column,
    pub(super) cut: Column,
}

#[derive(Clone)]
pub(super) struct Column(pub(super) [u32; BUCKETS]);

impl Counts {
    pub(super) const NONE: Self = Self { done: Column([0; BUCKETS]), cut: Column([0; BUCKETS]) };
}

impl Column {
    fn add(&mut self, counters: &[AtomicU32; BUCKETS], span: Range<usize>) {
        for (sum, counter) in self.0[span.clone()].iter_mut().zip(&counters[span]) {
            *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
        }
    }

    /// Turns a total into what came since `seen`, and `seen` into the total.
    fn subtract(&mut self, seen: &mut Self, span: Range<usize>) {
        for (count, seen) in self.0[span.clone()].iter_mut().zip(&mut seen.0[span]) {
            (*count, *seen) = (count.wrapping_sub(*seen), *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_record_of_any_thread_is_lost() {
        let recorder = Recorder::default();
        let bucket = Bucket::of(Duration::from_millis(5));
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..50 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            recorder.done(bucket);
                            recorder.cut(bucket);
                            recorder.refused(GATES - 1);
                        }
                    });
                }
            });
        }
        let mut seen = Counts::NONE;
        let (counts, _) = recorder.since(&mut seen);
        assert_eq!(counts.done.0[bucket.index()], 15_000);
        assert_eq!(counts.cut.0[bucket.index()], 15_000);
        let (counts, _) = recorder.since(&mut seen);
        assert_eq!(counts.done.0[bucket.index()], 0, "once");
        assert_eq!(recorder.refusals(GATES - 1), 15_000);
        assert_eq!(recorder.refusals(0), 0);
    }

    #[test]
    fn every_bucket_ever_counted_in_is_read() {
        let (recorder, mut seen) = (Recorder::default(), Counts::NONE);
        assert_eq!(recorder.since(&mut seen).1, 0..0);
        for (index, used) in [(500, 480..512), (511, 480..512), (512, 480..544), (40, 32..544)] {
            recorder.done(Bucket::at(index));
            let (counts, span) = recorder.since(&mut seen);
            assert_eq!(counts.done.0[index], 1);
            assert_eq!(span, used);
        }
        recorder.cut(Bucket::at(0));
        recorder.cut(Bucket::at(BUCKETS - 1));
        let (counts, span) = recorder.since(&mut seen);
        assert_eq!((counts.cut.0[0], counts.cut.0[BUCKETS - 1]), (1, 1));
        assert_eq!(span, 0..BUCKETS);
    }
}
