//! What the engine asks of whoever drives it.

use crate::event::{Decision, Origin};
use crate::time::Moment;

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Step {
    /// Say how long to wait before hedge number `hedge` (1 is the first), through
    /// [`Call::delay`](super::Call::delay). Asked once per hedge, right after the previous start.
    AskDelay {
        /// The number of the next hedge.
        hedge: u8,
    },
    /// Start this attempt: ask `next_action` and the hook if it is a hedge, say
    /// [`Call::started`](super::Call::started), then poll it once before the next step. Its budget
    /// is taken already.
    Start {
        /// Its number.
        attempt: u8,
        /// Why.
        origin: Origin,
    },
    /// Nothing to do until this moment or until an attempt ends, whichever is first.
    Wait {
        /// [`Moment::NEVER`] if only an attempt, or the caller, can move the call on.
        until: Moment,
    },
    /// The call is decided: deal with the losers as the policy says, then ask again.
    Release,
    /// The call is over.
    Finish(Decision),
}
