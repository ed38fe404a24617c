//! One run of a fallback: what is inside, then what takes its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};

use hedgerow_core::StrategyEventKind;
use pin_project_lite::pin_project;

use super::{Fallback, FallbackHook, Replacement};
use crate::pipeline::classify::{PipelineResult, Predicate};
use crate::pipeline::context::Context;
use crate::pipeline::error::{FallbackFailed, PipelineError};
use crate::pipeline::next::{Next, Strategy};

impl<'p, N, R, P, H> Strategy<N> for &'p Fallback<R, P, H>
where
    N: Next,
    R: Replacement<N::Value, N::Error>,
    P: Predicate<N::Value, N::Error>,
    H: FallbackHook<N::Value, N::Error>,
{
    type Run = FallbackRun<'p, N, R, P, H>;

    const FORKS: bool = N::FORKS;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        let told = self.place.is_told().then(|| Box::new(cx.clone()));
        let classifier = next.classifier().clone();
        let stage = Stage::Inside { run: next.run_once(cx) };
        FallbackRun { stage, classifier, attempts: 1, told, fallback: self }
    }

    fn attempts(run: &Self::Run) -> u32 {
        match &run.stage {
            Stage::Inside { run } => N::attempts(run),
            _ => run.attempts,
        }
    }
}

pin_project! {
    /// A run that replaces what failed.
    #[must_use = "futures do nothing unless polled"]
    pub struct FallbackRun<'p, N, R, P, H>
    where
        N: Next,
        R: Replacement<N::Value, N::Error>,
    {
        #[pin]
        stage: Stage<N::Run, R::Run, PipelineError<N::Error>>,
        classifier: N::Classifier,
        // Of a run that is over.
        attempts: u32,
        told: Option<Box<Context>>,
        fallback: &'p Fallback<R, P, H>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<I, R, E> {
        Inside { #[pin] run: I },
        Replacing { #[pin] run: R, cause: Option<E> },
        Over,
    }
}

impl<N, R, P, H> Future for FallbackRun<'_, N, R, P, H>
where
    N: Next,
    R: Replacement<N::Value, N::Error>,
    P: Predicate<N::Value, N::Error>,
    H: FallbackHook<N::Value, N::Error>,
{
    type Output = PipelineResult<N::Value, N::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let StageProj::Inside { run } = this.stage.as_mut().project() {
            let outcome = ready!(run.poll(cx));
            let fallback = *this.fallback;
            if !fallback.predicate.handles(this.classifier, &outcome) {
                return Poll::Ready(outcome);
            }
            if let Stage::Inside { run } = &*this.stage {
                *this.attempts = N::attempts(run);
            }
            // What failed holds nothing any more while its replacement is made.
            this.stage.set(Stage::Over);
            fallback.hook.tell(&outcome);
            let run = fallback.replacement.replace(&outcome);
            this.stage.set(Stage::Replacing { run, cause: outcome.err() });
        }
        let StageProj::Replacing { run, cause } = this.stage.as_mut().project() else {
            panic!("`FallbackRun` polled after completion");
        };
        let replaced = ready!(run.poll(cx));
        let cause = cause.take();
        this.stage.set(Stage::Over);
        if let Some(cx) = &this.told {
            let succeeded = replaced.is_ok();
            this.fallback.place.tell(cx, StrategyEventKind::FellBack { succeeded });
        }
        Poll::Ready(replaced.map_err(|error| {
            PipelineError::FallbackFailed(Box::new(FallbackFailed::new(error, cause)))
        }))
    }
}

impl<N, R, P, H> fmt::Debug for FallbackRun<'_, N, R, P, H>
where
    N: Next,
    R: Replacement<N::Value, N::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Inside { .. } => "inside",
            Stage::Replacing { .. } => "replacing",
            Stage::Over => "over",
        };
        f.debug_struct("FallbackRun").field("stage", &stage).finish_non_exhaustive()
    }
}
