//! Gives up after a limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use hedgerow_core::InvalidOption;
use hedgerow_core::text::format_duration;
use pin_project_lite::pin_project;
use tokio_util::sync::CancellationToken;

use super::classify::PipelineResult;
use super::context::Context;
use super::error::{PipelineError, TimedOut};
use super::layer::{Facts, Layer, Place};
use super::next::{Next, Strategy};
use super::outcome::{MayTimeOut, Raises};
use super::wait::Wait;
use crate::drive::panics::at_last;

/// Gives up after a limit: drops what runs inside and returns [`TimedOut`](super::TimedOut).
///
/// Added before the hedge it limits the whole race, added after it each attempt (T45); likewise
/// around and inside a retry. What is inside is dropped, not waited for, and an outcome of the very
/// moment at which the limit passes wins over it.
///
/// | option | values | default |
/// |---|---|---|
/// | `limit` | a duration; zero is refused, [`Duration::MAX`] is never | none: it is what a timeout is |
///
/// The limit counts from the end of the first poll inside it, so that an answer that comes at once
/// costs neither a clock nor a timer. Work that blocks its thread is seen when it lets go: if a retry
/// or a hedge inside was due in the meantime as well, what that starts is dropped in the same poll.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::pipeline::{Pipeline, PipelineError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limit = Duration::from_millis(5);
/// let pipeline = Pipeline::builder().timeout(limit).build().unwrap();
/// let never = pipeline.execute(|_| std::future::pending::<Result<u32, String>>()).await;
/// assert!(matches!(never, Err(PipelineError::TimedOut(it)) if it.limit() == limit));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Timeout {
    limit: Duration,
    place: Place,
}

impl Timeout {
    /// Gives up after `limit`.
    pub fn after(limit: Duration) -> Self {
        Self { limit, place: Place::default() }
    }

    /// The limit.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

impl From<Duration> for Timeout {
    fn from(limit: Duration) -> Self {
        Self::after(limit)
    }
}

impl Layer for Timeout {
    type Raises<I: Raises> = MayTimeOut<I>;

    fn kind(&self) -> &'static str {
        "timeout"
    }

    fn settings(&self) -> String {
        format_duration(self.limit)
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        if self.limit.is_zero() {
            let remedy = "nothing could ever answer; give it a time, or leave the timeout out";
            mistakes.push(InvalidOption::new("limit", "0s", remedy));
        }
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }

    fn facts(&self) -> Facts {
        let limit = (self.limit != Duration::MAX).then_some(self.limit);
        Facts { limit, ..Facts::default() }
    }
}

impl<'p, N: Next> Strategy<N> for &'p Timeout {
    type Run = TimeoutRun<'p, N>;

    const FORKS: bool = N::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        let told = self.place.is_told().then(|| cx.clone());
        let deadline = || self.place.time.clock().now().checked_add(self.limit);
        let mut cx = cx.limited(self.limit);
        let token = cx.guard(deadline);
        let on_drop = !cx.is_detached();
        let asked = told.is_some() || token.is_some();
        let asked = asked.then(|| Box::new(Asked { told, token, on_drop }));
        let stage = Stage::Inside { run: next.run_once(&cx) };
        TimeoutRun { asked, stage, wait: Wait::new(), timeout: self }
    }

    fn attempts(run: &Self::Run) -> u32 {
        match &run.stage {
            Stage::Inside { run } => N::attempts(run),
            Stage::Over { attempts } => *attempts,
        }
    }
}

pin_project! {
    /// A run that gives up after a limit.
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutRun<'p, N: Next> {
        // Dropped first: the token fires before what it belongs to is dropped.
        asked: Option<Box<Asked>>,
        #[pin]
        stage: Stage<N::Run>,
        #[pin]
        wait: Wait,
        timeout: &'p Timeout,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<I> {
        Inside { #[pin] run: I },
        // It was dropped, having begun so many attempts.
        Over { attempts: u32 },
    }
}

/// What few runs need.
#[derive(Debug)]
struct Asked {
    /// Who is told, if anybody is.
    told: Option<Context>,
    /// That of what runs inside, if tokens were asked for.
    token: Option<CancellationToken>,
    /// Whether it fires when the run is dropped.
    on_drop: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(token) = self.token.take().filter(|_| self.on_drop) {
            at_last(false, || token.cancel());
        }
    }
}

impl<N: Next> Future for TimeoutRun<'_, N> {
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let StageProj::Inside { run } = this.stage.as_mut().project() else {
            panic!("`TimeoutRun` polled after completion");
        };
        if let Poll::Ready(outcome) = run.poll(cx) {
            if let Some(asked) = this.asked {
                asked.on_drop = false; // the winner's token stays as it is
            }
            return Poll::Ready(outcome);
        }
        let Timeout { limit, place } = this.timeout;
        let elapsed = ready!(this.wait.poll(&place.time, *limit, cx));
        let attempts = match &*this.stage {
            Stage::Inside { run } => N::attempts(run),
            Stage::Over { attempts } => *attempts,
        };
        let mut told = None;
        if let Some(mut asked) = this.asked.take() {
            // The token fires before what it belongs to is dropped.
            asked.on_drop = true;
            told = asked.told.take();
        }
        this.stage.set(Stage::Over { attempts });
        let timed_out = match told {
            Some(cx) => place.time_out(&cx, *limit, elapsed),
            None => TimedOut::new(Arc::clone(&place.strategy), *limit, elapsed),
        };
        Poll::Ready(Err(PipelineError::TimedOut(timed_out)))
    }
}

impl<N: Next> fmt::Debug for TimeoutRun<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutRun").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
