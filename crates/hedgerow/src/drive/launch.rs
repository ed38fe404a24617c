//! How an attempt starts: generator, hook, event, first poll (E9).

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use hedgerow_core::{Gate, Losers, Moment, Origin};

use super::race::{ActionOf, Held, Parts, Race};
use super::slots::{Hedging, caught};
use super::{Begin, Work};
use crate::attempt::{Attempt, AttemptCounter, Shared};
use crate::hedge::Hedge;
use crate::rules::{NextAction, NextHedge, Rules};

impl<Fut, R> Race<Fut, R>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// Gets an attempt ready: the primary starts at once, a hedge when its hook has ended.
    pub(super) fn prepare<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        number: u8,
        origin: Origin,
        now: Moment,
        cx: &mut Context<'_>,
    ) where
        F: Begin<Fut>,
    {
        if let Some(gate) = self.no_room(parts.hedge, number) {
            return self.project().call.refused(parts.hedge.policy(), gate, now);
        }
        let attempt = self.make_attempt(parts, number);
        let mut action = NextAction::Repeat;
        let mut hook = None;
        if origin != Origin::Primary {
            let next = NextHedge::new(&attempt, Some(origin));
            let this = self.as_mut().project();
            action = match parts.rules.next_action(&next) {
                Ok(NextAction::Stop) => return this.call.declined(parts.hedge.policy(), now),
                Ok(action) => action,
                Err(error) => {
                    *this.outcome = Some(Err(error));
                    return this.call.abort(parts.hedge.policy(), None, now);
                }
            };
            hook = parts.rules.on_hedge(&next);
        }
        if let Some(hook) = hook {
            let mut hook = Box::pin(hook);
            if hook.as_mut().poll(cx).is_pending() {
                let held = Box::new(Held { hook, attempt, action });
                *self.project().held = Some(held);
                return;
            }
        }
        self.begin(parts, attempt, action, now, cx);
    }

    /// Starts an attempt and polls it once (E6).
    pub(super) fn begin<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        attempt: Attempt,
        action: ActionOf<Fut, R>,
        now: Moment,
        cx: &mut Context<'_>,
    ) where
        F: Begin<Fut>,
    {
        let this = self.as_mut().project();
        let number = attempt.hedge_number();
        if let Some(shared) = attempt.shared() {
            let extras = this.extras.as_deref();
            if let Some(properties) = extras.and_then(|extras| extras.properties.as_ref()) {
                shared.properties.copy_from(properties);
            }
            this.attempts.push(attempt.clone());
        }
        let policy = parts.hedge.policy();
        // Also a panic of the observer ends it: there is nothing yet that could go on.
        *this.polling = Some(number);
        this.call.started(policy, now);
        let after = now.since(Moment::ZERO);
        match action {
            NextAction::Repeat => {
                match caught(policy.panics, || parts.work.begin(attempt, after)) {
                    Ok(work) if number == 0 => {
                        parts.primary.as_mut().start(work);
                    }
                    Ok(work) => this.slots.put(number, Hedging::Repeat { work }),
                    Err(panic) => {
                        *this.polling = None;
                        return self.take(parts.hedge, parts.rules, number, Err(panic), now);
                    }
                }
            }
            NextAction::Run(action) => this.slots.put(number, Hedging::Run { action }),
            NextAction::Answer(outcome) => {
                this.slots.put(number, Hedging::Answer { outcome: Some(outcome) });
            }
            NextAction::Stop => {}
        }
        self.poll_attempt(parts, number, now, cx);
    }

    /// Why there is no room for this hedge, if there is none. The primary always starts.
    fn no_room(&self, hedge: &Hedge, number: u8) -> Option<Gate> {
        let is_hedge = number > 0;
        if is_hedge && hedge.counts_abandoned().is_some_and(|abandoned| abandoned.is_full()) {
            return Some(Gate::Abandoned);
        }
        let room = self.extras.as_deref()?.room.as_deref()?;
        room.admit(number).err().filter(|_| is_hedge)
    }

    fn make_attempt<F>(&self, parts: &Parts<'_, F, Fut, R>, hedge: u8) -> Attempt {
        let extras = self.extras.as_deref();
        let counter = extras.and_then(|extras| extras.counter.as_ref());
        let first = extras.and_then(|extras| extras.first).filter(|_| hedge == 0);
        let number = first.unwrap_or_else(|| counter.map_or(hedge.into(), AttemptCounter::next));
        let deadline = extras.and_then(|extras| extras.deadline);
        let tracked = extras.is_some_and(|extras| {
            extras.tracked || extras.token.is_some() || extras.properties.is_some()
        });
        if tracked || deadline.is_some() || parts.hedge.policy().losers != Losers::Drop {
            let deadline = deadline.and_then(|after| self.origin.checked_add(after));
            let operation = extras.and_then(|extras| extras.operation.clone());
            Attempt::tracked(number, hedge, Shared::new(deadline, operation))
        } else {
            Attempt::numbered(number, hedge)
        }
    }
}
