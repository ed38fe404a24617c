//! A learner that goes on with what another one knows.

use super::{Learner, Learning};
use crate::sync::Ordering;

impl Learner {
    /// A learner with settings of its own that knows what `earlier` knows: its latencies, its win
    /// rate, and whether everything is slow. It decides at once, by its own settings, unless they
    /// ask for more evidence than there is.
    ///
    /// Both count time from the same moment. What is still recorded with `earlier` stays there, and
    /// so do the learners below it: keys are told apart anew.
    pub fn successor(earlier: &Self, learning: Learning) -> Self {
        let successor = Self::new(learning);
        let known = earlier.state.between().estimate.carried_over();
        for (own, earlier) in
            [(&successor.median, &earlier.median), (&successor.wins, &earlier.wins)]
        {
            own.store(earlier.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        successor.slow.store(earlier.slow.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(plan) = successor.decide(known.curve(), known.weight()) {
            successor.plan.store(plan.pack(), Ordering::Relaxed);
        }
        successor.state.between().estimate = known;
        successor
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Record, Rule};
    use super::*;
    use crate::latency::Percentile;
    use crate::time::Moment;

    /// One that has seen two thousand calls of 1 to 100 ms.
    fn experienced() -> Learner {
        let learner = Learner::new(Learning::default());
        for call in 0..2_000_u64 {
            learner.record(Record::Finished(Duration::from_millis(1 + call % 100)));
        }
        learner.tick(Moment::from_millis(100));
        learner
    }

    #[test]
    fn it_decides_at_once_by_its_own_settings() {
        let rule = Rule::Percentile(Percentile::P90);
        let learning = Learning { rule, ..Learning::default() };
        let successor = Learner::successor(&experienced(), learning);
        let delay = successor.plan().delay.unwrap().as_secs_f64();
        assert!((delay / 0.090 - 1.0).abs() < 0.03, "{delay}");
        assert_eq!(successor.learning(), learning);
    }

    #[test]
    fn it_goes_on_from_what_is_known() {
        let earlier = experienced();
        let successor = Learner::successor(&earlier, Learning::default());
        assert_eq!(successor.plan(), earlier.plan());
        assert_eq!(successor.explain().median, earlier.explain().median);
        // Neither forgets, and nothing is counted twice.
        successor.record(Record::Finished(Duration::from_millis(50)));
        successor.tick(Moment::from_millis(200));
        assert_eq!(successor.explain().median, earlier.explain().median);
    }

    #[test]
    fn nothing_known_is_nothing_taken_over() {
        let initial = Some(Duration::from_millis(100));
        let learning = Learning { initial, ..Learning::default() };
        let successor = Learner::successor(&Learner::new(Learning::default()), learning);
        assert_eq!(successor.plan(), Learner::new(learning).plan());
    }
}
