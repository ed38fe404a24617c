//! Whether everything is slow just now, and whether that is a new normal.

use super::curve::Curve;
use super::estimate::{Estimate, Fresh};
use super::recorder::Counts;

/// How many fresh attempts tell whether everything is slow, and which share of them.
pub(super) const ENOUGH: f64 = 64.0;
const SLOW_SHARE: f64 = 0.75;

/// How many attempts show the shape of the latencies.
const SHAPE: f64 = 200.0;
/// The chances to take longer at which it is looked at: the p10, the median and the p75.
const PLACES: [f64; 3] = [0.9, 0.5, 0.25];
/// By how much the factors at these places may differ.
const ALIKE: f64 = 1.15;
/// A factor that is worth a new start.
const FACTOR: f64 = 2.0;
/// So many attempts must be known before they are given up.
const KNOWN: f64 = 1_000.0;

/// Looks at how many attempts are slower than the median: a fair coin, whatever the latencies are.
///
/// If nearly all are, something has changed. Where a queue grows, every attempt waits a little
/// longer: the fast ones take many times what they took, the slow ones hardly more. Then hedges
/// would only make it worse, and the past is still what to go by. Where the work itself takes
/// longer, all take the same multiple. Then hedges help as before, but for the past, which makes
/// them start too early: it is forgotten. The same on the way back.
#[derive(Default)]
pub(super) struct Signs {
    seen: f64,
    slower: f64,
    slow: bool,
    change: Option<Change>,
    /// The past was forgotten because everything took longer.
    risen: bool,
}

/// Something that goes on.
struct Change {
    to_slower: bool,
    /// The latencies at the places when it began.
    before: [f64; 3],
    /// What had come by then.
    since: Box<Counts>,
}

impl Signs {
    /// Takes in what came since the last look, which `estimate` knows already, and says whether
    /// everything is slow. Makes `estimate` forget what came before a change of scale.
    pub(super) fn look(&mut self, fresh: Fresh, estimate: &mut Estimate) -> bool {
        self.seen += fresh.attempts;
        self.slower += fresh.slower;
        if self.seen >= ENOUGH {
            let share = self.slower / self.seen;
            (self.seen, self.slower) = (0.0, 0.0);
            self.slow = share > SLOW_SHARE;
            let faster = self.risen && share < 1.0 - SLOW_SHARE;
            self.goes_on((self.slow || faster).then_some(self.slow), estimate);
        }
        if self.is_of_scale(estimate)
            && let Some(change) = self.change.take()
        {
            estimate.forget_before(&change.since);
            self.risen = change.to_slower;
            self.slow = false;
            // What was slow is so no more.
            (self.seen, self.slower) = (0.0, 0.0);
        }
        self.slow
    }

    /// Something changes to slower, or to faster; `None`: nothing does.
    fn goes_on(&mut self, to_slower: Option<bool>, estimate: &Estimate) {
        if self.change.as_ref().map(|change| change.to_slower) == to_slower {
            return;
        }
        self.change = to_slower.and_then(|to_slower| {
            let before = places(estimate.curve())?;
            Some(Change { to_slower, before, since: Box::new(estimate.seen().clone()) })
        });
    }

    /// Whether what has come since the change began is what came before, times a factor. If it is
    /// not, the next attempts are looked at by themselves: at first, only fast ones have ended.
    fn is_of_scale(&mut self, estimate: &Estimate) -> bool {
        let Some(change) = &mut self.change else { return false };
        let curve = estimate.curve_since(&change.since);
        if curve.weight() < SHAPE || estimate.weight() < KNOWN {
            return false;
        }
        let found = places(&curve).is_some_and(|now| change.is_of_scale(now));
        if !found {
            *change.since = estimate.seen().clone();
        }
        found
    }
}

impl Change {
    fn is_of_scale(&self, now: [f64; 3]) -> bool {
        let [low, middle, high] = [0, 1, 2].map(|place| now[place] / self.before[place]);
        let alike = low.max(middle).max(high) < ALIKE * low.min(middle).min(high);
        alike && if self.to_slower { middle >= FACTOR } else { middle <= 1.0 / FACTOR }
    }
}

