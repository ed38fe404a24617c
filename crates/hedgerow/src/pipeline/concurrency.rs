//! Bounds how much runs at the same time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use hedgerow_core::InvalidOption;
use hedgerow_core::text::format_duration;
use pin_project_lite::pin_project;
use tokio::sync::Semaphore;

use super::admit::{Admission, AdmitRun};
use super::builder::Builder;
use super::context::Context;
use super::error::Rejected;
use super::layer::{Layer, Place};
use super::line::{InLine, Line, Slot};
use super::next::{Next, Strategy};
use super::outcome::{MayReject, Raises};
use super::wait::Wait;

/// Lets so many run at the same time, and rejects the rest or makes them wait.
///
/// | option | values | default |
/// |---|---|---|
/// | `limit` | 1 or more | none: it is what a limiter is |
/// | `max_queue` | how many may wait for a slot; 0 rejects at once | 0 |
/// | `max_wait` | how long each may, if any may: zero is refused, [`Duration::MAX`] is without bound | without bound |
///
/// Around a hedge it counts executions, inside it attempts: there a hedge that finds no slot is
/// rejected, and what that means is the policy's
/// [`rejected_hedge`](crate::Hedge::rejected_hedge). A hedge takes its slot when it starts, not
/// before.
///
/// **Order.** Who waits is served in the order in which waiting began. A slot that is given back
/// belongs to the first in line at once, so nobody who comes later can take it; until its new owner
/// is polled it counts as in flight, and the place in the line as taken.
///
/// **Slots.** One is held from the start of what is inside until it has ended or was dropped, and is
/// free again before the outcome is seen. That holds for panics, too: the slot is free when the
/// execution is dropped. Work that runs on by itself is not counted: a task that it spawned, and on
/// threads an attempt that a timeout or a hedge has given up, until it sees that it is cancelled. What
/// runs on there is bounded by [`max_abandoned`](crate::Hedge::max_abandoned).
///
/// **Errors.** [`Rejected`], which says `all slots taken` (nobody may wait), `queue full` or `waited too
/// long`. Nobody is rejected while a slot is free, also not a task that has used up its
/// cooperative budget. A slot that has come free by the time that the end of a wait is seen is
/// taken.
///
/// Clones share the slots and the line, [`control`](Self::control) reads them. Use a
/// [`RateLimiter`](super::RateLimiter) where the target counts requests in a time rather than
/// requests in flight; leave both out where a connection pool bounds the work already.
///
/// ```
/// use hedgerow::pipeline::{ConcurrencyLimiter, Pipeline};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limiter = ConcurrencyLimiter::new(1);
/// let control = limiter.control();
/// let pipeline = Pipeline::builder().concurrency_limiter(limiter).build().unwrap();
/// let outer = pipeline.execute(|_| async {
///     assert_eq!(control.in_flight(), 1);
///     pipeline.execute(|_| async { Ok::<_, String>(1) }).await.map_err(|error| error.to_string())
/// });
/// let rejected = outer.await.unwrap_err();
/// assert_eq!(rejected.to_string(), "concurrency-limiter: all slots taken");
/// assert_eq!(control.in_flight(), 0);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ConcurrencyLimiter {
    settings: Settings,
    line: Arc<Line>,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settings {
    limit: usize,
    max_queue: usize,
    max_wait: Duration,
}

impl ConcurrencyLimiter {
    /// Lets `limit` run at the same time.
    pub fn new(limit: usize) -> Self {
        let settings = Settings { limit, max_queue: 0, max_wait: Duration::MAX };
        Self { settings, line: Arc::new(Line::new(limit)), place: Place::default() }
    }

    /// How many may wait for a slot. Default: 0, which rejects at once. Clones that say something
    /// else share the line nevertheless.
    pub fn max_queue(mut self, most: usize) -> Self {
        self.settings.max_queue = most;
        self
    }

    /// How long each may wait. Default: without bound.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.settings.max_wait = longest;
        self
    }

    /// How many may run at the same time.
    pub fn limit(&self) -> usize {
        self.settings.limit
    }

    /// Shows what this limiter and its clones do, before and after it is built into a pipeline.
    pub fn control(&self) -> ConcurrencyControl {
        ConcurrencyControl { limit: self.settings.limit, line: Arc::clone(&self.line) }
    }

    /// Goes on with the slots and the line of an earlier limiter, if all settings are the same.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn taking_over(&mut self, earlier: &Self) {
        if self.settings == earlier.settings {
            self.line = Arc::clone(&earlier.line);
        }
    }

    /// All slots are taken.
    #[cold]
    fn wait<N: Next>(&self, next: N, cx: &Context) -> ConcurrencyRun<'_, N> {
        if let Some(place) = self.line.line_up(self.settings.max_queue) {
            let waiting = Waiting { place: Some(place), wait: Wait::new(), limiter: self };
            return AdmitRun::ahead(next, cx, waiting, &self.place.time);
        }
        let full = if self.settings.max_queue == 0 { "all slots taken" } else { "queue full" };
        AdmitRun::instead(Err(self.place.reject(cx, full, None).into()))
    }
}

