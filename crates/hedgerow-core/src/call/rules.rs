//! The transitions: what may start, who decides, how the call ends.

use std::time::Duration;

use super::{Call, Phase, Step};
use crate::event::{Decision, End, EventKind, Origin};
use crate::gate::Gate;
use crate::latency::Record;
use crate::options::{Exhausted, FailureStart, Losers, Policy, RejectedHedge};
use crate::time::Moment;
use crate::verdict::{OutcomeKind, Verdict};

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
        if let Some(pushback) = verdict.pushback
            && end != End::Discarded
        {
            self.push_back(policy, pushback, decides, now);
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
            self.bar(Gate::Rejected, now);
        } else if !self.terms.idempotent && !rejected {
            self.bar(Gate::NotIdempotent, now);
        }
        if policy.failure_start != FailureStart::Wait {
            self.owed = self.owed.saturating_add(1);
        }
    }

    pub(super) fn prepare(&mut self, origin: Origin) -> Step {
        self.phase = Phase::Preparing(origin);
        Step::Start { attempt: self.roster.started(), origin }
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
                if self.waits_for_quiet(now) {
                    return Step::Wait { until: self.quiet_until };
                }
                match self.refusal(policy, origin, due, now) {
                    None => return self.prepare(origin),
                    Some(gate) => self.refuse(policy, gate, now),
                }
            }
        } else if let Some(gate) = self.unsaid(policy)
            && self.wanted(policy, self.due.unwrap_or(Moment::NEVER), now).is_some()
        {
            self.refuse(policy, gate, now);
        }
        // A hedge that will only be refused holds up nothing.
        let idle = self.roster.is_idle();
        let waits = self.may_launch(policy) || (!idle && self.unsaid(policy).is_some());
        let until = self.due.filter(|_| waits).unwrap_or(Moment::NEVER);
        if idle && until.is_never() {
            return self.exhaust(policy, now);
        }
        Step::Wait { until }
    }

    fn may_launch(&self, policy: &Policy) -> bool {
        self.closed.is_none() && self.has_left(policy)
    }

    /// Whether hedges are left.
    pub(super) fn has_left(&self, policy: &Policy) -> bool {
        self.roster.started() <= policy.max_hedges.get()
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

    fn exhaust(&mut self, policy: &Policy, now: Moment) -> Step {
        let failed = self.roster.failed();
        let ran = matches!(self.closed, Some((Gate::NotIdempotent, _)));
        let chosen = match policy.exhausted {
            // A rejection would say that work never started that must not start again (T36).
            _ if ran => failed.last(),
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
        if self.decision.is_none() {
            if self.roster.is_running(0) {
                learn(policy, Record::Cut, now);
            }
            self.count_barred(policy, now);
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
