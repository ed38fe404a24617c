//! How a race ends: losers, the outcome to return, what is discarded.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;

use hedgerow_core::{Decision, Event, Gate, Losers, Moment};

use super::Work;
use super::race::{Parts, Race, clock_of, moment};
use super::slots::Primary;
use crate::failure::Failure;
use crate::hedge::Hedge;
use crate::late::Late;
use crate::rules::{Discarded, Rules};

/// How a call ended, with all that a report says.
#[derive(Debug)]
pub(crate) struct Ending<T, E> {
    pub(crate) decision: Decision,
    /// What is returned; `None` if the caller cancelled.
    pub(crate) result: Option<Result<T, E>>,
    /// Whose outcome that is.
    pub(crate) attempt: Option<u8>,
    /// All other failures, in completion order.
    pub(crate) failures: Vec<Failure<T, E>>,
    pub(crate) closed: Option<(Gate, Moment)>,
    pub(crate) log: Vec<Event>,
}

/// Why a race ends without an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Abandoned {
    /// The caller dropped the call.
    Dropped,
    /// A panic passes through it.
    Panicked,
}

impl<Fut, R> Race<Fut, R>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// The decision is made: tells the losers, and drops those that nobody waits for (E12).
    pub(super) fn release<F>(mut self: Pin<&mut Self>, parts: &mut Parts<'_, F, Fut, R>) {
        self.as_mut().tell_losers(parts.hedge, &parts.primary);
        let joins = matches!(parts.hedge.policy().losers, Losers::Join { .. });
        if !joins {
            self.as_mut().drop_attempts(parts.primary.as_mut());
        }
        let this = self.project();
        *this.held = None;
    }

    /// Fires the tokens of the attempts that are still held, or lets them go on without the call.
    fn tell_losers(self: Pin<&mut Self>, hedge: &Hedge, primary: &Primary<Fut>) {
        let this = self.project();
        for attempt in &*this.attempts {
            let Some(shared) = attempt.shared() else {
                continue;
            };
            let number = attempt.hedge_number();
            let held = if number == 0 { primary.is_running() } else { this.slots.holds(number) };
            if !held {
                continue;
            }
            if hedge.policy().losers == Losers::Detach {
                let Some(observer) = &hedge.policy().observer else {
                    continue;
                };
                let late = Late {
                    call: this.call.id(),
                    observer: Arc::clone(observer),
                    clock: hedge.own_clock().cloned(),
                    origin: *this.origin,
                    started: this.call.started_at(number).unwrap_or(Moment::ZERO),
                };
                // Set once: an attempt is let go once.
                let _ = shared.late.set(late);
            } else {
                shared.token.cancel();
            }
        }
    }

    /// Drops every attempt that is still held, in launch order, each even if another one's
    /// destructor panics.
    fn drop_attempts(mut self: Pin<&mut Self>, mut primary: Pin<&mut Primary<Fut>>) {
        let mut panic = None;
        if primary.is_running() {
            panic = catch_unwind(AssertUnwindSafe(|| primary.set(Primary::Absent))).err();
        }
        for hedge in 1..self.call.started_attempts() {
            if self.slots.holds(hedge) {
                let slots = self.as_mut().project().slots;
                let dropped = catch_unwind(AssertUnwindSafe(|| slots.clear(hedge)));
                panic = panic.or(dropped.err());
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// The call is over: chooses what to return.
    pub(super) fn finish<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        decision: Decision,
    ) -> Ending<Fut::Value, Fut::Error> {
        self.as_mut().tell_losers(parts.hedge, &parts.primary);
        self.as_mut().drop_attempts(parts.primary.as_mut());
        let this = self.project();
        let (result, attempt) = match decision {
            Decision::Accepted(attempt) => (this.outcome.take(), Some(attempt)),
            Decision::Aborted => (this.outcome.take(), None),
            Decision::Cancelled => (None, None),
            Decision::Exhausted(attempt) => {
                let failure = choose(this.failures, parts.rules, attempt);
                let number = failure.hedge_number();
                match failure.into_caught() {
                    Ok(outcome) => (Some(outcome), Some(number)),
                    Err(panic) => resume_unwind(panic),
                }
            }
        };
        let extras = this.extras.as_deref();
        if let Some(properties) = extras.and_then(|extras| extras.properties.as_ref())
            && let Some(shared) = attempt
                .and_then(|number| this.attempts.get(usize::from(number)))
                .and_then(|attempt| attempt.shared())
        {
            properties.merge(&shared.properties);
        }
        if let Some(learner) = &parts.hedge.policy().learner {
            parts.hedge.tick(learner, clock_of(parts.hedge).now());
        }
        Ending {
            decision,
            result,
            attempt,
            failures: std::mem::take(this.failures),
            closed: this.call.closed(),
            log: this.call.log().to_vec(),
        }
    }

    /// The call ends without an outcome.
    #[cold]
    #[inline(never)]
    pub(super) fn abandon(
        mut self: Pin<&mut Self>,
        why: Abandoned,
        hedge: &Hedge,
        rules: &mut R,
        primary: Pin<&mut Primary<Fut>>,
    ) {
        self.as_mut().tell_losers(hedge, &primary);
        let this = self.as_mut().project();
        *this.held = None;
        let policy = hedge.policy();
        let now =
            if policy.observer.is_some() { moment(hedge, *this.origin) } else { Moment::ZERO };
        match why {
            Abandoned::Panicked => this.call.abort(policy, this.polling.take(), now),
            Abandoned::Dropped => this.call.dropped(policy, now),
        }
        let winner = this.outcome.take().zip(this.call.decision());
        let mut failures = std::mem::take(this.failures);
        if let Some((outcome, Decision::Accepted(attempt))) = winner {
            failures.push(Failure::new(attempt, now, Ok(outcome)));
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| self.drop_attempts(primary)));
        let discarded = catch_unwind(AssertUnwindSafe(|| discard_all(rules, failures)));
        // A second panic must not take the place of the first, nor abort the program.
        if let Some(panic) = dropped.err().or(discarded.err())
            && why == Abandoned::Dropped
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

/// Takes out the failure that the rules choose, or the policy's choice.
fn choose<T, E, R: Rules<T, E>>(
    failures: &mut Vec<Failure<T, E>>,
    rules: &mut R,
    policy_choice: u8,
) -> Failure<T, E> {
    let position = |number| failures.iter().position(|f| f.hedge_number() == number);
    let chosen = rules.exhausted(failures).and_then(position);
    let chosen = chosen.or_else(|| position(policy_choice)).unwrap_or(0);
    failures.remove(chosen)
}

/// Hands every outcome to `on_discard`; a panic of the hook goes on after all were handed over.
pub(crate) fn discard_all<T, E, R: Rules<T, E>>(rules: &mut R, failures: Vec<Failure<T, E>>) {
    let mut first_panic: Option<Box<dyn Any + Send>> = None;
    for failure in failures {
        let number = failure.hedge_number();
        let Ok(outcome) = failure.into_caught() else {
            continue;
        };
        let discard = AssertUnwindSafe(|| rules.on_discard(Discarded::new(number, outcome)));
        first_panic = first_panic.or(catch_unwind(discard).err());
    }
    if let Some(panic) = first_panic {
        resume_unwind(panic);
    }
}
