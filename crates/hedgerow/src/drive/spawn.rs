//! Spawned placement: each attempt is a task of its own.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use hedgerow_core::{Delay, Losers, Panics, Pushback};
use tokio::sync::oneshot;

use super::Work;
use super::panics::{at_last, quietly};
use super::slots::{Caught, poll_caught};
use crate::abandoned::{Abandoned, AttemptsEnd, CallsEnd};
use crate::attempt::Attempt;
use crate::failure::Failure;
use crate::hedge::Hedge;
use crate::rules::{Discarded, Judged, NextAction, NextHedge, Rules};
use crate::span::{CallSpan, SpanMode};

/// Starts tasks: where the attempts of a spawned call run.
///
/// Tokio's is the default of [`HedgedCall::spawned`](crate::HedgedCall::spawned).
pub trait Spawner: fmt::Debug + Send + Sync {
    /// Runs this task to its end, somewhere else.
    fn spawn(&self, task: Task);
}

/// A task for a [`Spawner`].
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The rules of a spawned call, shared with attempts that may outlive it.
#[derive(Debug)]
pub struct SharedRules<R> {
    rules: Arc<Mutex<R>>,
    spawner: Arc<dyn Spawner>,
    detach: bool,
    abandoned: Option<Arc<Abandoned>>,
    span: SpanMode,
}

impl<R> Clone for SharedRules<R> {
    fn clone(&self) -> Self {
        let (rules, spawner) = (Arc::clone(&self.rules), Arc::clone(&self.spawner));
        let (detach, span) = (self.detach, self.span);
        Self { rules, spawner, detach, abandoned: self.abandoned.clone(), span }
    }
}

impl<R> SharedRules<R> {
    pub(crate) fn new(rules: R, spawner: Arc<dyn Spawner>, hedge: &Hedge) -> Self {
        let detach = hedge.policy().losers == Losers::Detach;
        let abandoned = hedge.counts_abandoned().cloned();
        let rules = Arc::new(Mutex::new(rules));
        Self { rules, spawner, detach, abandoned, span: hedge.span_mode() }
    }

    fn lock(&self) -> MutexGuard<'_, R> {
        // A hook that panicked has told its caller; the next one is called all the same.
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E, R> Rules<T, E> for SharedRules<R>
where
    T: Send + 'static,
    E: Send + 'static,
    R: Rules<T, E> + Send + 'static,
    R::Action: Send + 'static,
{
    type Action = SpawnedAttempt<R::Action, R>;
    type Hook = R::Hook;

    fn handle(&mut self, judged: Judged<'_, T, E>) -> bool {
        self.lock().handle(judged)
    }

    fn is_rejection(&mut self, error: &E) -> bool {
        self.lock().is_rejection(error)
    }

    fn pushback(&mut self, judged: Judged<'_, T, E>) -> Option<Pushback> {
        self.lock().pushback(judged)
    }

    fn exhausted(&mut self, failures: &[Failure<T, E>]) -> Option<u8> {
        self.lock().exhausted(failures)
    }

    fn next_action(&mut self, next: &NextHedge<'_>) -> Result<NextAction<Self::Action, T, E>, E> {
        let action = self.lock().next_action(next)?;
        let spawned = |action| SpawnedAttempt::new(action, next.attempt().clone(), self.clone());
        Ok(action.map(spawned))
    }

    fn on_hedge(&mut self, next: &NextHedge<'_>) -> Option<Self::Hook> {
        self.lock().on_hedge(next)
    }

    fn delay(&mut self, next: &NextHedge<'_>) -> Option<Delay> {
        self.lock().delay(next)
    }

    fn on_discard(&mut self, discarded: Discarded<T, E>) {
        self.lock().on_discard(discarded);
    }

    fn cancelled(&mut self) -> Option<E> {
        self.lock().cancelled()
    }
}

/// An attempt that runs as a task of its own, from its first poll on.
///
/// Dropping it stops the task, unless losers are detached: then the task runs on, and its outcome
/// goes to `on_discard`.
pub struct SpawnedAttempt<Fut: Work, R>
where
    R: Rules<Fut::Value, Fut::Error>,
{
    state: State<Fut>,
    attempt: Attempt,
    rules: SharedRules<R>,
}

enum State<Fut: Work> {
    Ready(Fut),
    Running(oneshot::Receiver<Caught<Fut::Value, Fut::Error>>, Option<CallsEnd>),
    Over,
}

// The future is moved into its task before it is ever polled; nothing here is pinned.
impl<Fut: Work, R: Rules<Fut::Value, Fut::Error>> Unpin for SpawnedAttempt<Fut, R> {}

impl<Fut: Work, R: Rules<Fut::Value, Fut::Error>> SpawnedAttempt<Fut, R> {
    pub(crate) fn new(work: Fut, attempt: Attempt, rules: SharedRules<R>) -> Self {
        Self { state: State::Ready(work), attempt, rules }
    }
}

impl<Fut, R> Future for SpawnedAttempt<Fut, R>
where
    Fut: Work + Send + 'static,
    Fut::Value: Send + 'static,
    Fut::Error: Send + 'static,
    R: Rules<Fut::Value, Fut::Error> + Send + 'static,
{
    type Output = Result<Fut::Value, Fut::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Ready(_) = self.state {
            let State::Ready(work) = std::mem::replace(&mut self.state, State::Over) else {
                unreachable!("it was ready just now")
            };
            let (sender, outcome) = oneshot::channel();
            let (attempt, rules) = (self.attempt.clone(), self.rules.clone());
            let (mine, its) = self.rules.abandoned.as_ref().map(Abandoned::ends).unzip();
            self.state = State::Running(outcome, mine);
            let span = CallSpan::current(self.rules.span);
            let task = run(work, ToldLate(attempt), rules, sender, its, span);
            self.rules.spawner.spawn(Box::pin(task));
        }
        let State::Running(outcome, _) = &mut self.state else {
            panic!("`SpawnedAttempt` polled after completion");
        };
        let received = ready!(Pin::new(outcome).poll(cx));
        self.state = State::Over;
        match received {
            Ok(Ok(outcome)) => Poll::Ready(outcome),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => {
                panic!("the task of an attempt was dropped, what runs it has shut down: {error}")
            }
        }
    }
}

