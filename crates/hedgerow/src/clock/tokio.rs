//! Time inside tokio's runtime, and elsewhere in a program that has tokio.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use super::{Clock, RingClock, Sleep, Time};
use crate::ring;

/// The clock of a policy that names none: tokio's, paused or not, and outside its runtimes the
/// ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Automatic;

impl Clock for Automatic {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        if in_runtime() {
            Box::pin(tokio::time::sleep_until(deadline.into()))
        } else {
            RingClock.sleep_until(deadline)
        }
    }
}

/// Whether this thread is inside one of tokio's runtimes. Asking for the task first saves nearly
/// every call a look at the runtime's reference count, which all threads share.
#[inline]
fn in_runtime() -> bool {
    tokio::task::try_id().is_some() || Handle::try_current().is_ok()
}

/// Whether to look for virtual time: where tests are built. A look costs two clocks.
const LOOKS: bool = cfg!(any(debug_assertions, feature = "test-util"));

/// What time it is on tokio's clock, if that is not the real one: paused, or moved by hand.
#[inline]
pub(super) fn virtual_now() -> Option<Instant> {
    if !LOOKS {
        return None;
    }
    let before = Instant::now();
    let now = tokio::time::Instant::now().into_std();
    (now < before || now > Instant::now()).then_some(now)
}

pin_project! {
    /// The timer of a call's first hedge, inline in its future.
    #[project = TimerProj]
    #[derive(Debug)]
    pub(crate) enum Timer {
        Tokio { #[pin] sleep: tokio::time::Sleep },
        Ring { sleep: ring::Sleep },
    }
}

impl Timer {
    /// Starts a timer that ends after `delay`, which is not too long for any clock, and puts it in
    /// its place. Tokio's is large, and would be copied on its way were it returned from two arms.
    #[inline]
    pub(crate) fn start(time: &Time, delay: Duration, put: impl FnOnce(Self)) {
        let on_ring = match time {
            Time::Automatic => !in_runtime(),
            Time::Ring => virtual_now().is_none(),
            Time::Own(_) => false,
        };
        if on_ring {
            put(Self::Ring { sleep: ring::Sleep::until(Instant::now() + delay) });
        } else {
            put(Self::Tokio { sleep: tokio::time::sleep(delay) });
        }
    }

    /// When it ends, or ended.
    pub(crate) fn deadline(&self) -> Instant {
        match self {
            Self::Tokio { sleep } => sleep.deadline().into_std(),
            Self::Ring { sleep } => sleep.deadline(),
        }
    }

    /// Ready when it has ended. `delay` is what it was started with.
    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, delay: Duration, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            TimerProj::Tokio { sleep } => sleep.poll(cx),
            TimerProj::Ring { sleep } => sleep.poll(delay, cx),
        }
    }
}
