//! A clock that stands still until it is told to go on.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::{Clock, Sleep};

/// A clock for tests: time moves only when [`advance`](ManualClock::advance) says so.
///
/// Clones share the time. Deadlines are exact to the nanosecond.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_millis(5));
/// assert_eq!(clock.now() - before, Duration::from_millis(5));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    shared: Arc<Mutex<Shared>>,
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

#[derive(Debug)]
struct Shared {
    now: Instant,
    next_key: u64,
    /// Who waits, by deadline; the key keeps sleeps of one deadline apart, in the order in which
    /// they were first polled.
    waiting: BTreeMap<(Instant, u64), Waker>,
}

impl ManualClock {
    /// A clock that stands at some moment.
    pub fn new() -> Self {
        let shared = Shared { now: Instant::now(), next_key: 0, waiting: BTreeMap::new() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing below panics while it holds the lock, so poisoning carries no news.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves time on and wakes every sleep that is due. Past the range of [`Instant`] it goes on a
    /// century at most.
    pub fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut shared = self.lock();
            let by = [by, CENTURY, Duration::ZERO];
            let after = by.iter().find_map(|by| shared.now.checked_add(*by));
            shared.now = after.unwrap_or(shared.now);
            let now = shared.now;
            let later = shared.waiting.split_off(&(now, u64::MAX));
            std::mem::replace(&mut shared.waiting, later).into_values().collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How far away the nearest sleep is, if anything sleeps.
    pub fn next_deadline(&self) -> Option<Duration> {
        let shared = self.lock();
        let ((deadline, _), _) = shared.waiting.first_key_value()?;
        Some(deadline.saturating_duration_since(shared.now))
    }

    /// How many sleeps wait.
    pub fn sleepers(&self) -> usize {
        self.lock().waiting.len()
    }

    /// A sleep of this length, for scripts that share the clock.
    pub fn sleep(&self, length: Duration) -> Sleep {
        match self.now().checked_add(length) {
            Some(deadline) => self.sleep_until(deadline),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.lock().now
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(ManualSleep { clock: self.clone(), deadline, key: None })
    }
}

struct ManualSleep {
    clock: ManualClock,
    deadline: Instant,
    key: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut shared = clock.lock();
        if shared.now >= self.deadline {
            return Poll::Ready(());
        }
        let key = *self.key.get_or_insert_with(|| {
            shared.next_key += 1;
            shared.next_key
        });
        let previous = shared.waiting.insert((self.deadline, key), cx.waker().clone());
        drop(shared);
        drop(previous); // not under the lock: a waker may own another sleep
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waker = self.clock.lock().waiting.remove(&(self.deadline, key));
            drop(waker); // not under the lock
        }
    }
}
