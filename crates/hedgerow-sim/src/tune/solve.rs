//! When to hedge and how often, found coarsely by the core and then refined.

use hedgerow_core::latency::{BUCKETS, Bucket, Curve, Reissue};

use super::curve::FineCurve;

/// How far around the core's delay a better one is looked for: its buckets are 3 % wide, and of
/// those that reach the same end it takes the surest.
const REACH: f64 = 0.12;
/// How many delays are tried on each side.
const TRIES: i32 = 96;
/// Ends that differ by less than this are the same: where the optimum is flat, the middle of the
/// flat part depends less on chance than its lowest point.
const FLAT: f64 = 1e-3;

/// A hedge that starts `delay` after its primary with probability `probability`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Nanoseconds from the start of the primary.
    pub delay: f64,
    /// The chance that a call which is still pending by then is hedged.
    pub probability: f64,
    /// Hedges for each call.
    pub extra_load: f64,
}

impl Plan {
    /// The most that this load allows at this delay.
    fn at(curve: &FineCurve, delay: f64, load: f64) -> Self {
        let pending = curve.survival(delay);
        let probability = if pending > load { load / pending } else { 1.0 };
        Self { delay, probability, extra_load: probability * pending }
    }
}

/// The plan that makes all but the share `allowed` of calls end soonest, with hedges for at most
/// `load` of them. None if no hedge makes it sooner.
pub(super) fn solve(curve: &FineCurve, coarse: &Curve, allowed: f64, load: f64) -> Option<Plan> {
    let found = Reissue::solve(coarse, 1.0 - allowed, load)?;
    let tried: Vec<(Plan, f64)> = (-TRIES..=TRIES)
        .map(|step| {
            let delay = found.delay * (1.0 + REACH * f64::from(step) / f64::from(TRIES));
            let plan = Plan::at(curve, delay, load);
            (plan, curve.hedged(allowed, &plan))
        })
        .collect();
    let (index, end) =
        tried.iter().map(|(_, end)| *end).enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let flat = |(_, other): &&(Plan, f64)| *other <= end * (1.0 + FLAT);
    let first = index - tried[..index].iter().rev().take_while(flat).count();
    let last = index + tried[index + 1..].iter().take_while(flat).count();
    let middle = f64::midpoint(tried[first].0.delay, tried[last].0.delay);
    let plan = Plan::at(curve, middle, load);
    (curve.hedged(allowed, &plan) < curve.exceeded_with(allowed)).then_some(plan)
}

/// The core's curve of counts in fine buckets.
pub(super) fn coarse(buckets: impl Iterator<Item = (f64, f64, f64)>) -> Curve {
    let mut done = Box::new([0.0; BUCKETS]);
    for (lower, upper, count) in buckets {
        // Fine buckets lie inside coarse ones: both are made of the leading bits.
        done[Bucket::of_nanos(nanos(f64::midpoint(lower, upper))).index()] += count;
    }
    Curve::new(&done, &Box::new([0.0; BUCKETS]))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn nanos(real: f64) -> u64 {
    real.max(0.0) as u64
}
