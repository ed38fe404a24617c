//! Until when a target asked not to be hedged, for every call of a policy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::time::Moment;
use crate::verdict::Pushback;

/// The quiet that targets asked for, shared by the calls of a policy and of its clones.
///
/// Time comes in as a value, counted from whatever moment the owner of the policy likes, as long
/// as it is always the same (see [`Call::begun_at`](crate::Call::begun_at)). Reading it is one
/// load; a call that hedges nothing never does.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_core::{Moment, Pushback, Quiet};
///
/// let quiet = Quiet::default();
/// quiet.ask(Pushback::For(Duration::from_millis(50)), Moment::from_millis(100));
/// assert!(quiet.holds(Moment::from_millis(149)));
/// assert!(!quiet.holds(Moment::from_millis(150)));
/// ```
#[derive(Debug, Default)]
pub struct Quiet {
    /// In nanoseconds; only grows.
    until: AtomicU64,
}

impl Quiet {
    /// How long it is quiet after a [`Pushback::Stop`], which names no time.
    pub const AFTER_STOP: Duration = Duration::from_secs(1);
    /// No quiet is longer, whatever was asked for: one broken header must not end hedging for good.
    /// A call that is asked for a longer one does not wait for it: it starts no more hedges.
    pub const LONGEST: Duration = Duration::from_secs(600);

    /// A target asked for quiet at this moment. Of several that did, the one that asked for the
    /// later end stands.
    pub fn ask(&self, pushback: Pushback, now: Moment) {
        let length = match pushback {
            Pushback::Stop => Self::AFTER_STOP,
            Pushback::For(length) => length.min(Self::LONGEST),
        };
        self.until.fetch_max(now.after(length).as_nanos(), Ordering::Relaxed);
    }

    /// When the quiet ends or has ended; [`Moment::ZERO`] if nobody ever asked for any.
    pub fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Relaxed))
    }

    /// Whether no hedge is to start at this moment. Its end is not part of it.
    pub fn holds(&self, now: Moment) -> bool {
        now < self.until()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    const fn wait(millis: u64) -> Pushback {
        Pushback::For(Duration::from_millis(millis))
    }

    #[test]
    fn the_later_of_two_ends_stands() {
        let quiet = Quiet::default();
        assert!(!quiet.holds(Moment::ZERO), "nobody asked");
        quiet.ask(wait(500), at(100));
        quiet.ask(wait(100), at(200));
        assert_eq!(quiet.until(), at(600));
        quiet.ask(Pushback::Stop, at(300));
        assert_eq!(quiet.until(), at(1_300), "a second, where no time is named");
        quiet.ask(wait(0), at(1_300));
        assert!(quiet.holds(at(1_299)) && !quiet.holds(at(1_300)));
    }

    #[test]
    fn nothing_is_quiet_for_ever() {
        let quiet = Quiet::default();
        quiet.ask(Pushback::For(Duration::MAX), at(5));
        assert_eq!(quiet.until(), at(600_005));
        quiet.ask(Pushback::Stop, Moment::NEVER);
        assert!(quiet.until().is_never(), "time that is out of range stays there");
    }
}
