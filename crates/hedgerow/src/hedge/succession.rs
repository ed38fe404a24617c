//! A policy that goes on where another one was.

use std::sync::Arc;

use hedgerow_core::Observer;
use hedgerow_core::latency::Learner;

use super::Hedge;
use crate::clock::Time;

impl Hedge {
    /// The same policy, going on with what `earlier` has come to know.
    ///
    /// | what | goes on | begins anew |
    /// |---|---|---|
    /// | the learned latencies | if both learn; the delay is chosen at once by the new settings | otherwise; and so do keys, which follow the whole policy at first |
    /// | the budget, with what is saved up | if both have the same `max_extra_load` | otherwise, with nothing saved up |
    /// | the quiet that a target asked for | if both keep quiet after a pushback | otherwise |
    /// | observers, the clock or timer, the bound on abandoned attempts | if this policy has none of its own | otherwise |
    ///
    /// So a policy from a file goes on being watched as the one before was. Calls under way stay
    /// with `earlier`. The gauges of metrics that go on tell of the learner and the budget that they
    /// were made for: make new ones where they matter.
    ///
    /// ```
    /// use hedgerow::Hedge;
    ///
    /// let hedge = Hedge::adaptive();
    /// let bolder = Hedge::adaptive().max_extra_load(0.1).taking_over(&hedge);
    /// ```
    pub fn taking_over(mut self, earlier: &Self) -> Self {
        if let (Some(own), Some(earlier)) = (self.learner(), earlier.learner()) {
            let successor = Learner::successor(earlier, own.learning());
            self.policy.learner = Some(Arc::new(successor));
        }
        if self.load.is_some() && self.load == earlier.load {
            self.policy.budget.clone_from(&earlier.policy.budget);
        }
        if self.policy.quiet.is_some() && earlier.policy.quiet.is_some() {
            self.policy.quiet.clone_from(&earlier.policy.quiet);
        }
        if self.policy.observer.is_none() {
            self.policy.observer.clone_from(&earlier.policy.observer);
        }
        if self.time.is_default() {
            self.time = earlier.time.clone();
        }
        if self.abandoned.is_none() {
            self.abandoned.clone_from(&earlier.abandoned);
        }
        // What they know counts from the same moment.
        if earlier.epoch.is_some() {
            self.epoch.clone_from(&earlier.epoch);
        }
        self.derived()
    }

    /// The same policy with these in place of whatever it has.
    #[cfg_attr(not(feature = "pipeline"), expect(dead_code, reason = "for pipelines"))]
    pub(crate) fn observed_by(mut self, observer: Option<Arc<dyn Observer>>, time: Time) -> Self {
        (self.policy.observer, self.time) = (observer, time);
        self.derived()
    }
}
