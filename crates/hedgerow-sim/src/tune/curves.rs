//! The curves behind the advice, for those who want to see them.

use super::advice::{Advice, Choice};
use super::curve::FineCurve;
use super::decide::{Question, choose};
use super::latencies::{Latencies, real};

/// How many points a curve has.
const POINTS: i32 = 240;
/// The chance of the latency that the curves begin at.
const FIRST: f64 = 0.98;
/// Fewer calls than this are no tail but an accident.
const LEAST: f64 = 3.0;
/// The extra loads of the trade-off, from and to, and how many there are.
const LOADS: (f64, f64, i32) = (0.002, 0.5, 36);

/// What a page about an advice draws.
#[derive(Clone, Debug)]
pub struct Curves {
    /// Latencies in nanoseconds, and how likely a call is to exceed them, without hedging and with
    /// the plan.
    pub survival: Vec<(f64, f64, f64)>,
    /// The best plan for each extra load from 0.2 to 50 %.
    pub trade: Vec<Choice>,
}

/// The curves behind an advice.
pub fn curves(latencies: &Latencies, question: &Question, advice: &Advice) -> Curves {
    let curve = FineCurve::new(latencies);
    let plan = advice.verdict.as_ref().ok();
    let last = (LEAST / real(latencies.count().max(1))).min(FIRST / 2.0);
    let ends = [FIRST, last].map(|chance| curve.exceeded_with(chance).max(1.0));
    let survival = steps(ends[0], ends[1], POINTS).map(|nanos| {
        let without = curve.survival(nanos);
        (nanos, without, plan.map_or(without, |plan| curve.late(nanos, plan)))
    });
    let (from, to, count) = LOADS;
    let loads: Vec<f64> = steps(from, to, count).collect();
    Curves { survival: survival.collect(), trade: choose(latencies, question, &loads) }
}

/// Numbers at equal ratios.
fn steps(from: f64, to: f64, count: i32) -> impl Iterator<Item = f64> {
    let ratio = to / from;
    (0..count).map(move |step| from * ratio.powf(f64::from(step) / f64::from(count - 1)))
}