impl<Fut: Work, R: Rules<Fut::Value, Fut::Error>> Drop for SpawnedAttempt<Fut, R> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Running(mut outcome, end) => {
                // The task stops when it sees this, unless it is detached.
                outcome.close();
                if let Ok(caught) = outcome.try_recv() {
                    let told = ToldLate(self.attempt.clone());
                    too_late(caught, &self.attempt, &self.rules);
                    drop(told);
                } else if let Some(end) = end {
                    end.let_go();
                }
            }
            State::Ready(work) => drop((ToldLate(self.attempt.clone()), work)),
            // Let go of after it gave its outcome, if rules panicked over that.
            State::Over => drop(ToldLate(self.attempt.clone())),
        }
    }
}

impl<Fut: Work, R: Rules<Fut::Value, Fut::Error>> fmt::Debug for SpawnedAttempt<Fut, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnedAttempt").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// The task of an attempt: ends with the work, or when nobody waits for it and it is not detached.
///
/// Nobody could be told of a panic that comes after the work, and whatever runs the task is not to
/// suffer from it.
async fn run<Fut, R>(
    work: Fut,
    end: ToldLate,
    rules: SharedRules<R>,
    mut sender: oneshot::Sender<Caught<Fut::Value, Fut::Error>>,
    abandoned: Option<AttemptsEnd>,
    span: CallSpan,
) where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    let mut work = Box::pin(work);
    let mut caught = std::future::poll_fn(|cx| {
        if !rules.detach && sender.poll_closed(cx).is_ready() {
            return Poll::Ready(None);
        }
        span.within(|| poll_caught(work.as_mut(), Panics::AsFailure, cx)).map(Some)
    })
    .await;
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
    if let (Err(panic), Some(Ok(_))) = (dropped, &caught)
        && let Some(lost) = caught.replace(Err(panic))
    {
        quietly(|| too_late(lost, &end.0, &rules));
    }
    if let Some(Err(caught)) = caught.map(|caught| sender.send(caught)) {
        quietly(|| too_late(caught, &end.0, &rules));
    }
    quietly(|| drop(end));
    drop(abandoned);
}

/// Tells of the end of a detached attempt, also if its task is dropped before it has ended.
struct ToldLate(Attempt);

impl Drop for ToldLate {
    fn drop(&mut self) {
        let Some(late) = self.0.shared().and_then(|shared| shared.late.get()) else { return };
        at_last(false, || late.tell(self.0.hedge_number()));
    }
}

/// The call was decided without this outcome: discards it.
fn too_late<T, E, R: Rules<T, E>>(caught: Caught<T, E>, attempt: &Attempt, rules: &SharedRules<R>) {
    if let Ok(outcome) = caught {
        rules.lock().on_discard(Discarded::new(attempt.hedge_number(), outcome));
    }
}
