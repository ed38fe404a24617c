//! How an attempt ended, as far as the engine needs to know.

/// What an attempt's outcome means for the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether the outcome is worth another attempt. Every other outcome is accepted and decides.
    pub handled: bool,
    /// What kind of outcome it is.
    pub kind: OutcomeKind,
}

/// The kinds of outcome that the engine tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutcomeKind {
    /// The work ran and returned.
    Returned,
    /// The work never started: an open breaker, a full limiter.
    Rejected,
    /// The work panicked.
    Panicked,
}

impl Verdict {
    /// An outcome that decides the call.
    pub const ACCEPTED: Self = Self { handled: false, kind: OutcomeKind::Returned };
    /// An outcome that is worth another attempt.
    pub const HANDLED: Self = Self { handled: true, kind: OutcomeKind::Returned };
    /// A panic that counts as a handled failure.
    pub const PANICKED: Self = Self { handled: true, kind: OutcomeKind::Panicked };

    /// A rejection, handled or not.
    pub const fn rejected(handled: bool) -> Self {
        Self { handled, kind: OutcomeKind::Rejected }
    }
}
