//! The future of an execution.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll, ready};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::classify::PipelineResult;
use super::context::Context;
use super::error::PipelineError;
use super::execution::{Asked, Terms};
use super::layer::{End, Place, Then};
use super::leaf::{Leaf, Told, end_of};
use super::next::{Around, Innermost, Next, Outcomes, Rest};
use super::outcome::{Outcome, Raises};
use super::pipeline::Pipeline;
use crate::attempt::Shared;
use crate::drive::panics::at_last;

/// How strategies run work, as a whole.
pub trait Launch<'p, F, C>: Sized {
    /// The work's value.
    type Value;
    /// The work's error.
    type Error;
    /// The future of an execution.
    type Future: Future<Output = PipelineResult<Self::Value, Self::Error>>;

    /// An execution that has not begun.
    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future;
}

impl<'p, F, C> Launch<'p, F, C> for End
where
    Leaf<F, C>: Innermost<'p>,
    Self: Around<'p, Leaf<F, C>>,
{
    type Value = <Leaf<F, C> as Outcomes>::Value;
    type Error = <Leaf<F, C> as Outcomes>::Error;
    type Future = Executing<'p, Rest<'p, Self, Leaf<F, C>>>;

    #[inline]
    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        executing::<Self, Leaf<F, C>>(pipeline, leaf, terms)
    }
}

impl<'p, S: 'p, I: 'p, F, C> Launch<'p, F, C> for Then<S, I>
where
    Leaf<F, C>: Innermost<'p>,
    Self: Around<'p, Leaf<F, C>>,
{
    type Value = <Leaf<F, C> as Outcomes>::Value;
    type Error = <Leaf<F, C> as Outcomes>::Error;
    type Future = Executing<'p, Rest<'p, Self, Leaf<F, C>>>;

    #[inline]
    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        executing::<Self, Leaf<F, C>>(pipeline, leaf, terms)
    }
}

/// Executions of which somebody is told, so far.
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

pin_project! {
    /// The future of an [`Execution`](super::Execution).
    ///
    /// Polling it again after it was ready panics.
    #[must_use = "futures do nothing unless polled"]
    pub struct Executing<'p, N: Next> {
        // Dropped first: tokens fire before what they belong to is dropped.
        watch: Option<Box<Watch>>,
        #[pin]
        stage: Stage<'p, N>,
        told: Option<Box<Told<'p>>>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwned]
    enum Stage<'p, N: Next> {
        Ahead { next: N, terms: Terms, place: &'p Place },
        Running { #[pin] run: N::Run },
        Over,
    }
}

/// What an execution has whose attempts have tokens.
struct Watch {
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Fired, unless the execution ends by itself.
    inside: Option<CancellationToken>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(inside) = &self.inside {
            at_last(false, || inside.cancel());
        }
    }
}

/// An execution that has not begun.
#[inline]
pub(crate) fn executing<'p, L, W>(
    pipeline: &'p Pipeline<L>,
    work: W,
    mut terms: Terms,
) -> Executing<'p, Rest<'p, L, W>>
where
    L: Around<'p, W>,
    W: Innermost<'p>,
{
    let next = Rest { layers: pipeline.layers(), work };
    terms.asked = terms.asked.filter(|asked| asked.is_shared());
    let stage = Stage::Ahead { next, terms, place: pipeline.place() };
    Executing { watch: None, stage, told: None }
}

impl<N: Next> Executing<'_, N> {
    /// Begins the run, unless the caller has cancelled already (E1): says whether.
    #[inline]
    fn begin(self: Pin<&mut Self>) -> bool {
        let mut this = self.project();
        let ahead = this.stage.as_mut().project_replace(Stage::Over);
        let StageOwned::Ahead { next, terms, place } = ahead else { return true };
        if terms.asked.is_none() && !place.is_told() && !place.spreads {
            let run = next.run_once(&Context::new(None, 0, terms.idempotent));
            this.stage.set(Stage::Running { run });
        } else if let Some(cx) = prepare(&terms, place, this.watch, this.told) {
            let cx = if place.spreads { cx.starting_anywhere() } else { cx };
            let run = begun(next, &cx, this.told);
            this.stage.set(Stage::Running { run });
        } else {
            return false;
        }
        true
    }

    /// Drops what runs inside: the tokens fire before what they belong to is dropped, and what comes
    /// of it is told before the execution is said to be over.
    fn end(self: Pin<&mut Self>, outcome: &PipelineResult<N::Value, N::Error>) {
        let mut this = self.project();
        if let Some(mut watch) = this.watch.take() {
            if !matches!(outcome, Err(PipelineError::Cancelled)) {
                watch.inside = None; // the winner's token stays as it is
            }
            drop(watch);
        }
        this.stage.set(Stage::Over);
        if let Some(told) = this.told.take() {
            told.ended(end_of(outcome));
        }
    }
}

