//! Counts that forget: by time, and never below a thousand calls.

use std::ops::Range;
use std::time::Duration;

use super::buckets::BUCKETS;
use super::curve::Curve;
use super::recorder::{Column, Counts, Recorder};
use crate::time::Moment;

/// A bucket that weighs less has been forgotten. (Halved for ever, its weight would end among the
/// numbers that are slow to reckon with.)
const FORGOTTEN: f64 = 1e-12;

/// Weighted counts of finished and cut attempts, old ones weighing less.
pub(super) struct Estimate {
    done: Box<[f64; BUCKETS]>,
    cut: Box<[f64; BUCKETS]>,
    weight: f64,
    seen: Box<Counts>,
    last: Moment,
    curve: Curve,
}

/// What came since the last look.
#[derive(Clone, Copy, Default)]
pub(super) struct Fresh {
    /// Attempts, finished or cut.
    pub(super) attempts: f64,
    /// Those that were slower than a bucket; of that bucket itself, half.
    pub(super) slower: f64,
}

impl Estimate {
    pub(super) fn new() -> Self {
        let (done, cut) = (Box::new([0.0; BUCKETS]), Box::new([0.0; BUCKETS]));
        let curve = Curve::new(&done, &cut);
        let seen = Box::new(Counts::NONE);
        Self { done, cut, weight: 0.0, seen, last: Moment::ZERO, curve }
    }

    /// Ages what is known and adds what came since, and says how much of that was slower than
    /// `median` (a bucket's index).
    pub(super) fn advance(
        &mut self,
        recorder: &Recorder,
        now: Moment,
        half_life: Duration,
        least: f64,
        median: Option<usize>,
    ) -> Fresh {
        let (counts, used) = recorder.since(&mut self.seen);
        let fresh = Fresh::of(&counts, used.clone(), median);
        let keep = self.keep(fresh.attempts, now, half_life, least);
        age(&mut self.done[used.clone()], &counts.done.0[used.clone()], keep);
        age(&mut self.cut[used.clone()], &counts.cut.0[used.clone()], keep);
        self.weight = keep * self.weight + fresh.attempts;
        self.last = now;
        self.curve.redraw(&self.done, &self.cut, self.weight, used);
        fresh
    }

    /// The factor by which old counts weigh less now: half for each half-life, but not so little
    /// that less than `least` calls' worth is left.
    fn keep(&self, fresh: f64, now: Moment, half_life: Duration, least: f64) -> f64 {
        let lives = now.since(self.last).as_secs_f64() / half_life.as_secs_f64().max(1e-9);
        let by_time = (-lives).exp2();
        let by_calls = if self.weight > 0.0 { (least - fresh) / self.weight } else { 1.0 };
        by_time.max(by_calls).clamp(0.0, 1.0)
    }

    /// All that has come so far.
    pub(super) fn seen(&self) -> &Counts {
        &self.seen
    }

    /// The curve of what has come since then.
    pub(super) fn curve_since(&self, then: &Counts) -> Curve {
        Curve::new(&since(&self.seen.done, &then.done), &since(&self.seen.cut, &then.cut))
    }

    /// Forgets what had come by then.
    pub(super) fn forget_before(&mut self, then: &Counts) {
        self.done = since(&self.seen.done, &then.done);
        self.cut = since(&self.seen.cut, &then.cut);
        self.weight = self.done.iter().chain(self.cut.iter()).sum();
        self.curve.redraw(&self.done, &self.cut, self.weight, 0..BUCKETS);
    }

    /// The same knowledge, for counts that begin at nothing.
    pub(super) fn carried_over(&self) -> Self {
        let (done, cut, curve) = (self.done.clone(), self.cut.clone(), self.curve.clone());
        let seen = Box::new(Counts::NONE);
        Self { done, cut, weight: self.weight, seen, last: self.last, curve }
    }

    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// The curve of the counts at the last advance.
    pub(super) fn curve(&self) -> &Curve {
        &self.curve
    }
}

fn age(weights: &mut [f64], fresh: &[u32], keep: f64) {
    for (weight, fresh) in weights.iter_mut().zip(fresh) {
        let aged = keep * *weight + f64::from(*fresh);
        *weight = if aged < FORGOTTEN { 0.0 } else { aged };
    }
}

impl Fresh {
    fn of(counts: &Counts, used: Range<usize>, median: Option<usize>) -> Self {
        let (done, cut) = (&counts.done.0, &counts.cut.0);
        let cuts = sum(&cut[used.clone()]);
        let attempts = sum(&done[used.clone()]) + cuts;
        let slower = median.map_or(0.0, |median| {
            let above = (median + 1).clamp(used.start, used.end);
            sum(&done[above..used.end]) + f64::from(done[median]) / 2.0
        });
        Self { attempts, slower: cuts + slower }
    }
}

#[expect(clippy::cast_precision_loss, reason = "attempts of a few moments")]
fn sum(counts: &[u32]) -> f64 {
    counts.iter().map(|count| u64::from(*count)).sum::<u64>() as f64
}

/// What was counted since then.
fn since(now: &Column, then: &Column) -> Box<[f64; BUCKETS]> {
    let mut counts = Box::new([0.0; BUCKETS]);
    for (count, (now, then)) in counts.iter_mut().zip(now.0.iter().zip(&then.0)) {
        *count = f64::from(now.wrapping_sub(*then));
    }
    counts
}
