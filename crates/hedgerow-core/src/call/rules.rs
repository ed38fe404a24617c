//! The transitions: what may start, who decides, how the call ends.

use std::time::Duration;

use super::{Call, Phase, Step};
use crate::event::{Decision, End, EventKind, Origin};
use crate::gate::Gate;
use crate::latency::Record;
use crate::options::{Exhausted, FailureStart, Losers, Policy, RejectedHedge};
use crate::time::Moment;
use crate::verdict::{OutcomeKind, Verdict};

/// A timer that ends so much later than it should, or later still by its own length, says that the
/// program had stopped: that its calls are slow says nothing of the backend.
const LATE: Duration = Duration::from_millis(50);

/// Tells the learner what became of the primary, which started at [`Moment::ZERO`].
fn learn(policy: &Policy, record: fn(Duration) -> Record, now: Moment) {
    if let Some(learner) = &policy.learner {
        learner.record(record(now.since(Moment::ZERO)));
    }
}

impl Call {
    /// An attempt ended. `true`: its outcome decides the call.
    ///
    /// After the decision the outcome is discarded, whatever it is.
    pub fn finished(
        &mut self,
        policy: &Policy,
        attempt: u8,
        verdict: Verdict,
        now: Moment,
    ) -> bool {
        debug_assert!(self.roster.is_running(attempt), "an attempt ends once, after it started");
        let (end, decides) = self.judge(policy, attempt, verdict);
        self.end(policy, attempt, end, now);
        if attempt == 0 && end != End::Discarded {
            learn(policy, if decides { Record::Finished } else { Record::Failed }, now);
        }
        if decides {
            self.decide(policy, Decision::Accepted(attempt), now);
            self.trace.tell(policy, Some(attempt), now, EventKind::Decided);
        } else if end != End::Discarded {
            self.failed_attempt(policy, attempt, verdict, now);
        }
        decides
    }

    /// How the attempt ended, and whether that decides the call.
    fn judge(&self, policy: &Policy, attempt: u8, verdict: Verdict) -> (End, bool) {
        if self.decision.is_some() {
            return (End::Discarded, false);
        }
        let is_rejected_hedge = verdict.kind == OutcomeKind::Rejected && attempt > 0;
        let handled = match policy.rejected_hedge {
            RejectedHedge::Stop | RejectedHedge::Hedge if is_rejected_hedge => true,
            _ => verdict.handled,
        };
        match verdict.kind {
            _ if !handled => (End::Won, true),
            OutcomeKind::Returned => (End::Failed, false),
            OutcomeKind::Rejected => (End::Rejected, false),
            OutcomeKind::Panicked => (End::Panicked, false),
        }
    }

    /// Records a handled failure and what it allows to start (E5, E11, E14).
    fn failed_attempt(&mut self, policy: &Policy, attempt: u8, verdict: Verdict, now: Moment) {
        self.roster.fail(attempt);
        let rejected = verdict.kind == OutcomeKind::Rejected;
        if rejected && attempt > 0 && policy.rejected_hedge == RejectedHedge::Stop {
            self.close(Gate::Rejected, now);
        } else if !self.terms.idempotent && !rejected {
            self.close(Gate::NotIdempotent, now);
        } else if policy.failure_start != FailureStart::Wait {
            self.owed = self.owed.saturating_add(1);
        }
    }

    pub(super) fn prepare(&mut self, origin: Origin) -> Step {
        self.phase = Phase::Preparing(origin);
        Step::Start { attempt: self.roster.started(), origin }
    }

    /// Ends launching for this call; the first reason stands.
    pub(super) fn close(&mut self, gate: Gate, now: Moment) {
        self.closed.get_or_insert((gate, now));
        self.owed = 0;
        self.due = None;
    }

    /// Launch rules, then the timer (E4, E7, E9), then exhaustion (E10).
    pub(super) fn race(&mut self, policy: &Policy, now: Moment) -> Step {
        let hedge = self.roster.started();
        if self.may_launch(policy) {
            let due = match self.due {
                Some(due) => due,
                // No delay ever starts a second run of work that must not run twice.
                None if !self.terms.idempotent => Moment::NEVER,
                None => return Step::AskDelay { hedge },
            };
            if let Some(origin) = self.wanted(policy, due, now) {
                match self.refusal(policy, origin, due, now) {
                    None => return self.prepare(origin),
                    Some(gate) => self.deny(policy, gate, now),
                }
            }
        }
        let until = self.due.filter(|_| self.may_launch(policy)).unwrap_or(Moment::NEVER);
        if self.roster.is_idle() && until.is_never() {
            return self.exhaust(policy, now);
        }
        Step::Wait { until }
    }

    /// Refuses the hedge that is due, and with it every later one.
    pub(super) fn deny(&mut self, policy: &Policy, gate: Gate, now: Moment) {
        if let Some(learner) = &policy.learner {
            learner.refused(gate);
        }
        self.close(gate, now);
        let hedge = self.roster.started();
        self.trace.tell(policy, Some(hedge), now, EventKind::Denied { gate });
    }

    fn may_launch(&self, policy: &Policy) -> bool {
        self.closed.is_none() && self.roster.started() <= policy.max_hedges.get()
    }

