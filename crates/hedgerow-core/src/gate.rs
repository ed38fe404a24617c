//! Reasons not to hedge.

use std::fmt;

/// Why a hedge was not started, or why no further one will be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Gate {
    /// The budget had nothing left.
    Budget,
    /// Nothing is known yet of how long calls take.
    Cold,
    /// The call lost the coin: only a share of slow calls is hedged.
    Probability,
    /// Nearly all calls are slow: the backend is, not this one attempt.
    Slow,
    /// Hedges hardly ever win: what makes calls slow cannot be hedged away.
    Wins,
    /// A target asked for quiet: see [`Pushback`](crate::Pushback).
    Pushback,
    /// The timer ended much too late: the program itself had stopped.
    Late,
    /// The call's deadline had passed: a hedge could not finish in time.
    Deadline,
    /// The call is not idempotent, so it never runs twice.
    NotIdempotent,
    /// `next_action` said that nothing more is to start.
    Stopped,
    /// A hedge was rejected before it started, and the policy stops there.
    Rejected,
    /// As many attempts as are allowed to still run on without their calls.
    Abandoned,
    /// No thread could be had for the hedge.
    NoThread,
    /// Nothing spoke against the hedge, but the policy is a dry run.
    DryRun,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Self; 14] = [
        Self::Cold,
        Self::Probability,
        Self::Slow,
        Self::Wins,
        Self::Pushback,
        Self::Late,
        Self::Deadline,
        Self::Budget,
        Self::NotIdempotent,
        Self::Stopped,
        Self::Rejected,
        Self::DryRun,
        Self::Abandoned,
        Self::NoThread,
    ];

    /// The name used in events, metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Cold => "cold",
            Self::Probability => "probability",
            Self::Slow => "slow",
            Self::Wins => "wins",
            Self::Pushback => "pushback",
            Self::Late => "late",
            Self::Deadline => "deadline",
            Self::NotIdempotent => "not-idempotent",
            Self::Stopped => "stopped",
            Self::Rejected => "rejected",
            Self::DryRun => "dry-run",
            Self::Abandoned => "abandoned",
            Self::NoThread => "no-thread",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