/// The run of an execution of which somebody asks for more: not where the others are begun, whose
/// context is in nobody's way.
#[inline(never)]
fn begun<N: Next>(next: N, cx: &Context, told: &mut Option<Box<Told<'_>>>) -> N::Run {
    Told::polling(told, || next.run_once(cx))
}

/// What an execution carries of which somebody asks for more than the outcome; `None`: it was
/// cancelled before it began.
#[cold]
fn prepare<'p>(
    terms: &Terms,
    place: &'p Place,
    watch: &mut Option<Box<Watch>>,
    told: &mut Option<Box<Told<'p>>>,
) -> Option<Context> {
    let asked = terms.asked.as_deref();
    let shared = asked.map(|asked| shared(asked, place));
    let token = asked.and_then(|asked| asked.token.clone());
    if let Some(shared) = &shared {
        let cancelled = token.clone().map(|token| Box::pin(token.cancelled_owned()));
        let inside = Some(shared.token.clone());
        *watch = Some(Box::new(Watch { cancelled, inside }));
    }
    let is_told = place.is_told();
    let execution = if is_told { EXECUTIONS.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
    let mut cx = Context::new(shared, execution, terms.idempotent);
    if let Some(deadline) = asked.and_then(|asked| asked.deadline) {
        cx = cx.limited(deadline);
    }
    *told = is_told.then(|| Box::new(Told::begun(place, &cx)));
    token.is_none_or(|token| !token.is_cancelled()).then_some(cx)
}

/// What the attempts of an execution share.
fn shared(asked: &Asked, place: &Place) -> Shared {
    let now = || place.time.clock().now();
    let deadline = asked.deadline.and_then(|after| now().checked_add(after));
    let mut shared = Shared::new(deadline, asked.operation.clone());
    if let Some(token) = &asked.token {
        shared.token = token.child_token();
    }
    if let Some(properties) = &asked.properties {
        shared.properties = properties.clone();
    }
    shared
}

impl<N: Next> Future for Executing<'_, N> {
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let is_cancelled = matches!(self.stage, Stage::Ahead { .. }) && !self.as_mut().begin();
        let mut this = self.as_mut().project();
        let polled = match this.stage.as_mut().project() {
            StageProj::Running { run } => Told::polling(this.told, || run.poll(cx)),
            _ if is_cancelled => Poll::Ready(Err(PipelineError::Cancelled)),
            _ => panic!("`Executing` polled after completion"),
        };
        let outcome = match polled {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => {
                let watch = this.watch.as_deref_mut();
                let Some(cancelled) = watch.and_then(|watch| watch.cancelled.as_mut()) else {
                    return Poll::Pending;
                };
                ready!(cancelled.as_mut().poll(cx));
                Err(PipelineError::Cancelled)
            }
        };
        self.end(&outcome);
        Poll::Ready(outcome)
    }
}

impl<N: Next> fmt::Debug for Executing<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Ahead { .. } => "not started",
            Stage::Running { .. } => "running",
            Stage::Over => "over",
        };
        f.debug_struct("Executing").field("stage", &stage).finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of an execution that resolves to an [`Outcome`].
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Settling<Fut, X> {
        #[pin]
        executing: Fut,
        raises: PhantomData<X>,
    }
}

impl<Fut, X> Settling<Fut, X> {
    pub(super) fn new(executing: Fut) -> Self {
        Self { executing, raises: PhantomData }
    }
}

impl<T, E, Fut, X> Future for Settling<Fut, X>
where
    Fut: Future<Output = PipelineResult<T, E>>,
    X: Raises,
{
    type Output = Outcome<T, E, X>;

    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        self.project().executing.poll(cx).map(Outcome::new)
    }
}
