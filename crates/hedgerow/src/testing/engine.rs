//! The engine front: drives a `Call` by hand, in invented time.

use hedgerow_core::{Call, EventKind, Moment, Panics, Policy, Step, Terms, Verdict};

use super::scenario::{Scenario, Scripted};
use super::timeline::Timeline;

/// A scripted call on the pure engine.
struct Drive<'a> {
    scenario: &'a Scenario,
    policy: Policy,
    call: Call,
    now: Moment,
    /// When each started attempt ends.
    ends: Vec<Moment>,
    cancelled: bool,
}

/// Runs the scenario to its end, or until nothing can happen any more.
pub(super) fn run(scenario: &Scenario) -> Timeline {
    let policy = scenario.budgeted().policy().clone();
    let terms = Terms { idempotent: scenario.idempotent, log: true, ..Terms::default() };
    let call = Call::new(&policy, terms);
    let (now, ends) = (Moment::ZERO, Vec::new());
    let mut drive = Drive { scenario, policy, call, now, ends, cancelled: false };
    while let Some(until) = drive.turn() {
        match drive.next_moment(until) {
            Some(next) => drive.now = next,
            None => break,
        }
    }
    Timeline::new(scenario, drive.call.log())
}

impl Drive<'_> {
    /// Everything that happens at this moment. `None`: the call is over.
    fn turn(&mut self) -> Option<Moment> {
        self.take_ended();
        if self.now >= self.scenario.cancel_moment() && !self.cancelled {
            self.cancelled = true;
            self.call.cancel(&self.policy, self.now);
        }
        loop {
            match self.call.step(&self.policy, self.now) {
                Step::AskDelay { hedge } => self.call.delay(self.policy.delay(hedge, 0)),
                Step::Start { attempt, .. } => self.start(attempt),
                Step::Release => self.told_to_stop(),
                Step::Wait { until } => return Some(until),
                Step::Finish(_) => return None,
            }
        }
    }

    fn start(&mut self, attempt: u8) {
        self.call.started(&self.policy, self.now);
        let script = self.scenario.attempt_script(attempt);
        self.ends.push(self.now.after(script.length()));
        if script.length().is_zero() {
            self.end(attempt);
        }
    }

    /// The attempts that have ended by now, in launch order, until one decides.
    fn take_ended(&mut self) {
        let decided = self.call.decision().is_some();
        for attempt in 0..self.call.started_attempts() {
            let ends = self.ends[usize::from(attempt)];
            if self.call.is_running(attempt) && ends <= self.now && !ends.is_never() {
                self.end(attempt);
            }
            if !decided && self.call.decision().is_some() {
                break;
            }
        }
    }

    fn end(&mut self, attempt: u8) {
        let script = self.scenario.attempt_script(attempt);
        let by_itself = self.call.started_at(attempt).map(|start| start.after(script.length()));
        let verdict = match script.outcome {
            // Told to stop and done with its clean-up: what it returns is discarded.
            _ if by_itself != Some(self.ends[usize::from(attempt)]) => Verdict::ACCEPTED,
            Scripted::Ok | Scripted::Fatal | Scripted::Never => Verdict::ACCEPTED,
            Scripted::Error | Scripted::Bad => Verdict::HANDLED,
            Scripted::Rejected => Verdict::rejected(self.policy.hedge_rejections),
            Scripted::Panic => Verdict::PANICKED,
        };
        let decided = self.call.decision().is_some();
        if verdict == Verdict::PANICKED && self.policy.panics == Panics::Propagate && !decided {
            return self.call.abort(&self.policy, Some(attempt), self.now);
        }
        let verdict = match script.pushback {
            Some(pushback) if verdict != Verdict::PANICKED => verdict.pushed_back(pushback),
            _ => verdict,
        };
        self.call.finished(&self.policy, attempt, verdict, self.now);
    }

    /// Under a join, attempts that were told to stop end after their clean-up.
    fn told_to_stop(&mut self) {
        let told: Vec<u8> = self
            .call
            .log()
            .iter()
            .filter(|event| event.kind == EventKind::ToldToStop)
            .filter_map(|event| event.attempt)
            .collect();
        for attempt in told {
            let clean = self.now.after(self.scenario.attempt_script(attempt).cleanup);
            let end = &mut self.ends[usize::from(attempt)];
            *end = (*end).min(clean);
        }
    }

    /// The next moment at which something happens.
    fn next_moment(&self, until: Moment) -> Option<Moment> {
        let running =
            (0_u8..).zip(&self.ends).filter(|(attempt, _)| self.call.is_running(*attempt));
        let cancel = if self.cancelled { Moment::NEVER } else { self.scenario.cancel_moment() };
        let next = running.map(|(_, end)| *end).chain([until, cancel]).min()?;
        (!next.is_never()).then_some(next.max(self.now))
    }
}
