//! The work, as the innermost of a pipeline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::Instant;

use hedgerow_core::{RunEnd, StrategyEventKind};
use pin_project_lite::pin_project;

use super::classify::{Classify, PipelineResult};
use super::context::Context;
use super::error::PipelineError;
use super::layer::Place;
use super::next::{Innermost, Next, Outcomes};
use super::note::Note;
use crate::attempt::Attempt;
use crate::drive::Work;
use crate::drive::panics::at_last;

/// The caller's work, and what its outcomes mean.
#[derive(Clone)]
pub struct Leaf<F, C> {
    pub(crate) work: F,
    pub(crate) classifier: C,
}

impl<F, C: fmt::Debug> fmt::Debug for Leaf<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("classifier", &self.classifier).finish_non_exhaustive()
    }
}

impl<F, C, Fut> Outcomes for Leaf<F, C>
where
    F: Fn(Attempt) -> Fut,
    Fut: Work,
    C: Classify<Fut::Value, Fut::Error> + Clone,
{
    type Value = Fut::Value;
    type Error = Fut::Error;
    type Classifier = C;

    fn classifier(&self) -> &C {
        &self.classifier
    }
}

impl<'p, F, C, Fut> Innermost<'p> for Leaf<F, C>
where
    F: Fn(Attempt) -> Fut + Clone,
    Fut: Work,
    C: Classify<Fut::Value, Fut::Error> + Clone,
{
    type Run = WorkRun<'p, Fut>;

    const FORKS: bool = false;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&self, cx: &Context, place: &'p Place) -> Self::Run {
        WorkRun::begin(&self.work, cx, place)
    }

    fn attempts(_: &Self::Run) -> u32 {
        1
    }
}

pin_project! {
    /// One attempt of the work.
    #[derive(Debug)]
    pub struct WorkRun<'p, Fut> {
        #[pin]
        work: Fut,
        told: Option<Box<Told<'p>>>,
    }
}

impl<'p, Fut> WorkRun<'p, Fut> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    pub(crate) fn begin(work: impl Fn(Attempt) -> Fut, cx: &Context, place: &'p Place) -> Self {
        let mut told = place.is_told().then(|| Box::new(Told::started(place, cx)));
        let work = Told::polling(&mut told, || work(cx.attempt().clone()));
        Self { work, told }
    }
}

impl<Fut: Work> Future for WorkRun<'_, Fut> {
    type Output = PipelineResult<Fut::Value, Fut::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(Told::polling(this.told, || this.work.poll(cx)));
        let outcome = outcome.map_err(PipelineError::Failed);
        if let Some(told) = this.told.take() {
            told.ended(end_of(&outcome));
        }
        Poll::Ready(outcome)
    }
}

/// How a run ended that had this outcome.
pub(crate) fn end_of<T, E>(outcome: &PipelineResult<T, E>) -> RunEnd {
    match outcome {
        Ok(_) => RunEnd::Succeeded,
        Err(PipelineError::Failed(_) | PipelineError::FallbackFailed(_)) => RunEnd::Failed,
        Err(PipelineError::TimedOut(_)) => RunEnd::TimedOut,
        Err(PipelineError::Rejected(_)) => RunEnd::Rejected,
        Err(PipelineError::Cancelled) => RunEnd::Cancelled,
    }
}

/// Tells how an attempt, or a whole execution, ends: also if it is dropped.
#[derive(Debug)]
pub(crate) struct Told<'p> {
    place: &'p Place,
    cx: Context,
    began: Instant,
    /// Whether it is the execution as a whole.
    whole: bool,
    /// Whether what it tells of panicked.
    panicked: bool,
    over: bool,
}

impl<'p> Told<'p> {
    /// An attempt starts: tells so.
    #[cold]
    pub(crate) fn started(place: &'p Place, cx: &Context) -> Self {
        place.tell(cx, StrategyEventKind::AttemptStarted);
        Self::new(place, cx, false)
    }

    /// An execution begins.
    #[cold]
    pub(crate) fn begun(place: &'p Place, cx: &Context) -> Self {
        Self::new(place, cx, true)
    }

    fn new(place: &'p Place, cx: &Context, whole: bool) -> Self {
        let began = place.time.clock().now();
        Self { place, cx: cx.clone(), began, whole, panicked: false, over: false }
    }

    /// Polls what it tells of.
    #[inline]
    pub(crate) fn polling<V>(told: &mut Option<Box<Self>>, poll: impl FnOnce() -> V) -> V {
        let note = told.as_mut().map(|told| Note::on(&mut told.panicked));
        let polled = poll();
        if let Some(note) = note {
            note.done();
        }
        polled
    }

    /// It ended with an outcome.
    #[cold]
    pub(crate) fn ended(mut self, end: RunEnd) {
        self.over = true;
        self.tell(end);
    }

    fn tell(&self, end: RunEnd) {
        let took = self.place.time.clock().now().saturating_duration_since(self.began);
        let kind = if self.whole {
            StrategyEventKind::Over { end, took }
        } else {
            StrategyEventKind::AttemptEnded { end, ran: took }
        };
        self.place.tell(&self.cx, kind);
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !self.over {
            let end = if self.panicked { RunEnd::Panicked } else { RunEnd::Cancelled };
            at_last(self.panicked, || self.tell(end));
        }
    }
}

/// What is around a pipeline inside another: its innermost.
#[derive(Debug, Clone)]
pub struct Inner<N>(pub(crate) N);

impl<N: Outcomes> Outcomes for Inner<N> {
    type Value = N::Value;
    type Error = N::Error;
    type Classifier = N::Classifier;

    fn classifier(&self) -> &Self::Classifier {
        self.0.classifier()
    }
}

impl<'p, N: Next> Innermost<'p> for Inner<N> {
    type Run = N::Run;

    const FORKS: bool = N::FORKS;

    fn run(&self, cx: &Context, _: &'p Place) -> Self::Run {
        self.0.run(cx)
    }

    fn run_once(self, cx: &Context, _: &'p Place) -> Self::Run {
        self.0.run_once(cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        N::attempts(run)
    }
}
