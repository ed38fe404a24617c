//! One hedged call, as a pure state machine.
//!
//! A [`Call`] takes "this happened, at this moment" and answers "do this next". It reads no clock,
//! spawns nothing and knows nothing of futures, threads or the caller's types; the same object is
//! driven by the async and the thread front, by the replay of scenarios and by tests.
//!
//! # States
//!
//! ```text
//!             step: Start(0)          step: Start(n)             finished: accepted
//!            (unless cancelled)     (delay or failure,          cancel . abort . exhausted
//!  ┌───────┐        ┌───────────┐    gates passed)  ┌────────┐          ┌─────────┐
//!  │ Ready ├───────►│ Preparing │◄──────────────────┤ Racing ├─────────►│ Decided │
//!  └───┬───┘        └─────┬─────┘                   └────────┘          └────┬────┘
//!      │                  │  started, declined          ▲                    │ step: Release
//!      │                  └─────────────────────────────┘                    ▼
//!      │                  │ finished: accepted, cancel, abort           ┌─────────┐
//!      │                  └────────────────► Decided                    │ Leaving │ losers = join:
//!      │ cancel                                                         └────┬────┘ Wait for them
//!      └───────────────────────────────────► Decided                         │ step: Finish
//!                                                                            ▼
//!                                                                       ┌────────┐
//!                                                   dropped, from any   │  Over  │
//!                                                   state but Over ────►└────────┘
//! ```
//!
//! # How to drive it
//!
//! On each turn, in this order (E3, E4):
//!
//! 1. tell every attempt that ended, in launch order, with [`Call::finished`]; stop at the first
//!    one that decides;
//! 2. tell the caller's cancellation with [`Call::cancel`];
//! 3. obey [`Call::step`] until it says [`Step::Wait`] or [`Step::Finish`]. A newly started
//!    attempt is polled once before the next step (E6).

mod gates;
mod roster;
mod rules;
mod step;
#[cfg(test)]
mod tests;
mod trace;

pub use step::Step;

use crate::delay::Delay;
use crate::event::{Decision, End, Event, EventKind, Origin};
use crate::gate::Gate;
use crate::options::{FailureStart, Policy};
use crate::time::Moment;
use roster::Roster;
use trace::Trace;

/// What a call may do, beyond its policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Whether the work may run more than once. If not, no attempt ever starts while another may
    /// be in flight, and only a handled rejection is followed by another attempt (E11).
    pub idempotent: bool,
    /// No hedge starts at or after this moment.
    pub deadline: Moment,
    /// Whether to keep every event for [`Call::log`].
    pub log: bool,
    /// What decides this call's chances under a learned policy; from
    /// [`Policy::draw`], or any number that is evenly spread.
    pub draw: u64,
}

impl Default for Terms {
    /// Idempotent, no deadline, no log.
    fn default() -> Self {
        Self { idempotent: true, deadline: Moment::NEVER, log: false, draw: 0 }
    }
}

/// One hedged call.
#[derive(Clone, Debug)]
pub struct Call {
    phase: Phase,
    roster: Roster,
    /// Starts that handled failures have earned and that did not happen yet (E5).
    owed: u8,
    /// When the delay of the next hedge is over; `None` while it is not asked for.
    due: Option<Moment>,
    /// What ended launching, and when.
    closed: Option<(Gate, Moment)>,
    /// What ended launching came before a hedge was due, and none was refused for it yet.
    unsaid: bool,
    /// No hedge before this moment: a target asked for it.
    quiet_until: Moment,
    /// When the call began, as the policy counts time.
    begun: Moment,
    /// A hedge is paid for and has not started.
    reserved: bool,
    /// Losers were told to stop.
    told: bool,
    decision: Option<Decision>,
    terms: Terms,
    trace: Trace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Ready,
    Preparing(Origin),
    Racing,
    Decided,
    Leaving { until: Moment },
    Over,
}

impl Call {
    /// A call that has not started.
    pub fn new(policy: &Policy, terms: Terms) -> Self {
        Self {
            phase: Phase::Ready,
            roster: Roster::default(),
            owed: 0,
            due: None,
            closed: None,
            unsaid: false,
            quiet_until: Moment::ZERO,
            begun: Moment::ZERO,
            reserved: false,
            told: false,
            decision: None,
            terms,
            trace: Trace::new(policy, terms.log),
        }
    }

    /// A call whose primary started at [`Moment::ZERO`] and still runs. For a front that makes the
    /// call only when there is something to decide, which an observer that
    /// [wants all](crate::Observer::wants_all) does not allow: the start of the primary is told now.
    pub fn under_way(policy: &Policy, draw: u64) -> Self {
        let mut call = Self::new(policy, Terms { draw, ..Terms::default() });
        let primary = call.roster.start(Moment::ZERO);
        call.phase = Phase::Racing;
        let started = EventKind::Started { origin: Origin::Primary };
        call.trace.tell(policy, Some(primary), Moment::ZERO, started);
        call
    }

    /// When the call began, in the time that the policy's [`Quiet`](crate::Quiet) counts. Said by
    /// the front before the first attempt ends, and only if the policy has one;
    /// [`Moment::ZERO`] unless it is said.
    pub fn begun_at(&mut self, begun: Moment) {
        self.begun = begun;
    }

