//! Runs what is inside once it is let in, or not at all.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};

use pin_project_lite::pin_project;

use super::classify::PipelineResult;
use super::context::Context;
use super::error::Rejected;
use super::next::Next;
use super::wait::Since;
use crate::clock::Time;

/// What is awaited before what is inside may run.
pub trait Admission {
    /// What a run holds on to until what is inside has ended.
    type Slot;

    /// Ready with a slot, or with the reason why there is none. When it is ready it has given back
    /// whatever it took to wait.
    #[doc(hidden)]
    fn poll(
        self: Pin<&mut Self>,
        cx: &Context,
        task: &mut Task<'_>,
    ) -> Poll<Result<Self::Slot, Rejected>>;
}

pin_project! {
    /// A run that begins when it is let in: at once, after a wait, or never.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmitRun<N: Next, A: Admission> {
        #[pin]
        stage: Stage<N, A>,
    }
}

pin_project! {
    // Fields are dropped in this order: what is inside before its slot is anybody else's.
    #[project = StageProj]
    enum Stage<N: Next, A: Admission> {
        Instead { outcome: Option<PipelineResult<N::Value, N::Error>> },
        Ahead { ahead: Pin<Box<Ahead<N, A>>> },
        Running { #[pin] run: N::Run, slot: A::Slot },
        Over { attempts: u32 },
    }
}

pin_project! {
    // Boxed: whoever need not wait should not carry it.
    struct Ahead<N, A> {
        #[pin]
        admission: A,
        inside: Option<(N, Context)>,
        since: Since,
    }
}

impl<N: Next, A: Admission> AdmitRun<N, A> {
    /// It runs, and holds a slot.
    #[inline]
    pub(crate) fn running(next: N, cx: &Context, slot: A::Slot) -> Self {
        Self { stage: Stage::Running { run: next.run_once(cx), slot } }
    }

    /// It runs when it is let in.
    #[cold]
    pub(crate) fn ahead(next: N, cx: &Context, admission: A, time: &Time) -> Self {
        let since = Since::now(cx, time);
        let inside = Some((next, cx.clone()));
        Self { stage: Stage::Ahead { ahead: Box::pin(Ahead { admission, inside, since }) } }
    }

    /// It never runs: this is the outcome.
    #[cold]
    pub(crate) fn instead(outcome: PipelineResult<N::Value, N::Error>) -> Self {
        Self { stage: Stage::Instead { outcome: Some(outcome) } }
    }

    /// See [`Strategy::attempts`](super::Strategy::attempts).
    pub(crate) fn attempts(&self) -> u32 {
        match &self.stage {
            Stage::Running { run, .. } => N::attempts(run),
            Stage::Over { attempts } => *attempts,
            Stage::Instead { .. } | Stage::Ahead { .. } => 1,
        }
    }
}

impl<N: Next, A: Admission> Future for AdmitRun<N, A> {
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        loop {
            let (outcome, attempts) = match stage.as_mut().project() {
                StageProj::Running { mut run, .. } => {
                    let outcome = ready!(run.as_mut().poll(task));
                    (outcome, N::attempts(run.as_ref().get_ref()))
                }
                StageProj::Ahead { ahead } => {
                    let ahead = ahead.as_mut().project();
                    let Some((_, cx)) = ahead.inside.as_ref() else { gone() };
                    match ready!(ahead.admission.poll(cx, task)) {
                        Err(rejected) => (Err(rejected.into()), 1),
                        Ok(slot) => {
                            let Some((next, cx)) = ahead.inside.take() else { gone() };
                            let run = next.run_once(&cx.later(ahead.since.passed()));
                            stage.set(Stage::Running { run, slot });
                            continue;
                        }
                    }
                }
                StageProj::Instead { outcome } => {
                    let Some(outcome) = outcome.take() else { gone() };
                    (outcome, 1)
                }
                StageProj::Over { .. } => gone(),
            };
            // What it held is given back before anybody sees the outcome.
            stage.set(Stage::Over { attempts });
            return Poll::Ready(outcome);
        }
    }
}

#[cold]
fn gone() -> ! {
    panic!("`AdmitRun` polled after completion")
}

impl<N: Next, A: Admission> fmt::Debug for AdmitRun<N, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Instead { .. } => "refused",
            Stage::Ahead { .. } => "waiting",
            Stage::Running { .. } => "running",
            Stage::Over { .. } => "over",
        };
        f.debug_struct("AdmitRun").field("stage", &stage).finish_non_exhaustive()
    }
}
