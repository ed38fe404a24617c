//! One execution: what the pipeline does not say, and its future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::classify::{HandleBy, PipelineResult};
use super::context::Context;
use super::error::PipelineError;
use super::layer::{End, Place, Then};
use super::leaf::{Leaf, Told, end_of};
use super::next::{Next, Rest};
use super::outcome::{MayCancel, Outcome, Raises};
use super::pipeline::Pipeline;
use crate::attempt::Shared;
use crate::properties::Properties;
use crate::rules::Defaults;

/// One execution before it is awaited: await it for the result, or [`settle`](Execution::settle) it
/// for an outcome to match on.
///
/// It runs inside the caller's task: nothing is spawned, nothing needs to be `'static` or `Send`, and
/// dropping it drops every attempt, gives back every slot and counts nowhere as a failure. An
/// execution whose first attempt answers, with none of the setters below, allocates nothing.
///
/// `X` is what it can raise; see [`Outcome`].
#[must_use = "an execution does nothing until it is awaited"]
pub struct Execution<'p, L, F, C, X> {
    pipeline: &'p Pipeline<L>,
    leaf: Leaf<F, C>,
    terms: Terms,
    raises: PhantomData<X>,
}

/// What the caller says about an execution.
#[derive(Debug, Clone)]
pub struct Terms {
    idempotent: bool,
    asked: Option<Box<Asked>>,
}

/// What few executions ask for.
#[derive(Debug, Clone, Default)]
struct Asked {
    token: Option<CancellationToken>,
    properties: Option<Properties>,
    operation: Option<Arc<str>>,
    deadline: Option<Duration>,
    tokens: bool,
}

impl Asked {
    /// Whether attempts can tell.
    fn is_shared(&self) -> bool {
        self.tokens
            || self.token.is_some()
            || self.properties.is_some()
            || self.operation.is_some()
            || self.deadline.is_some()
    }
}

impl<'p, L, F, X> Execution<'p, L, F, Defaults, X> {
    /// What it can raise is up to who makes it.
    pub(crate) fn new(pipeline: &'p Pipeline<L>, work: F) -> Self {
        let leaf = Leaf { work, classifier: Defaults };
        let terms = Terms { idempotent: true, asked: None };
        Self { pipeline, leaf, terms, raises: PhantomData }
    }
}

impl<'p, L, F, C, X> Execution<'p, L, F, C, X> {
    fn ask(mut self, set: impl FnOnce(&mut Asked)) -> Self {
        set(self.terms.asked.get_or_insert_default());
        self
    }

    /// Whether the work may run more than once (default: yes). If not, nothing is hedged, and only
    /// work that never started is repeated, where the predicate handles rejections (T34-T36).
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.terms.idempotent = idempotent;
        self
    }

    /// What this is, for logs and metrics: a name with few values, such as a route.
    pub fn operation(self, name: impl Into<Arc<str>>) -> Self {
        self.ask(|asked| asked.operation = Some(name.into()))
    }

    /// When the caller stops waiting, counted from the start. No hedge and no retry starts at or
    /// after it, and attempts can read it; it does not end the execution, a timeout does.
    pub fn deadline(self, after: Duration) -> Self {
        self.ask(|asked| asked.deadline = Some(after))
    }

    /// Gives attempts these properties: each attempt of a hedge a copy, of which the winner's is
    /// merged back; without a hedge all attempts the same.
    pub fn properties(self, properties: &Properties) -> Self {
        self.ask(|asked| asked.properties = Some(properties.clone()))
    }

    /// Gives each attempt a token, which fires when the attempt loses, when a strategy gives up on
    /// it and when the execution is dropped (T18-T20, T51); see
    /// [`Attempt::token`](crate::Attempt::token).
    pub fn tokens(self) -> Self {
        self.ask(|asked| asked.tokens = true)
    }

    /// Ends the execution when `token` fires, with [`PipelineError::Cancelled`]: everything inside
    /// is dropped at once, losers are not waited for. An execution that is cancelled before it
    /// starts runs nothing; an outcome of the same moment wins over the token.
    pub fn cancel_on(self, token: &CancellationToken) -> Execution<'p, L, F, C, MayCancel<X>> {
        let Self { pipeline, leaf, terms, raises: _ } =
            self.ask(|asked| asked.token = Some(token.clone()));
        Execution { pipeline, leaf, terms, raises: PhantomData }
    }

    /// What outcomes mean, for every strategy that was not told otherwise.
    pub fn classify<D>(self, classifier: D) -> Execution<'p, L, F, D, X> {
        let Self { pipeline, leaf, terms, raises } = self;
        let leaf = Leaf { work: leaf.work, classifier };
        Execution { pipeline, leaf, terms, raises }
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> Execution<'p, L, F, C, X> {
    /// Which outcomes are failures, for every strategy that was not told otherwise; see
    /// [`Classify::handle`](super::Classify::handle).
    ///
    /// ```
    /// use hedgerow::Hedge;
    /// use hedgerow::pipeline::Pipeline;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let pipeline = Pipeline::builder().hedge(Hedge::default()).build().unwrap();
    /// let status = pipeline
    ///     .execute(|attempt| async move {
    ///         Ok::<_, String>(if attempt.number() == 0 { 503 } else { 200 })
    ///     })
    ///     .handle(|outcome| !matches!(outcome, Ok(status) if *status < 500))
    ///     .await;
    /// assert_eq!(status, Ok(200));
    /// # }
    /// ```
    pub fn handle<H>(self, handle: H) -> Execution<'p, L, F, HandleBy<H>, X>
    where
        H: Fn(&PipelineResult<L::Value, L::Error>) -> bool,
    {
        self.classify(HandleBy(handle))
    }

    /// Resolves to an outcome to match on instead of a result; see [`Outcome`].
    pub fn settle(self) -> Settling<L::Future, X> {
        Settling { executing: self.into_future(), raises: PhantomData }
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> IntoFuture for Execution<'p, L, F, C, X> {
    type Output = PipelineResult<L::Value, L::Error>;
    type IntoFuture = L::Future;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        let Self { pipeline, leaf, terms, raises: _ } = self;
        L::launch(pipeline, leaf, terms)
    }
}

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
    Rest<'p, Self, Leaf<F, C>>: Next,
{
    type Value = <Rest<'p, Self, Leaf<F, C>> as Next>::Value;
    type Error = <Rest<'p, Self, Leaf<F, C>> as Next>::Error;
    type Future = Executing<'p, Rest<'p, Self, Leaf<F, C>>>;

    #[inline]
    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        executing::<Self, Leaf<F, C>>(pipeline, leaf, terms)
    }
}