    /// Whether a hedge is to start now, and why.
    fn wanted(&self, policy: &Policy, due: Moment, now: Moment) -> Option<Origin> {
        let alone = self.roster.is_idle();
        let only_alone =
            !self.terms.idempotent || policy.failure_start == FailureStart::LaunchWhenIdle;
        if self.owed > 0 && (alone || !only_alone) {
            Some(Origin::Failure)
        } else if due <= now && !due.is_never() {
            Some(Origin::Delay)
        } else {
            None
        }
    }

    /// The gates, in a fixed order; the budget last, so that a hedge that another gate refuses
    /// costs nothing. What was learned speaks only about slow calls, not about failed ones.
    fn refusal(
        &mut self,
        policy: &Policy,
        origin: Origin,
        due: Moment,
        now: Moment,
    ) -> Option<Gate> {
        if now >= self.terms.deadline {
            return Some(Gate::Deadline);
        }
        let learner = policy.learner.as_deref().filter(|_| origin == Origin::Delay);
        let spare = learner.is_some_and(|learner| !learner.won_coin(self.terms.draw));
        if let Some(learner) = learner {
            let delay = due.since(self.roster.latest_start());
            if now.since(due) > delay.max(LATE) {
                return Some(Gate::Late);
            }
            if let Some(gate) = learner.gate(self.terms.draw) {
                return Some(gate);
            }
        }
        if let Some(budget) = &policy.budget {
            let granted = if spare { budget.try_take_spare() } else { budget.try_take() };
            if !granted {
                return Some(Gate::Budget);
            }
            self.reserved = true;
        }
        None
    }

    pub(super) fn refund(&mut self, policy: &Policy) {
        if std::mem::take(&mut self.reserved)
            && let Some(budget) = &policy.budget
        {
            budget.give_back();
        }
    }

    fn exhaust(&mut self, policy: &Policy, now: Moment) -> Step {
        let failed = self.roster.failed();
        let chosen = match policy.exhausted {
            Exhausted::Primary => Some(&0),
            Exhausted::First => failed.first(),
            Exhausted::Last => failed.last(),
        };
        let chosen = chosen.copied().unwrap_or(0);
        self.decide(policy, Decision::Exhausted(chosen), now);
        self.trace.tell(policy, Some(chosen), now, EventKind::Exhausted);
        self.release(policy, now)
    }

    pub(super) fn decide(&mut self, policy: &Policy, decision: Decision, now: Moment) {
        self.refund(policy);
        if self.decision.is_none() && self.roster.is_running(0) {
            learn(policy, Record::Cut, now);
        }
        if self.decision.is_none() {
            self.decision = Some(decision);
        }
        self.phase = Phase::Decided;
    }

    /// Deals with the losers, once, at the time of the decision (E12).
    pub(super) fn release(&mut self, policy: &Policy, now: Moment) -> Step {
        self.tell_losers(policy, now);
        let until = match policy.losers {
            Losers::Join { grace } => grace.map_or(Moment::NEVER, |grace| now.after(grace)),
            Losers::Drop | Losers::Detach => {
                self.end_all(policy, now);
                now
            }
        };
        self.phase = Phase::Leaving { until };
        Step::Release
    }

    pub(super) fn leave(&mut self, policy: &Policy, until: Moment, now: Moment) -> Step {
        if !self.roster.is_idle() {
            if now < until {
                return Step::Wait { until };
            }
            self.end_all(policy, now);
        }
        let decision = self.decision.unwrap_or(Decision::Cancelled);
        self.finish(policy, decision, now)
    }

    /// Tells those that still run to stop, once.
    pub(super) fn tell_losers(&mut self, policy: &Policy, now: Moment) {
        let told = std::mem::replace(&mut self.told, true);
        if !told && policy.losers != Losers::Detach {
            for attempt in self.roster.running() {
                self.trace.tell(policy, Some(attempt), now, EventKind::ToldToStop);
            }
        }
    }

    /// Ends what still runs: it was dropped, or goes on without the call if it is detached.
    pub(super) fn end_all(&mut self, policy: &Policy, now: Moment) {
        if policy.losers == Losers::Detach {
            self.roster.let_go();
        }
        for attempt in self.roster.running() {
            self.end(policy, attempt, End::Cancelled, now);
        }
    }

    pub(super) fn end(&mut self, policy: &Policy, attempt: u8, end: End, now: Moment) {
        self.roster.end(attempt);
        let ran = self.trace.ran(attempt, now);
        self.trace.tell(policy, Some(attempt), now, EventKind::Ended { end, ran });
    }

    fn finish(&mut self, policy: &Policy, decision: Decision, now: Moment) -> Step {
        self.close_account(policy, decision, now);
        Step::Finish(decision)
    }

    /// Pays a completed call into the budget and tells that the call is over.
    pub(super) fn close_account(&mut self, policy: &Policy, decision: Decision, now: Moment) {
        let attempt = match decision {
            Decision::Accepted(attempt) | Decision::Exhausted(attempt) => {
                policy.completed();
                if let Some(learner) = policy.learner.as_deref()
                    && self.roster.started() > 1
                {
                    learner.hedged(matches!(decision, Decision::Accepted(1..)));
                }
                Some(attempt)
            }
            Decision::Cancelled | Decision::Aborted => None,
        };
        self.phase = Phase::Over;
        self.trace.tell(policy, attempt, now, EventKind::Over { how: decision });
    }
}
