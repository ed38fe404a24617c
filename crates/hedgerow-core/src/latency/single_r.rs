//! The best time and chance for one hedge under a given extra load.

#[cfg(test)]
mod tests;

use super::buckets::{BUCKETS, Bucket};
use super::curve::{Curve, edges};

/// How much later than at best the target share may end, for a surer hedge.
const LATER: f64 = 0.02;
/// A hedge is worth it where it makes the target share end so much sooner.
const GAIN: f64 = 0.1;
/// Less than this is what one bucket cannot tell.
const LEAST_GAIN: f64 = 1.0 / 32.0;
/// What is aimed at where the load cannot bring the target down: stalls that are more frequent than
/// it can pay for.
const LOWER_TARGETS: [f64; 4] = [0.98, 0.95, 0.90, 0.75];

/// A hedge that starts `delay` after its primary with probability `probability`.
///
/// Hedging once, at one time, with one probability is optimal among all ways to spend a given
/// extra load on independent attempts. Waiting for the percentile whose tail equals the load
/// (probability 1) is the special case that people know; it is worse where the stalls are more
/// frequent than the load allows, because it then waits inside the stall.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reissue {
    /// Nanoseconds from the start of the primary.
    pub delay: f64,
    /// The chance that a call which is still pending by then is hedged.
    pub probability: f64,
    /// The latency that the target share of calls stays under, predicted, in nanoseconds.
    pub reached: f64,
}

impl Reissue {
    /// The reissue that makes the `target` share of calls (0.99, say) end soonest, with hedges for
    /// at most `load` of them. `None` if no hedge makes it sooner than no hedge, or if the curve
    /// does not reach the target.
    pub fn solve(curve: &Curve, target: f64, load: f64) -> Option<Self> {
        let allowed = 1.0 - target;
        let without = curve.exceeded_with(allowed)?;
        let plan = Plan { curve, allowed, load };
        let best = plan.best_edges(without)?;
        (best.reached < without).then_some(best)
    }

    /// What to do for the `target` share of calls with hedges for at most `load` of them: the
    /// [surest](Reissue::surer) of the best reissues, if hedging brings the target down by a tenth.
    /// Where the load cannot do that, it is spent on the highest lower percentile for which it can;
    /// `None` if there is none, and nothing to be gained for the target either.
    ///
    /// ```
    /// use hedgerow_core::latency::{BUCKETS, Bucket, Curve, Reissue};
    ///
    /// // One call in eight stalls for a second, exactly: p99 is a second, whatever 5 % can do.
    /// let mut done = Box::new([0.0; BUCKETS]);
    /// done[Bucket::of_nanos(5_000_000).index()] = 8_800.0;
    /// done[Bucket::of_nanos(1_000_000_000).index()] = 1_200.0;
    /// let curve = Curve::new(&done, &Box::new([0.0; BUCKETS]));
    /// let plan = Reissue::best(&curve, 0.99, 0.05).expect("p90 can be brought down");
    /// assert!(plan.delay < 10e6 && plan.reached < 20e6);
    /// ```
    pub fn best(curve: &Curve, target: f64, load: f64) -> Option<Self> {
        let solve = |target: f64| {
            let without = curve.exceeded_with(1.0 - target)?;
            let best = Self::solve(curve, target, load)?;
            Some((best, 1.0 - best.reached / without))
        };
        let (aimed_at, gain) = match solve(target) {
            Some(solved) => solved,
            // The curve says nothing of the target: what it says of others is less.
            None if curve.lowest() > 1.0 - target => return None,
            None => (Self { delay: 0.0, probability: 0.0, reached: 0.0 }, 0.0),
        };
        if gain >= GAIN {
            return Some(aimed_at.surer(curve, target, load));
        }
        let lower = LOWER_TARGETS.into_iter().filter(|lower| *lower < target).find_map(|lower| {
            let (best, gain) = solve(lower)?;
            (gain >= GAIN).then(|| best.surer(curve, lower, load))
        });
        lower.or_else(|| (gain >= LEAST_GAIN).then_some(aimed_at))
    }

    /// The surest reissue among those that are hardly worse than this one, which solves the same:
    /// of all that make the target share end at most 2 % later, the one with the largest
    /// probability. This one itself where it gains less than a tenth: then all are alike to the
    /// target, and an early hedge is worth more to the calls below it.
    ///
    /// The target hardly minds who loses the coin, but those calls make up the percentiles beyond
    /// it: hedging nine in ten instead of all of them leaves a tenth of the stalls as they are.
    #[must_use]
    pub fn surer(self, curve: &Curve, target: f64, load: f64) -> Self {
        let plan = Plan { curve, allowed: 1.0 - target, load };
        let without = curve.exceeded_with(plan.allowed).unwrap_or(0.0);
        if self.reached > without * (1.0 - GAIN) {
            return self;
        }
        let reached = self.reached * (1.0 + LATER);
        let in_time = |delay: f64| {
            let late = plan.late(reached, delay, plan.probability(delay));
            delay < reached && late <= plan.allowed
        };
        // A later delay is surer, until the load pays for every call that is pending by then.
        let certain = curve.exceeded_with(load);
        if let Some(delay) = certain.filter(|delay| in_time(*delay)) {
            return Self { delay, probability: 1.0, reached };
        }
        let place = |nanos: f64| Bucket::of_nanos(ceil(nanos)).index();
        let between = place(self.delay)..place(certain.unwrap_or(reached).min(reached));
        let mut later = between.rev().map(|index| edges(Bucket::at(index)).1);
        match later.find(|delay| in_time(*delay)) {
            Some(delay) => Self { delay, probability: plan.probability(delay), reached },
            None => self,
        }
    }
}

