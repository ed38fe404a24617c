//! What a plan is to bring, by the curve that it was made from.

use std::fmt;
use std::time::Duration;

use super::buckets::{BUCKETS, Bucket};
use super::curve::{Curve, edges};
use super::learning::rounded;
use super::percentile::Percentile;
use super::plan::Plan;

/// What the learned plan is predicted to bring: one hedge a call, independent of its primary, and
/// a backend that does not get slower by the hedges.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Prediction {
    /// What is predicted: the target of the plan, or p99 where its delay is a percentile.
    pub percentile: Percentile,
    /// That percentile of calls without hedges, to 3 %.
    pub without: Duration,
    /// The same with hedges.
    pub with: Duration,
    /// Hedges for each call, 0.05 for one in twenty: at most the load that the learner was given.
    pub extra_load: f64,
}

impl Prediction {
    /// `None` if there is no plan yet, or if the curve does not reach the percentile.
    pub(super) fn of(
        curve: &Curve,
        plan: &Plan,
        percentile: Percentile,
        load: f64,
    ) -> Option<Self> {
        let allowed = 1.0 - percentile.share();
        let hedged = Hedged { curve, plan, delay: nanos(plan.delay?) };
        let without = curve.exceeded_with(allowed)?;
        Some(Self {
            percentile,
            without: duration(without),
            with: duration(hedged.exceeded_with(allowed, without)),
            extra_load: hedged.extra_load().min(load),
        })
    }

    /// Whether the percentile is to fall at all: by more than what one bucket cannot tell.
    pub fn gains(&self) -> bool {
        self.with < self.without.mul_f64(1.0 - 1.0 / 32.0)
    }
}

impl fmt::Display for Prediction {
    /// In half a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percentile, without, with, extra_load } = self;
        let without = rounded(*without);
        if self.gains() {
            let with = rounded(*with);
            let percent = extra_load * 100.0;
            write!(f, "{percentile} is to fall from {without} to {with}")?;
            write!(f, " for {percent:.1} % more requests")
        } else {
            write!(f, "{percentile} is not to fall from {without}")
        }
    }
}

/// Calls under a plan.
struct Hedged<'a> {
    curve: &'a Curve,
    plan: &'a Plan,
    delay: f64,
}

impl Hedged<'_> {
    /// The chance that a call takes longer than this: its primary does, and whichever hedge it got
    /// has not answered either.
    fn survival(&self, nanos: f64) -> f64 {
        let won = self.plan.probability;
        let unanswered = |delay: f64| self.curve.survival(nanos - delay);
        let lost = self.plan.backstop.map_or(1.0, |backstop| unanswered(self::nanos(backstop)));
        self.curve.survival(nanos) * (won * unanswered(self.delay) + (1.0 - won) * lost)
    }

    /// The latency that a call exceeds with this chance, between nothing and that without hedges.
    fn exceeded_with(&self, chance: f64, without: f64) -> f64 {
        let upper = |index| edges(Bucket::at(index)).1;
        // Survival only falls, so the first bucket that is low enough can be halved towards.
        let (mut low, mut high) = (0, BUCKETS - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.survival(upper(middle)) > chance {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (start, end) = edges(Bucket::at(low));
        let (before, after) = (self.survival(start), self.survival(end));
        let part = if before > after { (before - chance) / (before - after) } else { 1.0 };
        (start + (end - start) * part.clamp(0.0, 1.0)).min(without)
    }

    fn extra_load(&self) -> f64 {
        let won = self.plan.probability;
        let backstop = self.plan.backstop.map_or(0.0, |delay| self.curve.survival(nanos(delay)));
        won * self.curve.survival(self.delay) + (1.0 - won) * backstop
    }
}

fn nanos(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e9
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn duration(nanos: f64) -> Duration {
    Duration::from_nanos(nanos as u64)
}
