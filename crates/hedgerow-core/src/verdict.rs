//! How an attempt ended, as far as the engine needs to know.

use std::time::Duration;

/// What an attempt's outcome means for the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether the outcome is worth another attempt. Every other outcome is accepted and decides.
    pub handled: bool,
    /// What kind of outcome it is.
    pub kind: OutcomeKind,
    /// What the target asked for beside its answer, if it did.
    pub pushback: Option<Pushback>,
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

/// A target asks for fewer requests: no hedge of this call before a time, or none at all. Attempts
/// that run go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pushback {
    /// No more hedges of this call.
    Stop,
    /// No hedge before this time has passed. Zero asks for nothing; more than ten minutes
    /// ([`Quiet::LONGEST`](crate::Quiet::LONGEST)) is [`Stop`](Pushback::Stop) to this call, and
    /// ten minutes of quiet to later ones.
    For(Duration),
}

impl Pushback {
    /// What gRPC servers say in `grpc-retry-pushback-ms`: a whole number of milliseconds. One that
    /// is negative means stop, and so does anything else that is not such a number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow_core::Pushback;
    ///
    /// let half_a_second = Pushback::For(Duration::from_millis(500));
    /// assert_eq!(Pushback::from_grpc("500"), half_a_second);
    /// assert_eq!(Pushback::from_grpc("-1"), Pushback::Stop);
    /// assert_eq!(Pushback::from_grpc("soon"), Pushback::Stop);
    /// ```
    pub fn from_grpc(millis: &str) -> Self {
        let millis = millis.parse::<i32>().ok().and_then(|millis| u64::try_from(millis).ok());
        millis.map_or(Self::Stop, |millis| Self::For(Duration::from_millis(millis)))
    }
}

impl Verdict {
    /// An outcome that decides the call.
    pub const ACCEPTED: Self = Self::new(false, OutcomeKind::Returned);
    /// An outcome that is worth another attempt.
    pub const HANDLED: Self = Self::new(true, OutcomeKind::Returned);
    /// A panic that counts as a handled failure.
    pub const PANICKED: Self = Self::new(true, OutcomeKind::Panicked);

    /// An outcome that asks for nothing beside.
    pub const fn new(handled: bool, kind: OutcomeKind) -> Self {
        Self { handled, kind, pushback: None }
    }

    /// A rejection, handled or not.
    pub const fn rejected(handled: bool) -> Self {
        Self::new(handled, OutcomeKind::Rejected)
    }

    /// The same outcome, whose target asked for this.
    #[must_use]
    pub const fn pushed_back(self, pushback: Pushback) -> Self {
        Self { pushback: Some(pushback), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushback_of_grpc_is_a_whole_number_or_a_stop() {
        for (text, millis) in [("0", 0), ("1", 1), ("+5", 5), ("2147483647", 2_147_483_647)] {
            let wanted = Pushback::For(Duration::from_millis(millis));
            assert_eq!(Pushback::from_grpc(text), wanted, "{text}");
        }
        for text in ["-1", "-2147483648", "2147483648", "", " 5", "5 ", "1.5", "5ms", "soon"] {
            assert_eq!(Pushback::from_grpc(text), Pushback::Stop, "{text:?}");
        }
    }
}
