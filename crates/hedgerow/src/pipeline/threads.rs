//! Pipelines for work that blocks, on threads.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::builder::{Builder, InvalidPipeline, Nest};
use super::classify::{Classify, HandleBy, HandleValues, PipelineResult};
use super::context::Context;
use super::error::{PipelineError, Rejected};
use super::executing::Launch;
use super::execution::Execution;
use super::layer::{End, Layers, Place};
use super::leaf::{Leaf, Told, end_of};
use super::next::{Innermost, Outcomes};
use super::outcome::{MayCancel, MayReject, Nothing, Outcome, Raises};
use super::pipeline::Pipeline;
use crate::abandoned::{Abandoned, AttemptsEnd, CallsEnd};
use crate::attempt::Attempt;
use crate::properties::Properties;
use crate::rules::Defaults;
use crate::span::{CallSpan, SpanMode};
use crate::threads::park::Parker;
use crate::threads::{OwnThreads, Seat, Threads};

/// A pipeline for work that blocks its thread: each attempt has a thread of its own, and the caller
/// waits on its own.
///
/// The strategies are those of any pipeline. What gives up on an attempt cannot stop it: it lets go
/// of it, and tells it by its [token](crate::Attempt::token), which every attempt has here; work that
/// is worth stopping asks [`Attempt::is_cancelled`] now and then. Attempts of a hedge whose losers are
/// detached are not told, and run on (M7): `Hedge::abandoning()` in a wrap is `THedgingPolicy` in
/// one (M17).
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::Pipeline;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # fn query(_attempt: hedgerow::Attempt) -> Result<u32, std::fmt::Error> { Ok(42) }
/// let pipeline = Pipeline::builder()
///     .timeout(Duration::from_secs(2))
///     .hedge(Hedge::abandoning().max_hedges(2))
///     .build_blocking()?;
/// let row = pipeline.execute(query)?;
/// assert_eq!(row, 42);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BlockingPipeline<L> {
    pipeline: Pipeline<L>,
    threads: Arc<dyn Threads>,
}

impl<S> Builder<S> {
    /// The pipeline, for work that blocks.
    ///
    /// # Errors
    ///
    /// As [`build`](Builder::build); only here losers may be detached.
    pub fn build_blocking(self) -> Result<BlockingPipeline<S::Layers>, InvalidPipeline>
    where
        S: Nest<End>,
    {
        let pipeline = self.finish(true)?;
        Ok(BlockingPipeline { pipeline, threads: Arc::new(OwnThreads) })
    }
}

impl<L> Clone for BlockingPipeline<L> {
    fn clone(&self) -> Self {
        Self { pipeline: self.pipeline.clone(), threads: Arc::clone(&self.threads) }
    }
}

impl<L> fmt::Display for BlockingPipeline<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pipeline.fmt(f)
    }
}

impl<L: Layers> BlockingPipeline<L> {
    /// Runs attempts on these threads instead of new ones; see [`Threads`].
    #[must_use]
    pub fn on(self, threads: Arc<dyn Threads>) -> Self {
        Self { threads, ..self }
    }

    /// The pipeline itself: its strategies, its warnings.
    pub fn pipeline(&self) -> &Pipeline<L> {
        &self.pipeline
    }

    /// Runs work through the pipeline, and blocks until it is over. What an attempt uses may be in
    /// use after that, so the closure owns it: an `Arc`, a pool.
    ///
    /// # Errors
    ///
    /// The work's own error, or what a strategy made of it.
    ///
    /// # Panics
    ///
    /// With the panic of an attempt, a predicate or a hook.
    pub fn execute<'p, F, T, E>(&'p self, work: F) -> PipelineResult<T, E>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
        L: Launch<'p, OnThreads<F>, Defaults, Value = T, Error = E>,
    {
        self.prepare(work).run()
    }

    /// The same, where more is to be said before it runs. Beside what its strategies raise it may be
    /// rejected, if a hedge decides for which there is no thread.
    pub fn prepare<F, T, E>(
        &self,
        work: F,
    ) -> BlockingExecution<'_, L, OnThreads<F>, Defaults, MayReject<L::Raises<Nothing>>>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    {
        let work = OnThreads { work: Arc::new(work), threads: Arc::clone(&self.threads) };
        BlockingExecution(Execution::new(&self.pipeline, work).tokens())
    }
}

/// One execution that will block: [`run`](BlockingExecution::run) it for the result, or
/// [`settle`](BlockingExecution::settle) it for an outcome to match on. The setters are those of
/// [`Execution`].
#[derive(Debug)]
#[must_use = "a prepared execution does nothing until it is run"]
pub struct BlockingExecution<'p, L, F, C, X>(Execution<'p, L, F, C, X>);

impl<'p, L, F, C, X> BlockingExecution<'p, L, F, C, X> {
    /// See [`Execution::idempotent`].
    pub fn idempotent(self, idempotent: bool) -> Self {
        Self(self.0.idempotent(idempotent))
    }

    /// See [`Execution::operation`].
    pub fn operation(self, name: impl Into<Arc<str>>) -> Self {
        Self(self.0.operation(name))
    }

    /// See [`Execution::deadline`].
    pub fn deadline(self, after: Duration) -> Self {
        Self(self.0.deadline(after))
    }

    /// See [`Execution::properties`].
    pub fn properties(self, properties: &Properties) -> Self {
        Self(self.0.properties(properties))
    }

    /// See [`Execution::cancel_on`]; the token may fire on whatever thread.
    pub fn cancel_on(
        self,
        token: &CancellationToken,
    ) -> BlockingExecution<'p, L, F, C, MayCancel<X>> {
        BlockingExecution(self.0.cancel_on(token))
    }

    /// See [`Execution::classify`].
    pub fn classify<D>(self, classifier: D) -> BlockingExecution<'p, L, F, D, X> {
        BlockingExecution(self.0.classify(classifier))
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> BlockingExecution<'p, L, F, C, X> {
    /// See [`Execution::handle`].
    pub fn handle<H>(self, handle: H) -> BlockingExecution<'p, L, F, HandleBy<H>, X>
    where
        H: Fn(&PipelineResult<L::Value, L::Error>) -> bool,
    {
        BlockingExecution(self.0.handle(handle))
    }

    /// See [`Execution::handle_values`].
    pub fn handle_values<H>(self, handle: H) -> BlockingExecution<'p, L, F, HandleValues<H>, X>
    where
        H: Fn(&L::Value) -> bool,
    {
        BlockingExecution(self.0.handle_values(handle))
    }

    /// Runs it, and blocks until it is over.
    ///
    /// # Errors
    ///
    /// As [`BlockingPipeline::execute`].
    ///
    /// # Panics
    ///
    /// As [`BlockingPipeline::execute`].
    pub fn run(self) -> PipelineResult<L::Value, L::Error> {
        Arc::new(Parker::default()).block_on(self.0.into_future())
    }

    /// Runs it, and returns an outcome to match on.
    ///
    /// # Panics
    ///
    /// As [`BlockingPipeline::execute`].
    pub fn settle(self) -> Outcome<L::Value, L::Error, X>
    where
        X: Raises,
    {
        Arc::new(Parker::default()).block_on(self.0.settle())
    }
}

/// Work that blocks, and the threads that its attempts run on.
pub struct OnThreads<F> {
    work: Arc<F>,
    threads: Arc<dyn Threads>,
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