/// What is being solved.
struct Plan<'a> {
    curve: &'a Curve,
    /// The share of calls that may be late.
    allowed: f64,
    load: f64,
}

impl Plan<'_> {
    /// The largest probability that the load allows at this delay.
    fn probability(&self, delay: f64) -> f64 {
        (self.load / self.curve.survival(delay)).min(1.0)
    }

    /// The chance that a call takes longer than `nanos`.
    fn late(&self, nanos: f64, delay: f64, probability: f64) -> f64 {
        let answered = 1.0 - self.curve.survival(nanos - delay);
        self.curve.survival(nanos) * (1.0 - probability * answered)
    }

    /// The best delay among bucket edges: of those that reach the soonest end the surest.
    fn best_edges(&self, without: f64) -> Option<Reissue> {
        let (first, end) = self.soonest(Bucket::of_nanos(ceil(without)).index());
        let (delay, at_end) = self.surest(first, end)?;
        Some(self.inside(delay, end, at_end))
    }

    /// The soonest bucket by whose upper edge enough calls can have ended, not later than `end`;
    /// and the first bucket whose upper edge is a delay that reaches it.
    ///
    /// The end only ever walks down: success is monotone in it, so that all delays together take
    /// one pass.
    fn soonest(&self, mut end: usize) -> (usize, usize) {
        let mut first = 0;
        for index in self.first_to_help(end)..BUCKETS {
            if index >= end {
                break;
            }
            if self.may_differ(index) {
                while end > index + 1 && self.late_at(end - 1, index) <= self.allowed {
                    (first, end) = (index, end - 1);
                }
            }
        }
        (first, end)
    }

    /// The first delay after which hedges could bring the end down if they answered at once. Before
    /// it so many calls are pending that hardly one of them may be hedged.
    fn first_to_help(&self, end: usize) -> usize {
        let late = end.checked_sub(1).map_or(0.0, |sooner| self.curve.at_upper(sooner));
        let least = 1.0 - self.allowed / late;
        // A hair more, because the very comparison is made by `late_at`.
        if least > 0.0 { self.curve.first_below(self.load / least * (1.0 + 1e-9)) } else { 0 }
    }

    /// Among delays from `first` on that reach `end` the surest, and the chance to be late.
    fn surest(&self, first: usize, end: usize) -> Option<(f64, f64)> {
        let mut best: Option<(f64, f64)> = None;
        for index in (first..end).filter(|index| self.may_differ(*index)) {
            let chance = self.late_at(end, index);
            if chance <= self.allowed && best.is_none_or(|(_, least)| chance < least) {
                best = Some((edges(Bucket::at(index)).1, chance));
            }
        }
        best
    }

    /// Whether this delay can be better than the one before it. Where nothing ends in between, it
    /// can not: it hedges the same calls, later.
    fn may_differ(&self, index: usize) -> bool {
        index == 0 || !self.curve.is_level(index)
    }

    /// The chance that a call has not ended at the upper edge of bucket `end` if it is hedged at
    /// the upper edge of bucket `delay`.
    fn late_at(&self, end: usize, delay: usize) -> f64 {
        let probability = (self.load / self.curve.at_upper(delay)).min(1.0);
        // Not even hedges that answer at once would do: most short delays end here.
        let at_once = self.curve.at_upper(end) * (1.0 - probability);
        if at_once > self.allowed {
            return at_once;
        }
        let since = edges(Bucket::at(end)).1 - edges(Bucket::at(delay)).1;
        let answered = 1.0 - self.curve.survival(since);
        self.curve.at_upper(end) * (1.0 - probability * answered)
    }

    /// Where inside its bucket the end lies.
    fn inside(&self, delay: f64, end: usize, at_end: f64) -> Reissue {
        let probability = self.probability(delay);
        let (lower, upper) = edges(Bucket::at(end));
        let at_start = self.late(lower, delay, probability);
        let part =
            if at_start > at_end { (at_start - self.allowed) / (at_start - at_end) } else { 1.0 };
        let reached = lower + (upper - lower) * part.clamp(0.0, 1.0);
        Reissue { delay, probability, reached }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn ceil(nanos: f64) -> u64 {
    nanos.ceil().max(0.0) as u64
}
