//! What hedges do instead of the same work.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use crate::attempt::Attempt;
use crate::pipeline::classify::PipelineResult;
use crate::pipeline::context::Context;
use crate::pipeline::error::PipelineError;
use crate::pipeline::layer::Place;
use crate::pipeline::next::Next;
use crate::pipeline::wait::Since;
use crate::rules::{NextAction, NextHedge, NoAction};

/// A boxed run of something in a pipeline.
pub type BoxRun<'a, T, E> = Pin<Box<dyn Future<Output = PipelineResult<T, E>> + Send + 'a>>;

/// What [`Hedging::next_action`](super::Hedging::next_action) says: an `Err` ends the hedged call
/// with it (T41).
pub type ActionResult<'a, T, E> =
    Result<NextAction<BoxRun<'a, T, E>, T, PipelineError<E>>, PipelineError<E>>;

/// The strategies inside a hedge, around the original work: await it to run them (T31). They begin
/// with the first poll.
pub struct RestOfPipeline<'a, T, E>(Box<dyn FnOnce() -> BoxRun<'a, T, E> + Send + 'a>);

impl<'a, T, E> IntoFuture for RestOfPipeline<'a, T, E> {
    type Output = PipelineResult<T, E>;
    type IntoFuture = BoxRun<'a, T, E>;

    fn into_future(self) -> Self::IntoFuture {
        (self.0)()
    }
}

impl<T, E> fmt::Debug for RestOfPipeline<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestOfPipeline")
    }
}

/// What hedges do: the same again, or what a closure says.
pub trait Actions<N: Next> {
    #[doc(hidden)]
    type Action: Future<Output = PipelineResult<N::Value, N::Error>>;

    /// What it takes to run the rest.
    #[doc(hidden)]
    type Kept;

    #[doc(hidden)]
    const ACTS: bool;

    #[doc(hidden)]
    fn keep(next: &N, cx: &Context, place: &Place, detached: bool) -> Self::Kept;

    #[doc(hidden)]
    #[expect(clippy::type_complexity, reason = "the answer of a rule")]
    fn next(
        &self,
        kept: &Self::Kept,
        next: &NextHedge<'_>,
    ) -> Result<NextAction<Self::Action, N::Value, PipelineError<N::Error>>, PipelineError<N::Error>>;
}

/// Hedges repeat the work.
#[derive(Debug, Clone, Copy)]
pub struct Repeat;

impl<N: Next> Actions<N> for &Repeat {
    type Action = NoAction<N::Value, PipelineError<N::Error>>;
    type Kept = ();

    const ACTS: bool = false;

    fn keep(_: &N, _: &Context, _: &Place, _: bool) {}

    fn next(
        &self,
        (): &(),
        _: &NextHedge<'_>,
    ) -> Result<NextAction<Self::Action, N::Value, PipelineError<N::Error>>, PipelineError<N::Error>>
    {
        Ok(NextAction::Repeat)
    }
}

/// Hedges do what a closure says.
#[derive(Clone, Copy)]
pub struct ActBy<F>(pub(super) F);

/// `Self: 'p` is a reference to the strategy; the run may borrow what the pipeline has.
impl<'p, N, F> Actions<N> for &'p ActBy<F>
where
    N: Next<Run: Send> + Send + 'p,
    F: for<'a> Fn(
        &NextHedge<'_>,
        RestOfPipeline<'a, N::Value, N::Error>,
    ) -> ActionResult<'a, N::Value, N::Error>,
{
    type Action = BoxRun<'p, N::Value, N::Error>;
    type Kept = Rest<N>;

    const ACTS: bool = true;

    fn keep(next: &N, cx: &Context, place: &Place, detached: bool) -> Self::Kept {
        let since = Since::now(cx, &place.time);
        Rest { next: next.clone(), cx: cx.clone(), since, detached }
    }

    fn next(
        &self,
        rest: &Self::Kept,
        next: &NextHedge<'_>,
    ) -> ActionResult<'p, N::Value, N::Error> {
        let (rest, attempt) = (rest.clone(), next.attempt().clone());
        let rest = RestOfPipeline(Box::new(move || Box::pin(rest.run(attempt))));
        (self.0)(next, rest)
    }
}

/// What is inside the hedge, for an action that runs it.
#[derive(Debug, Clone)]
pub struct Rest<N> {
    next: N,
    cx: Context,
    /// When the hedged run began.
    since: Since,
    /// Whether attempts run on where they lose.
    detached: bool,
}

impl<N: Next> Rest<N> {
    /// Begins with the first poll: not before the hedge has started (E9), which is when the attempt
    /// gets its properties (A25).
    async fn run(self, attempt: Attempt) -> PipelineResult<N::Value, N::Error> {
        let mut cx = self.cx.hedged(attempt, self.since.passed());
        if self.detached {
            cx.detach();
        }
        self.next.run_once(&cx).await
    }
}

impl<F> fmt::Debug for ActBy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActBy")
    }
}
