//! Where the async front gets its time from.

#[cfg(feature = "test-util")]
mod manual;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "test-util")]
pub use manual::ManualClock;

/// A sleep that a [`Clock`] made.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time: says what time it is, and wakes at a moment.
///
/// Tokio's clock is the default; it honours paused time. Another one is chosen with
/// [`Hedge::clock`](crate::Hedge::clock), for instance `ManualClock` in tests
/// (feature `test-util`).
pub trait Clock: fmt::Debug + Send + Sync {
    /// What time it is. Must never go backwards.
    fn now(&self) -> Instant;

    /// A future that is ready at `deadline`: never early, and not ready before it is polled at or
    /// after that moment. It must wake the waker of its latest poll.
    fn sleep_until(&self, deadline: Instant) -> Sleep;
}

/// Tokio's clock, paused or not.
#[derive(Debug, Clone, Copy, Default)]
struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }
}

/// This clock, or tokio's if there is none.
pub(crate) fn or_tokio(clock: Option<&Arc<dyn Clock>>) -> &dyn Clock {
    clock.map_or(&TokioClock, Arc::as_ref)
}
