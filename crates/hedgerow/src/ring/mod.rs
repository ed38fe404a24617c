//! The ring timer: one for the whole process, for any runtime and for none.
//!
//! | file | what it is |
//! |---|---|
//! | [`wheel`] | what is due when, as arithmetic |
//! | [`pace`] | when the driver looks again, as arithmetic |
//! | [`shards`] | who waits, and why nobody is forgotten |
//! | this one | the process's own: its clock, its thread, and the sleep that calls hold |
//!
//! Time is counted in milliseconds from when the process first used the timer. A deadline is
//! rounded up, the present down: nobody is woken early. The thread needs no runtime, so it wakes
//! calls of runtimes that come, go or stand still.

mod pace;
mod shards;
mod sync;
mod wheel;

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pace::NEVER;
use shards::{Driver, Key, Shards};

/// A sleep that takes no allocation. Waits from its first poll on.
#[derive(Debug)]
pub(crate) struct Sleep {
    deadline: Instant,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    New,
    Waits(Key),
    Over,
}

impl Sleep {
    #[inline]
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, stage: Stage::New }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ready when the deadline is over, and never before; wakes the waker of the latest poll.
    /// `delay` is how long it all takes; only how soon the driver looks again depends on it.
    ///
    /// # Panics
    ///
    /// If the timer's thread is needed and cannot be started.
    #[inline]
    pub(crate) fn poll(&mut self, delay: Duration, cx: &mut Context<'_>) -> Poll<()> {
        match self.stage {
            Stage::New => self.arm(delay, cx),
            Stage::Waits(key) if !ring().shards.is_over(key, cx.waker()) => Poll::Pending,
            Stage::Waits(_) | Stage::Over => {
                self.stage = Stage::Over;
                Poll::Ready(())
            }
        }
    }

    #[inline]
    fn arm(&mut self, delay: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let (ring, waker) = (ring(), cx.waker().clone());
        let (tick, delay) = (ring.tick_after(self.deadline), whole_millis(delay));
        match ring.shards.arm(thread_number(), tick, delay, waker) {
            Ok(key) => self.stage = Stage::Waits(key),
            Err(error) => no_thread(&error),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if let Stage::Waits(key) = self.stage {
            ring().shards.disarm(key);
        }
    }
}

#[cold]
fn no_thread(error: &io::Error) -> ! {
    panic!(
        "the ring timer needs one thread of its own, and it does not start: {error}. Let the \
         process have another thread, or have the policy wait by other means: tokio's timer \
         (feature `tokio`, a call inside its runtime, no `ring_timer`) or a clock of your own \
         (`Hedge::clock`)"
    );
}

/// The timer of this process.
struct Ring {
    shards: Shards,
    /// Tick 0.
    base: Instant,
}

static RING: OnceLock<Ring> = OnceLock::new();

#[inline]
fn ring() -> &'static Ring {
    RING.get_or_init(|| {
        // Twice as many shards as threads that run at once: seldom do two of them share one.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = u32::try_from(2 * threads).unwrap_or(256).clamp(8, 256).next_power_of_two();
        Ring { shards: Shards::new(shards, start_driver), base: Instant::now() }
    })
}

impl Ring {
    /// The first tick that is not before this moment.
    fn tick_after(&self, moment: Instant) -> u64 {
        millis_up(moment.saturating_duration_since(self.base))
    }

    fn now(&self) -> u64 {
        whole_millis(self.base.elapsed())
    }
}

fn millis_up(duration: Duration) -> u64 {
    let millis = duration.subsec_nanos().div_ceil(1_000_000);
    duration.as_secs().saturating_mul(1_000).saturating_add(millis.into())
}

fn whole_millis(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000).saturating_add(duration.subsec_millis().into())
}

/// A number for each thread, by which threads are spread over the shards.
#[inline]
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        /// Without a destructor, so that it can be read while the thread ends.
        static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(Some(number));
        number
    })
}

#[cfg(not(loom))]
fn start_driver(_: &'static Shards) -> io::Result<sync::Thread> {
    let builder = std::thread::Builder::new().name("hedgerow-ring".to_owned());
    builder.spawn(|| drive(ring())).map(|handle| handle.thread().clone())
}

#[cfg(loom)]
fn start_driver(_: &'static Shards) -> io::Result<sync::Thread> {
    Err(io::Error::other("a model starts a driver of its own"))
}

/// The thread that wakes whoever is due, for as long as the process lives. It sleeps in between,
/// and until it is woken if nobody has waited for a while.
#[cfg_attr(loom, allow(dead_code, reason = "a model drives by itself"))]
fn drive(ring: &Ring) {
    let mut driver = Driver::new();
    loop {
        match ring.shards.look(ring.now(), &mut driver) {
            NEVER => std::thread::park(),
            until => {
                let until = Duration::from_millis(until);
                std::thread::park_timeout(until.saturating_sub(ring.base.elapsed()));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::catch_unwind;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A deadline's tick comes when the deadline has, and no later than a millisecond after it.
        #[test]
        fn deadlines_are_rounded_up_and_the_present_down(
            seconds in 0..1u64 << 40, nanos in 0..1_000_000_000u32, on in 0..3_000_000u64,
        ) {
            let deadline = Duration::new(seconds, nanos);
            let tick = millis_up(deadline);
            let now = deadline.saturating_sub(Duration::from_nanos(on));
            prop_assert!(on == 0 || whole_millis(now) < tick, "not early");
            prop_assert!(whole_millis(deadline + Duration::from_millis(1)) >= tick, "not late");
        }
    }

    #[test]
    fn the_longest_durations_do_not_overflow() {
        assert_eq!(millis_up(Duration::MAX), u64::MAX);
        assert_eq!(whole_millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_thread_that_does_not_start_is_an_error_with_a_remedy() {
        let refused = || io::Error::other("Resource temporarily unavailable");
        let panic = catch_unwind(|| no_thread(&refused())).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        for said in ["ring timer", "Resource temporarily", "another thread", "`Hedge::clock`"] {
            assert!(text.contains(said), "{text}");
        }
    }
}
