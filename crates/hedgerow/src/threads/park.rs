//! Waiting: a thread sleeps until it is woken, or until its timer is due.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tokio::task::coop::unconstrained;

use crate::clock::{Clock, Sleep};

/// The longest sleep at a time: longer ones would only meet the limits of some system.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Where one thread waits.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    woken: bool,
    /// When the nearest timer is due that was polled since the thread last slept.
    due: Option<Instant>,
}

impl Parker {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a future to its end on this thread, which sleeps while there is nothing to do.
    ///
    /// On a thread that is in a task of tokio's, what is waited for gets as much of that as it takes:
    /// the task's budget would come back only if the task itself were left.
    pub(crate) fn block_on<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let mut future = pin!(unconstrained(future));
        let waker = Waker::from(Arc::clone(self));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            self.wait();
        }
    }

    /// Sleeps until it is woken or the nearest timer is due. Timers say again at each poll that
    /// they are waited for.
    fn wait(&self) {
        let mut state = self.lock();
        while !state.woken {
            let left = match state.due {
                Some(due) => due.saturating_duration_since(Instant::now()),
                None => LONGEST,
            };
            if left.is_zero() {
                break;
            }
            let waited = self.bell.wait_timeout(state, left.min(LONGEST));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *state = State::default();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.lock().woken = true;
        self.bell.notify_one();
    }
}

/// The system's monotonic clock, for calls that wait at this parker.
#[derive(Debug)]
pub(super) struct WallClock(pub(super) Arc<Parker>);

impl Clock for WallClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(WallSleep { parker: Arc::clone(&self.0), deadline })
    }
}

struct WallSleep {
    parker: Arc<Parker>,
    deadline: Instant,
}

impl Future for WallSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.deadline {
            return Poll::Ready(());
        }
        let due = &mut self.parker.lock().due;
        *due = Some(due.map_or(self.deadline, |due| due.min(self.deadline)));
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn it_sleeps_until_its_timer_is_due_and_no_longer() {
        let parker = Arc::new(Parker::default());
        let clock = WallClock(Arc::clone(&parker));
        let due = clock.now() + Duration::from_millis(1);
        parker.block_on(clock.sleep_until(due));
        assert!(clock.now() >= due);
        parker.block_on(clock.sleep_until(due)); // long past: no sleep at all
    }

    #[tokio::test]
    async fn the_budget_of_tokios_tasks_is_no_bound() {
        let parker = Arc::new(Parker::default());
        for round in 0..1_000 {
            let (sender, mut receiver) = tokio::sync::oneshot::channel();
            assert_eq!(sender.send(round), Ok(()));
            let sent = parker.block_on(std::future::poll_fn(|cx| {
                let polled = Pin::new(&mut receiver).poll(cx);
                assert!(polled.is_ready(), "round {round}: it would sleep for ever");
                polled
            }));
            assert_eq!(sent, Ok(round));
        }
    }

    #[test]
    fn it_is_woken_by_other_threads() {
        let parker = Arc::new(Parker::default());
        let clock = WallClock(Arc::clone(&parker));
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut timer = clock.sleep_until(clock.now() + LONGEST * 400);
        let mut receiver = Box::pin(receiver);
        let other = thread::spawn(move || sender.send(7));
        let woken = parker.block_on(std::future::poll_fn(|cx| {
            assert!(timer.as_mut().poll(cx).is_pending());
            receiver.as_mut().poll(cx)
        }));
        assert_eq!(woken, Ok(7));
        assert_eq!(other.join().expect("it does not panic"), Ok(()));
    }
}
