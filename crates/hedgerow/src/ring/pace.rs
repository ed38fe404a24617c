//! How soon the driver looks again.

/// A tick that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// So many of the shortest delays go by without a call that uses it before the driver forgets it.
/// Few in a model that tries every order of events.
const PATIENCE: u64 = if cfg!(loom) { 1 } else { 8 };

/// Chooses when the driver looks again, so that calls seldom have to wake it.
///
/// Most calls end long before their deadline, so that the driver would find nothing and sleep on,
/// and the next call would have to wake it. So it looks again after the shortest delay that was in
/// use of late, whether or not anybody waits: until then no call of such a delay can be due. When
/// no call has used that delay for a while it is forgotten, and with nobody waiting either, the
/// driver sleeps until it is woken.
#[derive(Debug)]
pub(super) struct Pace {
    /// The shortest delay in use, in ticks; [`NEVER`] if none is.
    shortest: u64,
    /// When a call with such a delay was last heard of.
    heard: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { shortest: NEVER, heard: 0 }
    }

    /// When to look again. `armed` is the shortest delay of the calls that came since the driver
    /// looked last, `earliest` when the first of those that wait can be due; [`NEVER`] for none.
    pub(super) fn look_again(&mut self, now: u64, armed: u64, earliest: u64) -> u64 {
        let forgets = self.heard.saturating_add(self.shortest.saturating_mul(PATIENCE)) <= now;
        if armed <= self.shortest || forgets {
            self.shortest = armed;
            self.heard = now;
        }
        earliest.min(now.saturating_add(self.shortest))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_looks_after_one_delay_while_calls_come() {
        let mut pace = Pace::new();
        assert_eq!(pace.look_again(1_000, 50, NEVER), 1_050);
        assert_eq!(pace.look_again(1_050, 50, NEVER), 1_100);
        assert_eq!(pace.look_again(1_100, 50, 1_120), 1_120, "or when somebody is due");
        assert_eq!(pace.look_again(1_120, 10, 1_150), 1_130, "or after a shorter delay");
    }

    #[test]
    fn it_sleeps_when_nobody_came_for_eight_delays() {
        let mut pace = Pace::new();
        pace.look_again(1_000, 50, NEVER);
        let looks = std::iter::successors(Some(1_050), |now| {
            Some(pace.look_again(*now, NEVER, NEVER)).filter(|next| *next != NEVER)
        });
        assert_eq!(looks.last(), Some(1_400));
        assert_eq!(pace.look_again(9_000, NEVER, 9_999), 9_999, "but for those that wait");
    }

    #[test]
    fn a_delay_that_went_out_of_use_gives_way_to_a_longer_one() {
        let mut pace = Pace::new();
        pace.look_again(0, 5, NEVER);
        let mut now = 5;
        while now < 40 {
            now = pace.look_again(now, 1_000, NEVER);
        }
        assert_eq!(now, 40);
        assert_eq!(pace.look_again(now, 1_000, NEVER), 1_040);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A call whose delay is in use need not wake the driver: it looks again in time by itself.
        #[test]
        fn a_call_with_the_delay_in_use_never_has_to_wake_the_driver(
            delay in 1..100u64, gaps in vec(0..400u64, 1..40),
        ) {
            let mut pace = Pace::new();
            let mut until = pace.look_again(0, delay, NEVER);
            let mut now = 0;
            for gap in gaps.into_iter().map(|gap| gap % (delay * (PATIENCE - 1))) {
                now += gap;
                let mut looked = false;
                while until <= now {
                    let armed = if looked { NEVER } else { delay };
                    until = pace.look_again(until, armed, NEVER);
                    looked = true;
                }
                prop_assert!(until <= now + delay, "{until} at {now}");
            }
        }
    }
}
