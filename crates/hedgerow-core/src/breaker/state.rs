//! The states of a breaker, and what it says.

use std::num::NonZeroU64;
use std::time::Duration;

/// The state of a [`Breaker`](super::Breaker).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BreakerState {
    /// Calls go through, and are counted.
    Closed,
    /// No call goes through until the open time is over.
    Open,
    /// A few calls go through, to see how they end.
    HalfOpen,
    /// No call goes through until somebody resets it.
    Isolated,
}

impl BreakerState {
    const ALL: [Self; 4] = [Self::Closed, Self::Open, Self::HalfOpen, Self::Isolated];

    /// The word used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::Isolated => "isolated",
        }
    }
}

/// A call that was let through. Say how it ended, or that nobody knows:
/// [`succeeded`](super::Breaker::succeeded), [`failed`](super::Breaker::failed),
/// [`forget`](super::Breaker::forget).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a probe that is not given back is missed until its lease is over"]
pub struct Ticket {
    pub(super) turn: u64,
    /// Its number, if it is a probe.
    pub(super) probe: Option<NonZeroU64>,
}

impl Ticket {
    /// Whether the call is one of the few that go through while the breaker is half-open.
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

/// How exactly it matters when a call that went well has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeedsTime {
    /// Not at all: any moment will do.
    No,
    /// Some milliseconds too early are near enough. Moments of different calls may be out of order.
    Roughly,
    /// To the nanosecond.
    Exactly,
}

/// A call that was not let through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The state in which the breaker refused.
    pub state: BreakerState,
    /// After how long it may be worth another try, if anybody can say.
    pub retry_after: Option<Duration>,
}

/// The breaker changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state that it is in now.
    pub state: BreakerState,
    /// For how long it stays open, if it opened for a time.
    pub open_for: Option<Duration>,
}

/// The turn, and the state in the two lowest bits.
pub(super) fn pack(turn: u64, state: BreakerState) -> u64 {
    let index = BreakerState::ALL.iter().position(|each| *each == state).unwrap_or(0);
    turn << 2 | index as u64
}

pub(super) fn unpack(word: u64) -> (u64, BreakerState) {
    (word >> 2, BreakerState::ALL[usize::try_from(word & 3).unwrap_or(0)])
}
