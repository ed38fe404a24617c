//! The async front: the very futures that people await, on a manual clock.

use std::borrow::Borrow;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hedgerow_core::{Event, Losers, Pushback};
use tokio_util::sync::CancellationToken;

use super::executor::{Flag, ManualExecutor};
use super::scenario::{Scenario, Script, Scripted};
use super::timeline::{ReturnedKind, Timeline};
use crate::attempt::Attempt;
use crate::call::HedgedCall;
use crate::clock::ManualClock;
use crate::hedge::Hedge;
use crate::rules::{Judged, NoAction, NoHook, Rules};

/// The outcome of a scripted attempt: how it ended, on the side of the `Result` where it belongs.
pub(super) type Outcome = Result<Scripted, Scripted>;

/// A value that a script made.
pub(super) trait Shows {
    /// The outcome it stands for.
    fn shows(&self) -> Scripted;
}

impl Shows for Scripted {
    fn shows(&self) -> Scripted {
        *self
    }
}

/// Judges scripted outcomes.
pub(super) struct ScriptRules(pub(super) Scenario);

impl<T: Shows> Rules<T, Scripted> for ScriptRules {
    type Action = NoAction<T, Scripted>;
    type Hook = NoHook;

    fn handle(&mut self, judged: Judged<'_, T, Scripted>) -> bool {
        match judged.outcome() {
            Ok(value) => value.shows() == Scripted::Bad,
            Err(Scripted::Fatal) => false,
            Err(_) => judged.default_verdict(),
        }
    }

    fn is_rejection(&mut self, error: &Scripted) -> bool {
        *error == Scripted::Rejected
    }

    fn pushback(&mut self, judged: Judged<'_, T, Scripted>) -> Option<Pushback> {
        self.0.attempt_script(judged.hedge_number()).pushback
    }
}

/// Runs the scenario to its end, or until nothing can happen any more.
pub(super) fn run(scenario: &Scenario) -> Timeline {
    let stage = Stage::new(scenario);
    let rules = ScriptRules(scenario.clone());
    let call = stage.hedge.call(|attempt| stage.play(attempt)).rules(rules);
    stage.conduct(call)
}

/// What a scripted call runs on, and what moves it on.
pub(super) struct Stage<'a> {
    scenario: &'a Scenario,
    pub(super) hedge: Hedge,
    pub(super) clock: ManualClock,
    /// The caller's, who cancels with it.
    pub(super) token: CancellationToken,
    log: Arc<Mutex<Vec<Event>>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let log = Arc::new(Mutex::new(Vec::<Event>::new()));
        let seen = Arc::clone(&log);
        let observer = move |event: &Event| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(*event);
        };
        let (clock, token) = (ManualClock::new(), CancellationToken::new());
        let hedge = scenario.budgeted().clock(Arc::new(clock.clone())).observer(Arc::new(observer));
        Self { scenario, hedge, clock, token, log }
    }

    /// What an attempt does.
    pub(super) fn play(&self, attempt: Attempt) -> impl Future<Output = Outcome> + Send + use<> {
        play(self.clock.clone(), self.scenario.attempt_script(attempt.hedge_number()), attempt)
    }

    /// Runs the call of the scenario to its end, or until nothing can happen any more.
    pub(super) fn conduct<P, F, Fut, T>(&self, call: HedgedCall<P, F, ScriptRules>) -> Timeline
    where
        P: Borrow<Hedge>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, Scripted>> + Send + 'static,
        T: Shows + Send + 'static,
    {
        let call = call.idempotent(self.scenario.idempotent);
        let executor = ManualExecutor::new();
        let others = || {
            executor.run();
        };
        if self.hedge.policy().losers == Losers::Detach {
            let call = call.spawned_on(Arc::new(executor.clone()));
            self.run(pin!(call.settle().cancel_on(&self.token).into_future()), others)
        } else {
            self.run(pin!(call.settle().cancel_on(&self.token).into_future()), others)
        }
    }

    /// Polls the call whenever it is woken, and moves time on when nothing is; `others` lets
    /// whatever runs beside the call go on until it waits. What is told while the call is dropped
    /// afterwards is not part of its story.
    pub(super) fn run<F: Future>(&self, mut call: Pin<&mut F>, others: impl Fn()) -> Timeline {
        let woken = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let never = self.scenario.cancel_moment().is_never();
        let mut cancel_in = self.scenario.cancel_at.filter(|_| !never);
        let mut first = true;
        let panicked = loop {
            if cancel_in == Some(Duration::ZERO) {
                self.token.cancel();
                cancel_in = None;
            }
            others();
            if std::mem::take(&mut first) || woken.take() {
                match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut cx))) {
                    Err(_) => break true,
                    Ok(Poll::Ready(_)) => break false,
                    Ok(Poll::Pending) => continue,
                }
            }
            let next = [self.clock.next_deadline(), cancel_in].into_iter().flatten().min();
            let Some(next) = next else { break false };
            self.clock.advance(next);
            cancel_in = cancel_in.map(|left| left.saturating_sub(next));
        };
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let timeline = Timeline::new(self.scenario, &log);
        let told = timeline.returned.kind == ReturnedKind::Panic;
        debug_assert_eq!(panicked, told, "a panic reaches the caller, and the events say so");
        timeline
    }
}

/// One scripted attempt.
pub(super) async fn play(clock: ManualClock, script: Script, attempt: Attempt) -> Outcome {
    let mut work = clock.sleep(script.length());
    let mut told = pin!(attempt.cancelled());
    let by_itself = std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => told.as_mut().poll(cx).map(|()| false),
    });
    if !by_itself.await {
        let mut cleanup = clock.sleep(script.cleanup);
        let earlier = std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => cleanup.as_mut().poll(cx).map(|()| false),
        });
        if !earlier.await {
            return Err(Scripted::Never);
        }
    }
    match script.outcome {
        outcome @ (Scripted::Ok | Scripted::Bad | Scripted::Never) => Ok(outcome),
        Scripted::Panic => resume_unwind(Box::new("scripted panic")),
        outcome => Err(outcome),
    }
}