fn places(curve: &Curve) -> Option<[f64; 3]> {
    let [low, middle, high] = PLACES.map(|chance| curve.exceeded_with(chance));
    Some([low?, middle?, high?])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::latency::Bucket;
    use crate::latency::recorder::Recorder;
    use crate::time::Moment;

    /// A learner's part of it, a look every 50 ms.
    struct Watch {
        recorder: Recorder,
        estimate: Estimate,
        signs: Signs,
        looks: u64,
    }

    impl Watch {
        /// One that has seen two thousand attempts of 3 to 12.9 ms.
        fn new() -> Self {
            let (recorder, estimate) = (Recorder::default(), Estimate::new());
            let mut watch = Self { recorder, estimate, signs: Signs::default(), looks: 0 };
            watch.looks(20, |ms| ms);
            watch
        }

        /// So many looks with a hundred attempts each, of latencies made from the usual ones. Says
        /// after how many of them everything is slow.
        fn looks(&mut self, looks: usize, latency: impl Fn(f64) -> f64) -> usize {
            (0..looks).filter(|_| self.look(&latency)).count()
        }

        fn look(&mut self, latency: impl Fn(f64) -> f64) -> bool {
            for attempt in 0..100 {
                let ms = latency(3.0 + f64::from(attempt) / 10.0);
                self.recorder.done(Bucket::of(Duration::from_secs_f64(ms / 1e3)));
            }
            self.looks += 1;
            let median = self.estimate.curve().exceeded_with(0.5).map(|nanos| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms")]
                Bucket::of_nanos(nanos as u64).index()
            });
            let now = Moment::ZERO.after(Duration::from_millis(50 * self.looks));
            let half_life = Duration::from_secs(2);
            let fresh = self.estimate.advance(&self.recorder, now, half_life, 1_000.0, median);
            median.is_some() && self.signs.look(fresh, &mut self.estimate)
        }

        fn median_ms(&self) -> f64 {
            self.estimate.curve().exceeded_with(0.5).unwrap() / 1e6
        }
    }

    #[test]
    fn where_all_take_thrice_as_long_the_past_is_forgotten() {
        let mut watch = Watch::new();
        assert_eq!(watch.looks(3, |ms| 3.0 * ms), 2, "slow until two hundred have shown the shape");
        assert!((watch.median_ms() / 24.0 - 1.0).abs() < 0.03, "{}", watch.median_ms());
        assert_eq!(watch.looks(20, |ms| 3.0 * ms), 0);
        // And on the way back, which nothing else would show.
        watch.looks(3, |ms| ms);
        assert!((watch.median_ms() / 8.0 - 1.0).abs() < 0.03, "{}", watch.median_ms());
    }

    #[test]
    fn where_all_wait_the_past_is_kept() {
        let mut watch = Watch::new();
        assert_eq!(watch.looks(10, |ms| ms + 30.0), 10);
        assert!(watch.estimate.weight() > 1_000.0);
        assert!(watch.median_ms() < 30.0, "{}", watch.median_ms());
    }

    #[test]
    fn a_little_slower_is_no_new_start() {
        let mut watch = Watch::new();
        assert!(watch.looks(5, |ms| 1.8 * ms) > 0);
        assert!(watch.median_ms() < 14.0, "{}", watch.median_ms());
    }

    /// After a queue has gone everything is fast, and the load may still be at its limit: nothing is
    /// forgotten that tells what hedges cost there.
    #[test]
    fn faster_is_a_new_start_only_after_slower_was() {
        let mut watch = Watch::new();
        assert_eq!(watch.looks(5, |ms| ms / 3.0), 0);
        assert!(watch.estimate.weight() > 1_500.0);
    }

    #[test]
    fn half_of_the_attempts_are_no_sign() {
        let mut watch = Watch::new();
        assert_eq!(watch.looks(20, |ms| if ms < 8.0 { ms } else { 3.0 * ms }), 0);
    }
}
