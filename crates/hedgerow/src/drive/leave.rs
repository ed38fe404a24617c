//! How a race ends: losers, the outcome to return, what is discarded.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Context;

use hedgerow_core::{Decision, Event, Gate, Losers, Moment};

use super::Work;
use super::panics::FirstPanic;
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
    pub(super) fn release<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        cx: &mut Context<'_>,
    ) {
        self.as_mut().tell_losers(parts.hedge, &parts.primary);
        let joins = matches!(parts.hedge.policy().losers, Losers::Join { .. });
        if joins {
            // A loser that was not polled in this turn may have ended already, and will not wake
            // anybody again.
            if (0..self.call.started_attempts()).any(|attempt| self.call.is_running(attempt)) {
                cx.waker().wake_by_ref();
            }
        } else {
            self.as_mut().drop_attempts(parts.primary.as_mut());
        }
        self.drop_held();
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
                // An attempt that panics just now has its end told with the panic; one over whose
                // end an observer panicked has had it told.
                let over = *this.polling == Some(number) || this.call.end_told(number);
                let Some(observer) = hedge.policy().observer.as_ref().filter(|_| !over) else {
                    continue;
                };
                let late = Late {
                    call: this.call.id(),
                    observer: Arc::clone(observer),
                    time: hedge.time().clone(),
                    origin: *this.origin,
                    started: this.call.started_at(number).unwrap_or(Moment::ZERO),
                    told: AtomicBool::new(false),
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
        let mut panics = FirstPanic::default();
        if primary.is_running() {
            panics.catch(|| primary.set(Primary::Absent));
        }
        for hedge in 1..self.call.started_attempts() {
            if self.slots.holds(hedge) {
                let slots = self.as_mut().project().slots;
                panics.catch(|| slots.clear(hedge));
            }
        }
        panics.resume();
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
    ///
    /// Every step runs, whatever an earlier one panics with: observers, wakers, destructors and
    /// hooks are the caller's code. The first panic goes on, unless another one is on its way
    /// already: that one must be neither replaced nor turned into an abort of the program.
    #[cold]
    #[inline(never)]
    pub(super) fn abandon(
        mut self: Pin<&mut Self>,
        why: Abandoned,
        hedge: &Hedge,
        rules: &mut R,
        primary: Pin<&mut Primary<Fut>>,
    ) {
        let mut panics = FirstPanic::default();
        panics.catch(|| self.as_mut().tell_losers(hedge, &primary));
        panics.catch(|| self.as_mut().drop_held());
        let this = self.as_mut().project();
        let policy = hedge.policy();
        let timed = policy.observer.is_some() || policy.learner.is_some();
        let mut now = Moment::ZERO;
        if timed {
            panics.catch(|| now = moment(hedge, *this.origin));
        }
        let winner = this.outcome.take().zip(this.call.decision());
        let culprit = this.polling.take();
        // Where an observer panics, the rest is told all the same: each panic costs one event.
        while !this.call.is_over() {
            panics.catch(|| match why {
                Abandoned::Panicked => this.call.abort(policy, culprit, now),
                Abandoned::Dropped => this.call.dropped(policy, now),
            });
        }
        let mut failures = std::mem::take(this.failures);
        if let Some((outcome, Decision::Accepted(attempt))) = winner {
            failures.push(Failure::new(attempt, now, Ok(outcome)));
        }
        panics.catch(|| self.as_mut().drop_attempts(primary));
        panics.catch(|| discard_all(rules, failures));
        panics.resume_unless(why == Abandoned::Panicked);
    }

    /// Drops a hedge that waits for its hook: it never starts, and whoever has its token is told.
    pub(super) fn drop_held(self: Pin<&mut Self>) {
        if let Some(held) = self.project().held.take() {
            let shared = held.attempt.shared().map(Arc::clone);
            drop(held);
            if let Some(shared) = shared {
                shared.token.cancel();
            }
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
    let mut panics = FirstPanic::default();
    for failure in failures {
        panics.catch(|| {
            let number = failure.hedge_number();
            if let Ok(outcome) = failure.into_caught() {
                rules.on_discard(Discarded::new(number, outcome));
            }
        });
    }
    panics.resume();
}
