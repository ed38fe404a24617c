//! A timer that is made when it is first waited for.

use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::context::Context;
use crate::clock::{Sleep, Time, Timer};

/// Longer than this is never: a timer that far away would only overflow something.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Since when something waits, where what is inside has to know: if there is a limit around it.
#[derive(Debug, Clone)]
pub(crate) struct Since(Option<(Time, Instant)>);

impl Since {
    /// Since now.
    pub(crate) fn now(cx: &Context, time: &Time) -> Self {
        Self(cx.within().map(|_| (time.clone(), time.clock().now())))
    }

    /// How long that is; nothing if nobody has to know.
    pub(crate) fn passed(&self) -> Duration {
        let passed =
            |(time, since): &(Time, Instant)| time.clock().now().saturating_duration_since(*since);
        self.0.as_ref().map_or(Duration::ZERO, passed)
    }
}

pin_project! {
    /// A timer that is made when it is first waited for.
    pub(crate) struct Wait {
        #[pin]
        made: Made,
    }
}

pin_project! {
    #[project = MadeProj]
    enum Made {
        NotYet,
        Inline { #[pin] timer: Timer },
        ByClock { sleep: Sleep, deadline: Instant },
    }
}

impl Wait {
    /// None is made yet.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { made: Made::NotYet }
    }

    /// Ready `limit` after the first poll, with the time that has passed since.
    pub(crate) fn poll(
        mut self: Pin<&mut Self>,
        time: &Time,
        limit: Duration,
        cx: &mut Task<'_>,
    ) -> Poll<Duration> {
        if limit > LONGEST {
            return Poll::Pending;
        }
        let mut this = self.as_mut().project();
        if matches!(*this.made, Made::NotYet) {
            if time.has_timer() {
                Timer::start(time, limit, |timer| this.made.set(Made::Inline { timer }));
            } else {
                let Some(deadline) = time.clock().now().checked_add(limit) else {
                    return Poll::Pending; // past the end of the clock: never
                };
                let sleep = time.clock().sleep_until(deadline);
                this.made.set(Made::ByClock { sleep, deadline });
            }
        }
        let (polled, deadline) = match this.made.as_mut().project() {
            MadeProj::Inline { mut timer } => (timer.as_mut().poll(limit, cx), timer.deadline()),
            MadeProj::ByClock { sleep, deadline } => (sleep.as_mut().poll(cx), *deadline),
            MadeProj::NotYet => return Poll::Pending,
        };
        polled.map(|()| limit + time.clock().now().saturating_duration_since(deadline))
    }

    /// Forgets the timer: the next poll makes another.
    pub(crate) fn reset(self: Pin<&mut Self>) {
        self.project().made.set(Made::NotYet);
    }
}
