//! Where the async front gets its time from.

#[cfg(not(feature = "tokio"))]
mod bare;
#[cfg(feature = "test-util")]
mod manual;
#[cfg(feature = "pipeline")]
mod tick;
#[cfg(feature = "tokio")]
mod tokio;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

#[cfg(not(feature = "tokio"))]
pub(crate) use self::bare::Timer;
#[cfg(not(feature = "tokio"))]
use self::bare::{Automatic, virtual_now};
#[cfg(feature = "pipeline")]
pub(crate) use self::tick::Tick;
#[cfg(feature = "tokio")]
pub(crate) use self::tokio::Timer;
#[cfg(feature = "tokio")]
use self::tokio::{Automatic, virtual_now};
use crate::ring;
#[cfg(feature = "test-util")]
pub use manual::ManualClock;

/// A sleep that a [`Clock`] made.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time: says what time it is, and wakes at a moment.
///
/// Inside tokio's runtimes tokio's clock is the default, which honours paused time; elsewhere it is
/// the system's, with Hedgerow's own timer ([`Hedge::ring_timer`](crate::Hedge::ring_timer)).
/// Another one is chosen with [`Hedge::clock`](crate::Hedge::clock), for instance `ManualClock` in
/// tests (feature `test-util`).
pub trait Clock: fmt::Debug + Send + Sync {
    /// What time it is. Must never go backwards.
    fn now(&self) -> Instant;

    /// A future that is ready at `deadline`: never early, and not ready before it is polled at or
    /// after that moment. It must wake the waker of its latest poll.
    fn sleep_until(&self, deadline: Instant) -> Sleep;
}

/// Where the calls of a policy take their time from.
#[derive(Debug, Clone, Default)]
pub(crate) enum Time {
    /// Tokio's clock inside its runtimes, the ring elsewhere.
    #[default]
    Automatic,
    /// The ring, wherever the call is polled.
    Ring,
    /// A clock that the caller brought.
    Own(Arc<dyn Clock>),
}

impl Time {
    /// The clock that it means.
    pub(crate) fn clock(&self) -> &dyn Clock {
        match self {
            Self::Automatic => &Automatic,
            Self::Ring => &RingClock,
            Self::Own(clock) => clock.as_ref(),
        }
    }

    /// Whether nobody chose it.
    pub(crate) fn is_default(&self) -> bool {
        matches!(self, Self::Automatic)
    }

    /// Whether a call can wait by the timer in its own future.
    pub(crate) fn has_timer(&self) -> bool {
        !matches!(self, Self::Own(_))
    }
}

/// The clock of the system, with the ring as its timer; where tokio's time is virtual, that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingClock;

impl Clock for RingClock {
    fn now(&self) -> Instant {
        virtual_now().unwrap_or_else(Instant::now)
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        if virtual_now().is_some() {
            return Automatic.sleep_until(deadline);
        }
        let delay = deadline.saturating_duration_since(Instant::now());
        let mut sleep = ring::Sleep::until(deadline);
        Box::pin(poll_fn(move |cx| sleep.poll(delay, cx)))
    }
}