    /// What to do next. What it says is to be done before it is asked again; until a
    /// [`Step::Start`] is answered, it says to wait.
    pub fn step(&mut self, policy: &Policy, now: Moment) -> Step {
        match self.phase {
            Phase::Ready => self.prepare(Origin::Primary),
            Phase::Preparing(_) => Step::Wait { until: Moment::NEVER },
            Phase::Racing => self.race(policy, now),
            Phase::Decided => self.release(policy, now),
            Phase::Leaving { until } => self.leave(policy, until, now),
            Phase::Over => Step::Finish(self.decision.unwrap_or(Decision::Cancelled)),
        }
    }

    /// The answer to [`Step::AskDelay`].
    pub fn delay(&mut self, delay: Delay) {
        let latest = self.roster.latest_start();
        self.due = Some(match delay {
            Delay::After(delay) => latest.after(delay),
            Delay::Immediately => latest,
            Delay::OnFailure => Moment::NEVER,
        });
    }

    /// The answer to [`Step::Start`]: the attempt starts now. Tells the observer, so it comes
    /// before the attempt's first poll.
    pub fn started(&mut self, policy: &Policy, now: Moment) {
        let Phase::Preparing(origin) = self.phase else {
            debug_assert!(false, "only a Start is answered by started");
            return;
        };
        let attempt = self.roster.start(now);
        self.phase = Phase::Racing;
        self.reserved = false;
        self.due = None;
        match policy.failure_start {
            FailureStart::Launch if origin == Origin::Failure => {
                // A failure that came meanwhile may have ended launching, and with it what is owed.
                self.owed = self.owed.saturating_sub(1);
            }
            FailureStart::Launch => {}
            FailureStart::LaunchWhenIdle | FailureStart::Wait => self.owed = 0,
        }
        self.trace.tell(policy, Some(attempt), now, EventKind::Started { origin });
    }

    /// The caller cancelled. Cuts a join short if the call is decided already (A15).
    pub fn cancel(&mut self, policy: &Policy, now: Moment) {
        match self.phase {
            Phase::Over => {}
            Phase::Decided | Phase::Leaving { .. } => {
                if self.decision != Some(Decision::Cancelled) {
                    self.tell_losers(policy, now);
                    self.end_all(policy, now);
                }
            }
            _ => self.decide(policy, Decision::Cancelled, now),
        }
    }

    /// Hedging itself failed, or a panic is to reach the caller: nothing waits for the losers.
    /// `panicked` is the attempt whose panic it is, if it is one's.
    pub fn abort(&mut self, policy: &Policy, panicked: Option<u8>, now: Moment) {
        if self.phase == Phase::Over {
            return;
        }
        self.decide(policy, Decision::Aborted, now);
        if let Some(attempt) = panicked.filter(|attempt| self.roster.is_running(*attempt)) {
            self.end(policy, attempt, End::Panicked, now);
        }
        self.tell_losers(policy, now);
        self.end_all(policy, now);
        self.close_account(policy, Decision::Aborted, now);
    }

    /// The caller dropped the call: every attempt went with it.
    pub fn dropped(&mut self, policy: &Policy, now: Moment) {
        if self.phase == Phase::Over {
            return;
        }
        if self.decision.is_none() {
            self.decide(policy, Decision::Cancelled, now);
        }
        self.tell_losers(policy, now);
        self.end_all(policy, now);
        self.decision = Some(Decision::Cancelled);
        self.close_account(policy, Decision::Cancelled, now);
    }

    /// What decides this call's chances.
    pub fn draw(&self) -> u64 {
        self.terms.draw
    }

    /// How the call is decided, once it is.
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// Whether the call has ended, losers and all.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether this attempt started and has not ended.
    pub fn is_running(&self, attempt: u8) -> bool {
        self.roster.is_running(attempt)
    }

    /// When this attempt started, if it did and the call is observed or logged.
    pub fn started_at(&self, attempt: u8) -> Option<Moment> {
        self.trace.started_at(attempt)
    }

    /// Whether the end of this attempt was told, if the call is observed or logged. Never before it
    /// has ended, and not if it goes on without the call.
    pub fn end_told(&self, attempt: u8) -> bool {
        self.trace.end_told(attempt)
    }

    /// How many attempts started.
    pub fn started_attempts(&self) -> u8 {
        self.roster.started()
    }

    /// The attempts that failed, in completion order; those of one instant in launch order.
    pub fn failed(&self) -> &[u8] {
        self.roster.failed()
    }

    /// What ended launching before every hedge was used, and when.
    pub fn closed(&self) -> Option<(Gate, Moment)> {
        let once = (Gate::NotIdempotent, Moment::ZERO);
        self.closed.or_else(|| (!self.terms.idempotent).then_some(once))
    }

    /// The number that this call's events carry: 0 if the policy has no observer.
    pub fn id(&self) -> u64 {
        self.trace.id()
    }

    /// Every event so far, if [`Terms::log`] asked for them.
    pub fn log(&self) -> &[Event] {
        self.trace.log()
    }
}
