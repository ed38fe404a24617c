//! Attempts as they run: polled in launch order, judged when they end (E3).

use std::pin::Pin;
use std::task::{Context, Poll};

use hedgerow_core::{Moment, Panics, Verdict};

use super::Work;
use super::race::{Parts, Race};
use super::slots::{Caught, Primary, poll_caught};
use crate::failure::Failure;
use crate::hedge::Hedge;
use crate::rules::{Discarded, Rules, judge};

impl<Fut, R> Race<Fut, R>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// Polls the running attempts in launch order, until one decides (E3).
    pub(super) fn poll_running<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        now: Moment,
        cx: &mut Context<'_>,
    ) {
        let decided = self.call.decision().is_some();
        for attempt in 0..self.call.started_attempts() {
            if self.call.is_running(attempt) {
                self.as_mut().poll_attempt(parts, attempt, now, cx);
            }
            if !decided && self.call.decision().is_some() {
                break;
            }
        }
    }

    /// Polls one attempt, and takes its outcome if it ended.
    pub(super) fn poll_attempt<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        attempt: u8,
        now: Moment,
        cx: &mut Context<'_>,
    ) {
        // After the decision nothing that a loser does changes the result (A19).
        let panics = match self.call.decision() {
            Some(_) => Panics::AsFailure,
            None => parts.hedge.policy().panics,
        };
        *self.as_mut().project().polling = Some(attempt);
        let polled = if attempt == 0 {
            parts.primary.as_mut().running().map(|work| poll_caught(work, panics, cx))
        } else {
            let slots = self.as_mut().project().slots;
            slots.get(attempt).map(|hedge| poll_caught(hedge, panics, cx))
        };
        *self.as_mut().project().polling = None;
        if let Some(Poll::Ready(caught)) = polled {
            // The outcome is safe before the attempt's destructor runs, which may panic.
            self.as_mut().take(parts.hedge, parts.rules, attempt, caught, now);
            match attempt {
                0 => parts.primary.set(Primary::Absent),
                _ => self.project().slots.clear(attempt),
            }
        }
    }

    /// An attempt ended: judges its outcome.
    pub(super) fn take(
        self: Pin<&mut Self>,
        hedge: &Hedge,
        rules: &mut R,
        attempt: u8,
        caught: Caught<Fut::Value, Fut::Error>,
        now: Moment,
    ) {
        let verdict = match &caught {
            Err(_) => Verdict::PANICKED,
            // Nobody asks what a discarded outcome is worth.
            Ok(_) if self.call.decision().is_some() => Verdict::ACCEPTED,
            Ok(outcome) => judge(rules, attempt, outcome, hedge.policy().hedge_rejections),
        };
        self.keep(hedge, rules, attempt, caught, verdict, now);
    }

    /// An attempt ended and was judged: keeps its outcome, or discards it.
    pub(super) fn keep(
        self: Pin<&mut Self>,
        hedge: &Hedge,
        rules: &mut R,
        attempt: u8,
        caught: Caught<Fut::Value, Fut::Error>,
        verdict: Verdict,
        now: Moment,
    ) {
        let this = self.project();
        let late = this.call.decision().is_some();
        let decides = this.call.finished(hedge.policy(), attempt, verdict, now);
        match caught {
            Ok(outcome) if decides => *this.outcome = Some(outcome),
            Ok(outcome) if late => rules.on_discard(Discarded::new(attempt, outcome)),
            Err(_) if late => {}
            caught => this.failures.push(Failure::new(attempt, now, caught)),
        }
    }
}
