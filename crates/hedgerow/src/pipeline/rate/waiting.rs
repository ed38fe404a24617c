//! Waits for a permit.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::RateLimiter;
use super::quota::in_vain;
use crate::pipeline::admit::Admission;
use crate::pipeline::context::Context;
use crate::pipeline::error::Rejected;
use crate::pipeline::line::{InLine, Slot};
use crate::pipeline::wait::Wait;

pin_project! {
    /// Waits for a permit: in line, and then, as the first of it, for the time of the next.
    pub struct Waiting<'p> {
        // Given back in this order: the next one's turn comes, then there is one less.
        turn: Option<Slot<'p>>,
        place: Option<InLine<'p>>,
        #[pin]
        wait: Wait,
        // How long until the next permit, as of when the timer began.
        timer: Option<Duration>,
        // When it gives up; `None` is never.
        deadline: Option<Instant>,
        limiter: &'p RateLimiter,
    }
}

impl<'p> Waiting<'p> {
    pub(super) fn new(place: InLine<'p>, limiter: &'p RateLimiter) -> Self {
        let now = limiter.meter().time().clock().now();
        let deadline = now.checked_add(limiter.max_wait);
        let (turn, place, timer) = (None, Some(place), None);
        Self { turn, place, wait: Wait::new(), timer, deadline, limiter }
    }

    /// Waits until it is the first. `false`: for too long.
    fn poll_turn(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<bool> {
        let mut this = self.project();
        if this.turn.is_some() {
            return Poll::Ready(true);
        }
        match this.place.as_mut().map(|place| place.poll(task)) {
            Some(Poll::Ready(turn)) => *this.turn = Some(turn),
            Some(Poll::Pending) | None => {
                let time = this.limiter.meter().time();
                ready!(this.wait.as_mut().poll(time, this.limiter.max_wait, task));
                *this.turn = this.place.take().and_then(InLine::leave);
            }
        }
        this.wait.reset();
        Poll::Ready(this.turn.is_some())
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl Admission for Waiting<'_> {
    type Slot = ();

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &Context,
        task: &mut Task<'_>,
    ) -> Poll<Result<(), Rejected>> {
        let (limiter, meter) = (self.limiter, self.limiter.meter());
        let admitted = loop {
            if !ready!(self.as_mut().poll_turn(task)) {
                break Err(limiter.place.reject(cx, "waited too long", None));
            }
            let mut this = self.as_mut().project();
            if let Some(timer) = *this.timer {
                ready!(this.wait.as_mut().poll(meter.time(), timer, task));
                this.wait.reset();
                *this.timer = None;
            }
            let Err(wait) = meter.take() else { break Ok(()) };
            let left = |at: Instant| at.saturating_duration_since(meter.time().clock().now());
            if in_vain(wait, this.deadline.map_or(Duration::MAX, left)) {
                break Err(limiter.exceeded(cx, Some(wait)));
            }
            *this.timer = Some(wait);
        };
        let this = self.project();
        (*this.turn, *this.place) = (None, None);
        Poll::Ready(admitted)
    }
}
