//! One attempt of work that blocks, on a thread.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::thread;

use tokio::sync::oneshot;

use crate::abandoned::{Abandoned, AttemptsEnd, CallsEnd};
use crate::attempt::Attempt;
use crate::pipeline::classify::{Classify, PipelineResult};
use crate::pipeline::context::Context;
use crate::pipeline::error::{PipelineError, Rejected};
use crate::pipeline::layer::Place;
use crate::pipeline::leaf::{Leaf, Told, end_of};
use crate::pipeline::next::{Innermost, Outcomes};
use crate::span::{CallSpan, SpanMode};
use crate::threads::{Seat, Threads};

/// Work that blocks, and the threads that its attempts run on.
pub struct OnThreads<F> {
    pub(super) work: Arc<F>,
    pub(super) threads: Arc<dyn Threads>,
}

impl<F> Clone for OnThreads<F> {
    fn clone(&self) -> Self {
        Self { work: Arc::clone(&self.work), threads: Arc::clone(&self.threads) }
    }
}

impl<F> fmt::Debug for OnThreads<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnThreads").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<F, T, E, C> Outcomes for Leaf<OnThreads<F>, C>
where
    F: Fn(Attempt) -> Result<T, E>,
    C: Classify<T, E> + Clone,
{
    type Value = T;
    type Error = E;
    type Classifier = C;

    fn classifier(&self) -> &C {
        &self.classifier
    }
}

impl<'p, F, T, E, C> Innermost<'p> for Leaf<OnThreads<F>, C>
where
    F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    T: Send + 'static,
    E: Send + 'static,
    C: Classify<T, E> + Clone,
{
    type Run = ThreadRun<'p, T, E>;

    const FORKS: bool = false;

    fn run(&self, cx: &Context, place: &'p Place) -> Self::Run {
        let OnThreads { work, threads } = self.work.clone();
        let attempt = cx.attempt().clone();
        let seat = match (threads.reserve(attempt.hedge_number()), attempt.hedge_number()) {
            (Ok(seat), _) => Some(seat),
            (Err(_), 0) => None, // a primary runs on the caller's thread
            (Err(_), _) => {
                let rejected = place.reject(cx, "no thread", None);
                return ThreadRun { state: State::Rejected(rejected), told: None };
            }
        };
        let told = place.is_told().then(|| Box::new(Told::started(place, cx)));
        let work = Box::new(move |attempt| work(attempt));
        let abandoned = place.abandoned.get().cloned();
        ThreadRun { state: State::Ready { work, attempt, seat, abandoned }, told }
    }

    fn attempts(_: &Self::Run) -> u32 {
        1
    }
}

/// One attempt on a thread of its own.
///
/// Dropping it lets the attempt go: it has been told to stop by then, unless it is to run on, and
/// what it returns is dropped on its thread.
pub struct ThreadRun<'p, T, E> {
    state: State<T, E>,
    told: Option<Box<Told<'p>>>,
}

type Caught<T, E> = thread::Result<Result<T, E>>;

enum State<T, E> {
    Ready {
        work: Box<dyn FnOnce(Attempt) -> Result<T, E> + Send>,
        attempt: Attempt,
        seat: Option<Seat>,
        abandoned: Option<Arc<Abandoned>>,
    },
    Running {
        outcome: oneshot::Receiver<Caught<T, E>>,
        end: Option<CallsEnd>,
    },
    Rejected(Rejected),
    Over,
}

impl<T: Send + 'static, E: Send + 'static> State<T, E> {
    /// Puts the attempt on its thread; without one it runs here and now.
    fn started(self) -> Self {
        let Self::Ready { work, attempt, seat, abandoned } = self else { return self };
        let (sender, outcome) = oneshot::channel();
        let (end, its) = abandoned.as_ref().map(Abandoned::ends).unzip();
        let span = CallSpan::current(SpanMode::IfParent);
        let job = move || {
            // Let go of before it had a thread: it need not begin, unless it is to run on.
            if !(sender.is_closed() && attempt.is_cancelled()) {
                let run = AssertUnwindSafe(|| span.within(|| work(attempt)));
                send(sender, catch_unwind(run));
            }
            drop::<Option<AttemptsEnd>>(its);
        };
        match seat {
            Some(seat) => seat(Box::new(job)),
            None => job(),
        }
        Self::Running { outcome, end }
    }
}

/// Hands an outcome over, or drops it: nobody could be told of a panic there, and whatever runs the
/// attempt is not to suffer from it.
fn send<T, E>(sender: oneshot::Sender<Caught<T, E>>, caught: Caught<T, E>) {
    let sent = AssertUnwindSafe(|| drop(sender.send(caught)));
    if let Err(panic) = catch_unwind(sent) {
        // A payload's destructor may panic, too: let it be.
        std::mem::forget(panic);
    }
}

impl<T: Send + 'static, E: Send + 'static> Future for ThreadRun<'_, T, E> {
    type Output = PipelineResult<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        self.state = std::mem::replace(&mut self.state, State::Over).started();
        let received = match &mut self.state {
            State::Running { outcome, .. } => ready!(Pin::new(outcome).poll(cx)),
            State::Rejected(rejected) => return Poll::Ready(Err(rejected.clone().into())),
            _ => panic!("`ThreadRun` polled after completion"),
        };
        self.state = State::Over;
        let outcome = match received {
            Ok(Ok(outcome)) => outcome.map_err(PipelineError::Failed),
            Ok(Err(panic)) => {
                let raise = || resume_unwind(panic);
                Told::polling(&mut self.told, raise)
            }
            Err(error) => panic!("the thread of an attempt is gone with its job: {error}"),
        };
        if let Some(told) = self.told.take() {
            told.ended(end_of(&outcome));
        }
        Poll::Ready(outcome)
    }
}

impl<T, E> Drop for ThreadRun<'_, T, E> {
    fn drop(&mut self) {
        if let State::Running { outcome, end } = &mut self.state {
            outcome.close();
            if outcome.try_recv().is_err()
                && let Some(end) = end.take()
            {
                end.let_go();
            }
        }
    }
}

impl<T, E> fmt::Debug for ThreadRun<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ready { .. } => "not started",
            State::Running { .. } => "running",
            State::Rejected(_) => "rejected",
            State::Over => "over",
        };
        f.debug_struct("ThreadRun").field("state", &state).finish_non_exhaustive()
    }
}
