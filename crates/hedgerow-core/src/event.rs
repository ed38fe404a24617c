//! What happens in a call, told as it happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::gate::Gate;
use crate::strategy::StrategyEvent;
use crate::time::Moment;

/// Something that happened in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Which call: unique in this process among observed calls.
    pub call: u64,
    /// The attempt that the event is about; for events of the call as a whole, the attempt whose
    /// outcome is returned, if there is one (where the caller chooses among failures by itself, the
    /// one that the policy would have returned).
    pub attempt: Option<u8>,
    /// When, counted from the start of the call.
    pub at: Moment,
    /// What.
    pub kind: EventKind,
}

impl Event {
    pub(crate) const fn new(call: u64, attempt: Option<u8>, at: Moment, kind: EventKind) -> Self {
        Self { call, attempt, at, kind }
    }

    /// The end of an attempt that was detached: it ran on, and its outcome was discarded at `at`.
    /// The front that detached it tells the observer; the [`Call`](crate::Call) is over by then.
    pub fn late(call: u64, attempt: u8, at: Moment, ran: Duration) -> Self {
        Self::new(call, Some(attempt), at, EventKind::Ended { end: End::Discarded, ran })
    }
}

/// What an [`Event`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// An attempt starts: told before its first poll. A hedge is an attempt whose origin is not
    /// [`Origin::Primary`].
    Started {
        /// Why it starts.
        origin: Origin,
    },
    /// A hedge was due, or a failure had earned it, but it did not start, nor will another. Told
    /// once a call at most; not for work that must not run twice, which nobody expects to.
    Denied {
        /// What refused it.
        gate: Gate,
    },
    /// A loser was told to stop: dropped, or its token fired.
    ToldToStop,
    /// An attempt ended. Every started attempt ends exactly once.
    Ended {
        /// How.
        end: End,
        /// How long it ran.
        ran: Duration,
    },
    /// An attempt's outcome was accepted: the call is decided.
    Decided,
    /// Nothing runs and nothing may start any more: a failure is returned.
    Exhausted,
    /// The call is over. Told exactly once for each call.
    Over {
        /// How.
        how: Decision,
    },
}

/// Why an attempt starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// It is the primary.
    Primary,
    /// The delay passed without an answer.
    Delay,
    /// An earlier attempt failed.
    Failure,
}

impl Origin {
    /// The word used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Delay => "delay",
            Self::Failure => "failure",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// Its outcome was accepted.
    Won,
    /// It returned a handled outcome.
    Failed,
    /// It was rejected before it started, and another attempt decides.
    Rejected,
    /// It panicked.
    Panicked,
    /// It was dropped before it finished.
    Cancelled,
    /// It finished after the decision; its outcome was discarded.
    Discarded,
}

impl End {
    /// Every way to end.
    pub const ALL: [Self; 6] =
        [Self::Won, Self::Failed, Self::Rejected, Self::Panicked, Self::Cancelled, Self::Discarded];

    /// The word used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
            Self::Discarded => "discarded",
        }
    }
}

/// How a call is decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// This attempt's outcome was accepted.
    Accepted(u8),
    /// Every attempt failed; the failure of this one is returned, unless the caller chooses.
    Exhausted(u8),
    /// The caller cancelled, or dropped the call.
    Cancelled,
    /// Hedging itself failed: `next_action` gave an error, or a panic reaches the caller.
    Aborted,
}

/// Is told of every event of every call of a policy.
///
/// Called from the code that drives the call, in order, never concurrently for one call. It must
/// not block. A policy without an observer makes no events.
pub trait Observer: Send + Sync {
    /// Something happened in a hedged call.
    fn event(&self, _event: &Event) {}

    /// Whether every event of every call is wanted, as it happens. If not, a call that never has
    /// more than its primary may be told by [`alone`](Observer::alone) instead, which is cheaper.
    fn wants_all(&self) -> bool {
        true
    }

    /// A call that never had more than its primary is over: it answered ([`End::Won`]), its caller
    /// dropped it ([`End::Cancelled`]), or a panic did ([`End::Panicked`]). `took` is how long the
    /// primary ran, and nothing if it ended at its first poll: nobody reads a clock for that.
    fn alone(&self, _end: End, _took: Duration) {}

    /// A strategy of a pipeline did something, or an attempt of its work.
    fn strategy(&self, _event: &StrategyEvent<'_>) {}
}

/// Two observers, told in turn: the second one also if the first one panics.
pub struct Both(pub Arc<dyn Observer>, pub Arc<dyn Observer>);

impl Observer for Both {
    fn event(&self, event: &Event) {
        self.each(|observer| observer.event(event));
    }

    fn wants_all(&self) -> bool {
        self.0.wants_all() || self.1.wants_all()
    }

    fn alone(&self, end: End, took: Duration) {
        self.each(|observer| observer.alone(end, took));
    }

    fn strategy(&self, event: &StrategyEvent<'_>) {
        self.each(|observer| observer.strategy(event));
    }
}

impl Both {
    fn each(&self, tell: impl Fn(&dyn Observer)) {
        let told = catch_unwind(AssertUnwindSafe(|| tell(&*self.0)));
        tell(&*self.1);
        told.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

impl fmt::Debug for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Both").finish_non_exhaustive()
    }
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}
