//! Counts of latencies, written by many threads and read now and then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::buckets::{BUCKETS, Bucket};
use crate::sharded::{SHARDS, SHARED, of_this_thread};

/// Counts finished and cut attempts per bucket.
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
}

impl Shard {
    fn new() -> Box<Self> {
        Box::new(Self {
            done: std::array::from_fn(|_| AtomicU32::new(0)),
            cut: std::array::from_fn(|_| AtomicU32::new(0)),
            draws: AtomicU64::new(0),
        })
    }
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
    }

    /// A primary was cut short.
    #[inline]
    pub(super) fn cut(&self, bucket: Bucket) {
        let (number, shard) = self.own();
        add_one!(&shard.cut[bucket.index()], number);
    }

    /// How many draws this thread has made before, and which shard it is.
    pub(super) fn draw(&self) -> (usize, u64) {
        let (number, shard) = self.own();
        (number, add_one!(&shard.draws, number))
    }

    fn each(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(|shard| shard.get().map(Box::as_ref))
    }

    /// The counts of all threads together.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in self.each() {
            for index in 0..BUCKETS {
                let done = shard.done[index].load(Ordering::Relaxed);
                let cut = shard.cut[index].load(Ordering::Relaxed);
                totals.done[index] = totals.done[index].wrapping_add(done);
                totals.cut[index] = totals.cut[index].wrapping_add(cut);
            }
        }
        totals
    }
}

/// Counts by bucket, modulo 2^32.
#[derive(Clone)]
pub(super) struct Totals {
    pub(super) done: Box<[u32; BUCKETS]>,
    pub(super) cut: Box<[u32; BUCKETS]>,
}

impl Default for Totals {
    fn default() -> Self {
        Self { done: Box::new([0; BUCKETS]), cut: Box::new([0; BUCKETS]) }
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
                        }
                    });
                }
            });
        }
        let totals = recorder.totals();
        assert_eq!(totals.done[bucket.index()], 15_000);
        assert_eq!(totals.cut[bucket.index()], 15_000);
    }
}
