//! The best time and chance for one hedge under a given extra load.

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun 7.1.26, good to 1.5e-7.
    fn erf(x: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
        let poly = t
            * (0.254_829_592
                + t * (-0.284_496_736
                    + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
        (1.0 - poly * (-x * x).exp()).copysign(x)
    }

    /// W1: lognormal of mean 5 ms and standard deviation 2 ms, ten times that for one in twenty.
    fn w1(ms: f64) -> f64 {
        let variance = 1.16_f64.ln();
        let lognormal = |ms: f64| {
            if ms <= 0.0 {
                return 0.0;
            }
            let z = (ms.ln() - (5.0_f64.ln() - variance / 2.0)) / variance.sqrt();
            0.5 * (1.0 + erf(z / 2.0_f64.sqrt()))
        };
        0.95 * lognormal(ms) + 0.05 * lognormal(ms / 10.0)
    }

    fn curve() -> Curve {
        counted(w1)
    }

    /// The curve of a million latencies of this distribution.
    fn counted(ended_by_ms: impl Fn(f64) -> f64) -> Curve {
        let mut done = Box::new([0.0; BUCKETS]);
        for (index, slot) in done.iter_mut().enumerate() {
            let (lower, upper) = edges(Bucket::at(index));
            *slot = 1e6 * (ended_by_ms(upper / 1e6) - ended_by_ms(lower / 1e6));
        }
        Curve::new(&done, &Box::new([0.0; BUCKETS]))
    }

    /// Lognormal around 5 ms, and 200 ms more for this share.
    fn stalls(share: f64) -> Curve {
        let body = |ms: f64| {
            if ms <= 0.0 { 0.0 } else { 0.5 * (1.0 + erf((ms / 5.0).ln() / 0.35 / 2.0_f64.sqrt())) }
        };
        counted(|ms| (1.0 - share) * body(ms) + share * body(ms - 200.0))
    }

    fn ms(nanos: f64) -> f64 {
        nanos / 1e6
    }

    #[test]
    fn w1_the_curve_has_its_quantiles() {
        let curve = curve();
        for (chance, wanted) in
            [(0.5, 4.76), (0.1, 8.66), (0.05, 17.46), (0.01, 64.20), (0.001, 102.41)]
        {
            let value = ms(curve.exceeded_with(chance).unwrap());
            assert!((value / wanted - 1.0).abs() < 0.005, "{chance}: {value}");
        }
    }

    #[test]
    fn w1_r_the_optimum_for_p99() {
        let curve = curve();
        for (load, delay, probability, reached) in
            [(0.05, 12.43, 0.909, 20.46), (0.02, 40.02, 0.615, 48.75), (0.01, 46.42, 0.400, 55.82)]
        {
            let best = Reissue::solve(&curve, 0.99, load).unwrap();
            let said = format!("{load}: {best:?}");
            assert!((ms(best.reached) / reached - 1.0).abs() < 0.005, "{said}");
            // Delays are bucket edges, 3 % apart, and of those that end in one bucket the surest.
            assert!((ms(best.delay) / delay - 1.0).abs() < 0.05, "{said}");
            assert!((best.probability - probability).abs() < 0.04, "{said}");
        }
    }

    /// Two stalls in a hundred, a load of five: nearly the best p99 needs no coin. Where stalls are
    /// as many as hedges, the coin stays.
    #[test]
    fn the_surer_one_is_surer_and_hardly_later() {
        for (curve, load, least) in [
            (stalls(0.02), 0.05, 1.0),
            (stalls(0.01), 0.05, 1.0),
            (curve(), 0.05, 0.9),
            (curve(), 0.10, 1.0),
        ] {
            let best = Reissue::solve(&curve, 0.99, load).unwrap();
            let surer = best.surer(&curve, 0.99, load);
            let said = format!("{best:?} {surer:?}");
            assert!(surer.probability >= best.probability && surer.probability >= least, "{said}");
            assert!(
                surer.delay >= 0.97 * best.delay && surer.reached <= 1.021 * best.reached,
                "{said}"
            );
            let plan = Plan { curve: &curve, allowed: 0.01, load };
            let late = plan.late(surer.reached, surer.delay, surer.probability);
            assert!(late <= 0.01 + 1e-9, "{said}: {late}");
            let spent = surer.probability * curve.survival(surer.delay);
            assert!((spent / load - 1.0).abs() < 1e-6, "all of the load: {said}: {spent}");
        }
    }

    /// Eight stalls in a hundred, a load of five: the p99 stays among the stalls whatever is done, and
    /// only the delay before them helps the p95.
    #[test]
    fn where_the_target_gains_nothing_the_hedge_stays_early() {
        let curve = stalls(0.08);
        let best = Reissue::solve(&curve, 0.99, 0.05).unwrap();
        assert!(ms(best.delay) < 100.0, "{best:?}");
        assert_eq!(best.surer(&curve, 0.99, 0.05), best);
    }

    #[test]
    fn w1_r_the_optimum_for_p999_hedges_for_certain() {
        let curve = curve();
        for load in [0.05, 0.02, 0.01] {
            let best = Reissue::solve(&curve, 0.999, load).unwrap();
            assert!(best.probability > 0.98, "{load}: {best:?}");
        }
    }

    #[test]
    fn w1_at_ten_percent_both_rules_agree() {
        let best = Reissue::solve(&curve(), 0.99, 0.10).unwrap();
        assert!((ms(best.reached) - 15.53).abs() < 0.1, "{best:?}");
    }

    /// What `best_edges` is a quick way to: every delay with every end.
    fn by_trying_all(plan: &Plan<'_>, without: f64) -> Option<Reissue> {
        let last = Bucket::of_nanos(ceil(without)).index();
        let late = |end: usize, index: usize| {
            let (end_at, delay) = (edges(Bucket::at(end)).1, edges(Bucket::at(index)).1);
            let probability = (plan.load / plan.curve.at_upper(index)).min(1.0);
            let answered = 1.0 - plan.curve.survival(end_at - delay);
            plan.curve.at_upper(end) * (1.0 - probability * answered)
        };
        (1..=last).find_map(|end| {
            let each = (0..end).map(|index| (late(end, index), index));
            let enough = each.filter(|(chance, _)| *chance <= plan.allowed);
            let (chance, index) = enough.min_by(|a, b| a.0.total_cmp(&b.0))?;
            Some(plan.inside(edges(Bucket::at(index)).1, end, chance))
        })
    }

    #[test]
    fn the_quick_way_finds_what_trying_everything_finds() {
        let mut seed = 7_u64;
        let mut below = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9E37_79B9);
            (seed >> 33) % most
        };
        let mut gains = 0;
        for round in 0..60 {
            let (mut done, mut cut) = (Box::new([0.0; BUCKETS]), Box::new([0.0; BUCKETS]));
            for _ in 0..=below(6) {
                let (start, width) = (100 + below(200), 1 + below(60));
                for _ in 0..below(200) {
                    let index = usize::try_from(start + below(width)).unwrap();
                    let weight = 1.0 + f64::from(u32::try_from(below(1_000)).unwrap()) / 7.0;
                    if below(8) == 0 { cut[index] += weight } else { done[index] += weight }
                }
            }
            let curve = Curve::new(&done, &cut);
            for (allowed, load) in [(0.1, 0.05), (0.01, 0.05), (0.01, 0.3), (0.001, 0.02)] {
                let plan = Plan { curve: &curve, allowed, load };
                let Some(without) = curve.exceeded_with(allowed) else { continue };
                let best = plan.best_edges(without);
                assert_eq!(best, by_trying_all(&plan, without), "{round}, {allowed}, {load}");
                gains += u32::from(best.is_some_and(|best| best.reached < without));
            }
        }
        assert!(gains > 60, "{gains}");
    }

    #[test]
    fn nothing_to_gain_gives_nothing() {
        let mut done = Box::new([0.0; BUCKETS]);
        done[Bucket::of_nanos(5_000_000).index()] = 1_000.0;
        let curve = Curve::new(&done, &Box::new([0.0; BUCKETS]));
        assert_eq!(Reissue::solve(&curve, 0.99, 0.05), None);
    }
}
