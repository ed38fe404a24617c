//! The async front: the very futures that people await, on a manual clock.

use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hedgerow_core::{Event, Losers};
use tokio_util::sync::CancellationToken;

use super::executor::{Flag, ManualExecutor};
use super::scenario::{Scenario, Script, Scripted};
use super::timeline::{ReturnedKind, Timeline};
use crate::attempt::Attempt;
use crate::clock::ManualClock;
use crate::hedge::Hedge;
use crate::rules::{Judged, NoAction, NoHook, Rules};

/// The outcome of a scripted attempt: how it ended, on the side of the `Result` where it belongs.
pub(super) type Outcome = Result<Scripted, Scripted>;

/// Judges scripted outcomes.
pub(super) struct ScriptRules;

impl Rules<Scripted, Scripted> for ScriptRules {
    type Action = NoAction<Scripted, Scripted>;
    type Hook = NoHook;

    fn handle(&mut self, judged: Judged<'_, Scripted, Scripted>) -> bool {
        match judged.outcome() {
            Ok(value) => *value == Scripted::Bad,
            Err(Scripted::Fatal) => false,
            Err(_) => judged.default_verdict(),
        }
    }

    fn is_rejection(&mut self, error: &Scripted) -> bool {
        *error == Scripted::Rejected
    }
}

/// Runs the scenario to its end, or until nothing can happen any more.
pub(super) fn run(scenario: &Scenario) -> Timeline {
    let stage = Stage::new(scenario);
    let hedge = stage.hedge();
    let work = {
        let (clock, scenario) = (stage.clock.clone(), scenario.clone());
        move |attempt: Attempt| {
            play(clock.clone(), scenario.attempt_script(attempt.hedge_number()), attempt)
        }
    };
    let call = hedge.call(work).rules(ScriptRules).idempotent(scenario.idempotent);
    let executor = ManualExecutor::new();
    let others = || {
        executor.run();
    };
    if hedge.policy().losers == Losers::Detach {
        let call = call.spawned_on(Arc::new(executor.clone())).settle().cancel_on(&stage.token);
        stage.run(pin!(call.into_future()), others)
    } else {
        stage.run(pin!(call.settle().cancel_on(&stage.token).into_future()), others)
    }
}

/// What moves a scripted call on.
pub(super) struct Stage<'a> {
    scenario: &'a Scenario,
    pub(super) clock: ManualClock,
    /// The caller's, who cancels with it.
    pub(super) token: CancellationToken,
    log: Arc<Mutex<Vec<Event>>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let (clock, token) = (ManualClock::new(), CancellationToken::new());
        Self { scenario, clock, token, log: Arc::default() }
    }

    /// The policy of the scenario, on this stage.
    pub(super) fn hedge(&self) -> Hedge {
        let log = Arc::clone(&self.log);
        let observer = move |event: &Event| {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(*event);
        };
        let clock = Arc::new(self.clock.clone());
        self.scenario.budgeted().clock(clock).observer(Arc::new(observer))
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