impl Layer for ConcurrencyLimiter {
    type Raises<I: Raises> = MayReject<I>;

    fn kind(&self) -> &'static str {
        "concurrency-limiter"
    }

    fn settings(&self) -> String {
        let Settings { limit, max_queue, max_wait } = self.settings;
        match (max_queue, max_wait) {
            (0, _) => format!("{limit} at a time"),
            (_, Duration::MAX) => format!("{limit} at a time, {max_queue} wait"),
            (_, longest) => {
                let longest = format_duration(longest);
                format!("{limit} at a time, {max_queue} wait for {longest}")
            }
        }
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        let Settings { limit, max_queue, max_wait } = self.settings;
        if limit == 0 {
            let remedy = "nothing could ever run; give it a slot, or leave the limiter out";
            mistakes.push(InvalidOption::new("limit", limit, remedy));
        }
        if limit > Semaphore::MAX_PERMITS {
            let most = Semaphore::MAX_PERMITS;
            let remedy = format!("{most} is the most; leave the limiter out if there is no limit");
            mistakes.push(InvalidOption::new("limit", limit, remedy));
        }
        if max_wait.is_zero() {
            let remedy = "nobody could wait; say max_queue 0 to reject at once";
            mistakes.push(InvalidOption::new("max_wait", "0s", remedy));
        } else if max_wait < Duration::MAX && max_queue == 0 {
            let remedy = "nobody waits while max_queue is 0; say how many may";
            mistakes.push(InvalidOption::new("max_wait", format_duration(max_wait), remedy));
        }
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }
}

impl<'p, N: Next> Strategy<N> for &'p ConcurrencyLimiter {
    type Run = ConcurrencyRun<'p, N>;

    const FORKS: bool = N::FORKS;

    #[inline]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        match self.line.try_enter() {
            Some(slot) => AdmitRun::running(next, cx, slot),
            None => self.wait(next, cx),
        }
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// A run that holds a slot, or waits for one.
pub type ConcurrencyRun<'p, N> = AdmitRun<N, Waiting<'p>>;

pin_project! {
    /// Waits for a slot.
    pub struct Waiting<'p> {
        place: Option<InLine<'p>>,
        #[pin]
        wait: Wait,
        limiter: &'p ConcurrencyLimiter,
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl<'p> Admission for Waiting<'p> {
    type Slot = Slot<'p>;

    fn poll(
        self: Pin<&mut Self>,
        cx: &Context,
        task: &mut Task<'_>,
    ) -> Poll<Result<Slot<'p>, Rejected>> {
        let this = self.project();
        if let Some(Poll::Ready(slot)) = this.place.as_mut().map(|place| place.poll(task)) {
            *this.place = None;
            return Poll::Ready(Ok(slot));
        }
        let ConcurrencyLimiter { settings, place, .. } = *this.limiter;
        ready!(this.wait.poll(&place.time, settings.max_wait, task));
        let slot = this.place.take().and_then(InLine::leave);
        Poll::Ready(slot.ok_or_else(|| place.reject(cx, "waited too long", None)))
    }
}

/// Shows what a [`ConcurrencyLimiter`] and its clones do.
#[derive(Debug, Clone)]
pub struct ConcurrencyControl {
    limit: usize,
    line: Arc<Line>,
}

impl ConcurrencyControl {
    /// How many may run at the same time.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many slots are taken now.
    pub fn in_flight(&self) -> usize {
        self.limit.saturating_sub(self.line.free())
    }

    /// How many wait now.
    pub fn queued(&self) -> usize {
        self.line.waiting()
    }
}

impl<S> Builder<S> {
    /// Adds a [`ConcurrencyLimiter`].
    pub fn concurrency_limiter(
        self,
        limiter: ConcurrencyLimiter,
    ) -> Builder<(S, ConcurrencyLimiter)> {
        self.with(limiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_settings_go_on_with_the_same_slots() {
        let earlier = ConcurrencyLimiter::new(2).max_queue(1);
        let _slot = earlier.line.try_enter();
        for (mut later, in_flight) in [
            (ConcurrencyLimiter::new(2).max_queue(1), 1),
            (ConcurrencyLimiter::new(2), 0),
            (ConcurrencyLimiter::new(3).max_queue(1), 0),
        ] {
            later.taking_over(&earlier);
            assert_eq!(later.control().in_flight(), in_flight);
        }
    }
}
