//! Time in a program without tokio: the ring is all there is.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The clock of a policy that names none.
pub(super) use super::RingClock as Automatic;
use super::Time;
use crate::ring;

/// There is no virtual time but a policy's own.
#[inline]
pub(super) fn virtual_now() -> Option<Instant> {
    None
}

/// The timer of a call's first hedge, inline in its future.
#[derive(Debug)]
pub(crate) struct Timer(ring::Sleep);

impl Timer {
    /// Starts a timer that ends after `delay`, which is not too long for any clock, and puts it in
    /// its place.
    #[inline]
    pub(crate) fn start(_: &Time, delay: Duration, put: impl FnOnce(Self)) {
        put(Self(ring::Sleep::until(Instant::now() + delay)));
    }

    /// When it ends, or ended.
    pub(crate) fn deadline(&self) -> Instant {
        self.0.deadline()
    }

    /// Ready when it has ended. `delay` is what it was started with.
    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, delay: Duration, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.poll(delay, cx)
    }
}
