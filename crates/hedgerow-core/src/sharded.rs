//! Counters that many threads write to without meeting: each thread has a shard of its own, without
//! locks and without sharing a cache line.

use std::cell::Cell;

use crate::sync::{
    AtomicU64, AtomicUsize, Mutex, Ordering, PoisonError, SHARDS, global, per_thread,
};

/// The last shard: the one that threads without one of their own share.
pub(crate) const SHARED: usize = SHARDS - 1;

const UNKNOWN: usize = usize::MAX;

global! {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    /// Numbers that ended threads gave back. The lock also hands what those threads wrote to
    /// whoever takes the number next.
    static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
}

per_thread! {
    /// This thread's shard, once it is known. Without a destructor, so that it can be read while
    /// the thread ends.
    static SHARD: Cell<usize> = const { Cell::new(UNKNOWN) };
    /// Gives the number back when the thread ends.
    static LEASE: Lease = Lease::take();
}

struct Lease(usize);

impl Lease {
    fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What this thread records from now on goes to the shared shard. (Without a destructor the
        // cell is always there; a model checker may have taken it away already.)
        let _ = SHARD.try_with(|shard| shard.set(SHARED));
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// The shard of this thread. Nobody else writes to it, unless it is [`SHARED`].
#[inline]
pub(crate) fn of_this_thread() -> usize {
    match SHARD.with(Cell::get) {
        UNKNOWN => assign(),
        shard => shard,
    }
}

#[cold]
fn assign() -> usize {
    let number = LEASE.try_with(|lease| lease.0).unwrap_or(SHARED);
    let shard = number.min(SHARED);
    SHARD.with(|own| own.set(shard));
    shard
}

/// A number that only grows, split over the threads that add to it.
#[derive(Default)]
pub(crate) struct Counter([Line; SHARDS]);

/// Far enough from its neighbours that writing to it does not slow them down.
#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Counter {
    /// Adds one: a load and a store where the shard is this thread's own.
    #[inline]
    pub(crate) fn add_one(&self) {
        let shard = of_this_thread();
        let line = &self.0[shard].0;
        if shard == SHARED {
            line.fetch_add(1, Ordering::Relaxed);
        } else {
            line.store(line.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The number.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|line| line.0.load(Ordering::Relaxed)).sum()
    }
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.sum())
    }
}

#[cfg(all(test, loom))]
pub(crate) mod models;

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn threads_that_live_together_never_share_a_number() {
        let barrier = Barrier::new(16);
        for _ in 0..20 {
            let mut shards: Vec<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..16)
                    .map(|_| {
                        scope.spawn(|| {
                            let shard = of_this_thread();
                            barrier.wait();
                            assert_eq!(of_this_thread(), shard);
                            shard
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            shards.retain(|shard| *shard != SHARED);
            let count = shards.len();
            shards.sort_unstable();
            shards.dedup();
            assert_eq!(shards.len(), count);
        }
    }
}
