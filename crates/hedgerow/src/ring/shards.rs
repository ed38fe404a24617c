//! Who waits, and the rule by which nobody is forgotten.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;

use super::pace::{NEVER, Pace};
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering, Thread};
use super::wheel::{self, Wheel};

/// How many wakers are taken out of a shard under one lock.
const BATCH: usize = 128;

/// Everybody who waits, and the thread that wakes them.
///
/// Each thread arms in a shard of its own, so that threads seldom meet.
///
/// Nobody is forgotten: whoever arms first puts the entry in, under the shard's lock, and then
/// compares its tick with `wake_at`, when the driver looks next. The driver sets that to [`NEVER`]
/// before it looks and to the real moment afterwards. So either it saw the entry, or the lock was
/// its before: then who arms sees one of the two, and if that is too late wakes the driver.
#[derive(Debug)]
pub(super) struct Shards {
    lines: Box<[Line<Mutex<Shard>>]>,
    /// One less than their number.
    mask: u32,
    wake_at: AtomicU64,
    driver: Mutex<Option<Thread>>,
    start: Start,
}

/// Starts the driver.
pub(super) type Start = fn(&'static Shards) -> io::Result<Thread>;

/// Far enough from its neighbours that writing to it does not slow them down.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug)]
struct Shard {
    wheel: Wheel<Waker>,
    /// The shortest delay that was armed since the driver looked.
    armed: u64,
}

/// What the driver keeps from one look to the next.
#[derive(Debug)]
pub(super) struct Driver {
    pace: Pace,
    /// Empty between looks; kept for its room.
    due: Vec<Waker>,
}

impl Driver {
    pub(super) fn new() -> Self {
        Self { pace: Pace::new(), due: Vec::with_capacity(BATCH) }
    }
}

/// Where somebody waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    entry: wheel::Key,
    shard: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing below panics while it holds a lock, so poisoning carries no news.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shards {
    /// `count` shards, a power of two.
    pub(super) fn new(count: u32, start: Start) -> Self {
        debug_assert!(count.is_power_of_two(), "threads are spread by a mask");
        let shard = || Shard { wheel: Wheel::new(), armed: NEVER };
        let lines = (0..count).map(|_| Line(Mutex::new(shard()))).collect();
        Self {
            lines,
            mask: count - 1,
            wake_at: AtomicU64::new(NEVER),
            driver: Mutex::new(None),
            start,
        }
    }

    fn shard(&self, shard: u32) -> MutexGuard<'_, Shard> {
        lock(&self.lines[shard as usize].0)
    }

    /// Wakes `waker` at `tick`, which is `delay` ticks away. The shard is that of this thread's
    /// number.
    ///
    /// # Errors
    ///
    /// If there is no driver and none can be started. Then nobody waits.
    pub(super) fn arm(
        &'static self,
        thread: u32,
        tick: u64,
        delay: u64,
        waker: Waker,
    ) -> io::Result<Key> {
        let shard = thread & self.mask;
        let entry = {
            let mut shard = self.shard(shard);
            shard.armed = shard.armed.min(delay.max(1));
            shard.wheel.insert(tick, waker)
        };
        let key = Key { entry, shard };
        // The shard's lock has put this after what the driver stored before it looked.
        if tick < self.wake_at.load(Ordering::Relaxed) {
            self.wake_driver().inspect_err(|_| self.disarm(key))?;
        }
        Ok(key)
    }

    /// Wakes this waker instead of an earlier one. Whether it is too late for that: whoever waited
    /// was woken.
    pub(super) fn is_over(&self, key: Key, waker: &Waker) -> bool {
        match self.shard(key.shard).wheel.get_mut(key.entry) {
            None => return true,
            Some(kept) if kept.will_wake(waker) => return false,
            Some(_) => {}
        }
        // Wakers are the caller's code: they are cloned and dropped outside the lock.
        let mut waker = waker.clone();
        let mut shard = self.shard(key.shard);
        let kept = shard.wheel.get_mut(key.entry);
        let over = kept.map(|kept| std::mem::swap(kept, &mut waker)).is_none();
        drop(shard);
        over
    }

    /// Nobody waits there any more.
    pub(super) fn disarm(&self, key: Key) {
        let waker = self.shard(key.shard).wheel.remove(key.entry);
        drop(waker); // not under the lock
    }

    /// The driver looks: wakes whoever is due by `now`, and says when to look again.
    pub(super) fn look(&self, now: u64, driver: &mut Driver) -> u64 {
        let Driver { pace, due } = driver;
        let (mut armed, mut earliest) = (NEVER, NEVER);
        self.wake_at.store(NEVER, Ordering::Relaxed);
        for Line(shard) in &self.lines {
            let mut more = true;
            while more {
                let mut shard = lock(shard);
                more = shard.wheel.expire(now, BATCH, due);
                if !more {
                    armed = armed.min(std::mem::replace(&mut shard.armed, NEVER));
                    earliest = earliest.min(shard.wheel.next().unwrap_or(NEVER));
                }
                drop(shard);
                due.drain(..).for_each(wake);
            }
        }
        let until = pace.look_again(now, armed, earliest);
        self.wake_at.store(until, Ordering::Relaxed);
        until
    }

    /// Has the driver look now. Starts it if it does not run.
    #[cold]
    fn wake_driver(&'static self) -> io::Result<()> {
        let mut driver = lock(&self.driver);
        if driver.is_none() {
            *driver = Some((self.start)(self)?);
        }
        if let Some(thread) = &*driver {
            thread.unpark();
        }
        Ok(())
    }

    /// How many slots the shard of this thread's number has, free ones included.
    #[cfg(all(test, not(loom)))]
    fn slots(&self, thread: u32) -> usize {
        self.shard(thread & self.mask).wheel.slots()
    }
}

/// Wakes somebody. A waker that panics is its owner's loss: the others are woken all the same.
fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // A payload's destructor may panic, too: let it be.
        std::mem::forget(panic);
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