impl<'p, S: 'p, I: 'p, F, C> Launch<'p, F, C> for Then<S, I>
where
    Rest<'p, Self, Leaf<F, C>>: Next,
{
    type Value = <Rest<'p, Self, Leaf<F, C>> as Next>::Value;
    type Error = <Rest<'p, Self, Leaf<F, C>> as Next>::Error;
    type Future = Executing<'p, Rest<'p, Self, Leaf<F, C>>>;

    #[inline]
    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        executing::<Self, Leaf<F, C>>(pipeline, leaf, terms)
    }
}

impl<L, F, C, X> fmt::Debug for Execution<'_, L, F, C, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Executions of which somebody is told, so far.
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

pin_project! {
    /// The future of an [`Execution`].
    ///
    /// Polling it again after it was ready panics.
    #[must_use = "futures do nothing unless polled"]
    pub struct Executing<'p, N: Next> {
        // Dropped first: tokens fire before what they belong to is dropped.
        watch: Option<Box<Watch>>,
        #[pin]
        stage: Stage<N>,
        terms: Terms,
        told: Option<Box<Told<'p>>>,
        place: &'p Place,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<N: Next> {
        Ahead { next: Option<N> },
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
            inside.cancel();
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
    Rest<'p, L, W>: Next,
{
    let next = Some(Rest { layers: pipeline.layers(), work });
    terms.asked = terms.asked.filter(|asked| asked.is_shared());
    let (watch, told, place) = (None, None, pipeline.place());
    Executing { watch, stage: Stage::Ahead { next }, terms, told, place }
}

impl<N: Next> Executing<'_, N> {
    /// Begins the run, unless the caller has cancelled already (E1).
    fn begin(self: Pin<&mut Self>) {
        let mut this = self.project();
        let StageProj::Ahead { next } = this.stage.as_mut().project() else { return };
        let next = next.take().expect("an execution begins once");
        let place = *this.place;
        let shared = this.terms.asked.as_deref().map(|asked| shared(asked, place));
        if let (Some(asked), Some(shared)) = (this.terms.asked.as_deref(), &shared) {
            let cancelled = asked.token.clone().map(|token| Box::pin(token.cancelled_owned()));
            let inside = Some(shared.token.clone());
            *this.watch = Some(Box::new(Watch { cancelled, inside }));
        }
        let execution =
            if place.is_told() { EXECUTIONS.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let mut cx = Context::new(shared, execution, this.terms.idempotent);
        if let Some(deadline) = this.terms.asked.as_deref().and_then(|asked| asked.deadline) {
            cx = cx.limited(deadline);
        }
        *this.told = place.is_told().then(|| Box::new(Told::begun(place, &cx)));
        let token = this.terms.asked.as_deref().and_then(|asked| asked.token.as_ref());
        if token.is_none_or(|token| !token.is_cancelled()) {
            let run = Told::polling(this.told, || next.run_once(cx));
            this.stage.set(Stage::Running { run });
        } else {
            this.stage.set(Stage::Over);
        }
    }

    /// What runs inside has ended, or was dropped.
    fn end(self: Pin<&mut Self>, outcome: &PipelineResult<N::Value, N::Error>) {
        let this = self.project();
        if let Some(mut watch) = this.watch.take() {
            if !matches!(outcome, Err(PipelineError::Cancelled)) {
                watch.inside = None; // the winner's token stays as it is
            }
            drop(watch);
        }
        if let Some(told) = this.told.take() {
            told.ended(end_of(outcome));
        }
    }
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
        if matches!(self.stage, Stage::Ahead { .. }) {
            self.as_mut().begin();
        }
        let mut this = self.as_mut().project();
        let polled = match this.stage.as_mut().project() {
            StageProj::Running { run } => Told::polling(this.told, || run.poll(cx)),
            _ if this.watch.is_some() => Poll::Ready(Err(PipelineError::Cancelled)),
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
        // The tokens fire before what they belong to is dropped.
        self.as_mut().end(&outcome);
        self.project().stage.set(Stage::Over);
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
