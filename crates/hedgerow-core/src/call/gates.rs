//! What keeps hedges from starting: gates, pushback, and how a refusal is counted and told.

use std::time::Duration;

use super::{Call, Phase};
use crate::event::{EventKind, Origin};
use crate::gate::Gate;
use crate::options::Policy;
use crate::quiet::Quiet;
use crate::time::Moment;
use crate::verdict::Pushback;

/// A timer that ends so much later than it should, or later still by its own length, says that the
/// program had stopped: that its calls are slow says nothing of the backend.
const LATE: Duration = Duration::from_millis(50);

impl Call {
    /// Whether a hedge that was to start, and was held back since, still is to. If not, it is
    /// declined: nothing more starts, unless a target asked for quiet meanwhile and the deadline
    /// lets the hedge wait for its end.
    pub fn still_wanted(&mut self, policy: &Policy, now: Moment) -> bool {
        let gate = match self.closed {
            Some((gate, _)) => Some(gate),
            None => self.silence(policy, now),
        };
        let waits = gate.is_none() && self.waits_for_quiet(now);
        if gate.is_none() && !waits {
            return true;
        }
        self.refund(policy);
        self.phase = Phase::Racing;
        if let Some(gate) = gate {
            self.refuse(policy, gate, now);
        }
        false
    }

    /// The other answer to [`Step::Start`](super::Step::Start) of a hedge: it does not start, and
    /// nothing else will.
    pub fn declined(&mut self, policy: &Policy, now: Moment) {
        self.refused(policy, Gate::Stopped, now);
    }

    /// The other answer of a front that has no room for the hedge: it does not start, for this
    /// reason, and nothing else will.
    pub fn refused(&mut self, policy: &Policy, gate: Gate, now: Moment) {
        debug_assert!(matches!(self.phase, Phase::Preparing(_)), "only a Start is refused");
        self.refund(policy);
        self.phase = Phase::Racing;
        self.refuse(policy, gate, now);
    }

    /// A target asked for quiet. An outcome that decides tells later calls alone. A call does not
    /// wait for longer than any policy is quiet: nobody may be left who would end it.
    pub(super) fn push_back(
        &mut self,
        policy: &Policy,
        pushback: Pushback,
        decides: bool,
        now: Moment,
    ) {
        policy.pushed_back(pushback, self.policy_time(now));
        match pushback {
            _ if decides => {}
            Pushback::Stop => self.bar(Gate::Pushback, now),
            Pushback::For(quiet) if quiet > Quiet::LONGEST => self.bar(Gate::Pushback, now),
            Pushback::For(quiet) => self.quiet_until = self.quiet_until.max(now.after(quiet)),
        }
    }

    /// The moment as the policy counts it, which is how calls know each other's.
    fn policy_time(&self, now: Moment) -> Moment {
        self.begun.after(now.since(Moment::ZERO))
    }

    /// Whether a hedge that is wanted now only has to wait until it is quiet no more.
    pub(super) fn waits_for_quiet(&self, now: Moment) -> bool {
        now < self.quiet_until && self.quiet_until < self.terms.deadline
    }

    /// Ends launching for this call; the first reason stands. What was due or earned by then is
    /// refused when its time comes, so that it is known what the reason has cost.
    pub(super) fn bar(&mut self, gate: Gate, now: Moment) {
        if self.closed.is_none() {
            self.closed = Some((gate, now));
            self.unsaid = true;
        }
    }

    /// What bars a hedge, while it has not been said.
    pub(super) fn unsaid(&self, policy: &Policy) -> Option<Gate> {
        let (gate, _) = self.closed.filter(|_| self.unsaid && self.has_left(policy))?;
        Some(gate)
    }

    /// Refuses the hedge that was to start now, and ends launching for this call.
    pub(super) fn refuse(&mut self, policy: &Policy, gate: Gate, now: Moment) {
        self.closed.get_or_insert((gate, now));
        (self.unsaid, self.owed, self.due) = (false, 0, None);
        if let Some(learner) = &policy.learner {
            learner.refused(gate);
        }
        if gate != Gate::NotIdempotent {
            let hedge = self.roster.started();
            self.trace.tell(policy, Some(hedge), now, EventKind::Denied { gate });
        }
    }

    /// The gates, in a fixed order; the budget last, so that a hedge that another gate refuses
    /// costs nothing. What was learned speaks only about slow calls, not about failed ones.
    pub(super) fn refusal(
        &mut self,
        policy: &Policy,
        origin: Origin,
        due: Moment,
        now: Moment,
    ) -> Option<Gate> {
        if let Some(gate) = self.silence(policy, now) {
            return Some(gate);
        }
        let learner = policy.learner.as_deref().filter(|_| origin == Origin::Delay);
        let spare = learner.is_some_and(|learner| !learner.won_coin(self.terms.draw));
        if let Some(learner) = learner {
            let due = due.max(self.quiet_until);
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
            // A dry run keeps what it took: it counts what would have been sent.
            self.reserved = !policy.dry_run;
        }
        policy.dry_run.then_some(Gate::DryRun)
    }

    /// Whether it is too late for a hedge at this moment, or too loud.
    fn silence(&self, policy: &Policy, now: Moment) -> Option<Gate> {
        if now >= self.terms.deadline {
            return Some(Gate::Deadline);
        }
        // Its own quiet it waits for; only if it cannot is that a reason.
        if self.waits_for_quiet(now) {
            return None;
        }
        let asked = |quiet: &Quiet| quiet.holds(self.policy_time(now));
        let quiet = now < self.quiet_until || policy.quiet.as_deref().is_some_and(asked);
        quiet.then_some(Gate::Pushback)
    }

    pub(super) fn refund(&mut self, policy: &Policy) {
        if std::mem::take(&mut self.reserved)
            && let Some(budget) = &policy.budget
        {
            budget.give_back();
        }
    }

    /// The call is decided: counts that it would have been hedged by delay had its work been
    /// allowed to run twice.
    pub(super) fn count_barred(&mut self, policy: &Policy, now: Moment) {
        let said = self.closed.is_some() && !self.unsaid;
        if self.terms.idempotent || said || !self.has_left(policy) {
            return;
        }
        if let Some(learner) = &policy.learner
            && let Some(delay) = learner.planned(self.terms.draw)
            && now >= self.roster.latest_start().after(delay)
        {
            learner.refused(Gate::NotIdempotent);
        }
    }
}
