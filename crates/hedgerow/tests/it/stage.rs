//! Where a call is polled so many times and then dropped.

use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use hedgerow::testing::ManualExecutor;
use hedgerow::{CancellationToken, ManualClock};

/// Whether the call was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// What moves a call on.
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) executor: ManualExecutor,
    pub(crate) cancel: CancellationToken,
    /// When the caller cancels, from now.
    pub(crate) cancel_in: Option<Duration>,
}

/// How far a call came.
pub(crate) enum Came<T> {
    /// It was dropped after as many polls as it was given.
    Dropped,
    /// It ended by itself, with fewer.
    Ended(T),
    /// Nothing can end it.
    Hangs,
}

impl Stage {
    /// Moves time on to what is next. `false`: nothing is.
    fn advance(&mut self) -> bool {
        let next = [self.clock.next_deadline(), self.cancel_in];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        self.clock.advance(next);
        self.cancel_in = self.cancel_in.map(|left| left.saturating_sub(next));
        if self.cancel_in.is_some_and(|left| left.is_zero()) {
            self.cancel_in = None;
            self.cancel.cancel();
        }
        true
    }

    /// Polls the call so many times, whenever it is woken, and drops it. `late`: only after the
    /// next thing happened to it, but before it saw that.
    pub(crate) fn drive<T>(
        &mut self,
        call: impl Future<Output = T>,
        mut polls: usize,
        late: bool,
    ) -> Came<T> {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut call = Box::pin(call);
        loop {
            self.executor.run();
            if woken.0.swap(false, Ordering::AcqRel) {
                if polls == 0 {
                    return Came::Dropped;
                }
                polls -= 1;
                let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
                if let Poll::Ready(outcome) = polled {
                    return Came::Ended(outcome);
                }
                if polls == 0 && !late {
                    return Came::Dropped;
                }
            } else if !self.advance() {
                return Came::Hangs;
            }
        }
    }

    /// Lets the tasks that are left run to their ends.
    pub(crate) fn finish(&mut self) {
        self.executor.run();
        while self.advance() {
            self.executor.run();
        }
    }
}

/// Drops the call of a case after every number of polls (on waking, and `late`), until it ends by
/// itself. Says how many that took.
pub(crate) fn every_point<C: Debug, L>(
    case: &C,
    run: impl Fn(&C, usize, bool) -> L,
    check: impl Fn(&C, &L),
    dropped: impl Fn(&L) -> bool,
) -> usize {
    for polls in 0.. {
        for late in [false, true] {
            let left = run(case, polls, late);
            let checked = catch_unwind(AssertUnwindSafe(|| check(case, &left)));
            if let Err(panic) = checked {
                eprintln!("dropped after {polls} polls (late: {late}): {case:?}");
                resume_unwind(panic);
            }
            if !dropped(&left) {
                return polls;
            }
        }
    }
    unreachable!("every call ends or hangs")
}
