//! Counts that forget: by time, and never below a thousand calls.

use std::time::Duration;

use super::buckets::BUCKETS;
use super::curve::Curve;
use super::recorder::Totals;
use crate::time::Moment;

/// Weighted counts of finished and cut attempts, old ones weighing less.
pub(super) struct Estimate {
    done: Box<[f64; BUCKETS]>,
    cut: Box<[f64; BUCKETS]>,
    weight: f64,
    seen: Totals,
    last: Moment,
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
        Self {
            done: Box::new([0.0; BUCKETS]),
            cut: Box::new([0.0; BUCKETS]),
            weight: 0.0,
            seen: Totals::default(),
            last: Moment::ZERO,
        }
    }

    /// Ages what is known and adds what came since, and says how much of that was slower than
    /// `median` (a bucket's index).
    pub(super) fn advance(
        &mut self,
        totals: Totals,
        now: Moment,
        half_life: Duration,
        least: f64,
        median: Option<usize>,
    ) -> Fresh {
        let new = |now: u32, before: u32| f64::from(now.wrapping_sub(before));
        let mut fresh = Fresh::default();
        for index in 0..BUCKETS {
            fresh.attempts += new(totals.done[index], self.seen.done[index]);
            fresh.attempts += new(totals.cut[index], self.seen.cut[index]);
        }
        let keep = self.keep(fresh.attempts, now, half_life, least);
        for index in 0..BUCKETS {
            let done = new(totals.done[index], self.seen.done[index]);
            let cut = new(totals.cut[index], self.seen.cut[index]);
            self.done[index] = keep * self.done[index] + done;
            self.cut[index] = keep * self.cut[index] + cut;
            fresh.slower += cut;
            fresh.slower += match median.map(|median| index.cmp(&median)) {
                Some(std::cmp::Ordering::Greater) => done,
                Some(std::cmp::Ordering::Equal) => done / 2.0,
                _ => 0.0,
            };
        }
        self.weight = keep * self.weight + fresh.attempts;
        self.seen = totals;
        self.last = now;
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
    pub(super) fn seen(&self) -> &Totals {
        &self.seen
    }

    /// The curve of what has come since then.
    pub(super) fn curve_since(&self, then: &Totals) -> Curve {
        Curve::new(&since(&self.seen.done, &then.done), &since(&self.seen.cut, &then.cut))
    }

    /// Forgets what had come by then.
    pub(super) fn forget_before(&mut self, then: &Totals) {
        self.done = since(&self.seen.done, &then.done);
        self.cut = since(&self.seen.cut, &then.cut);
        self.weight = self.done.iter().chain(self.cut.iter()).sum();
    }

    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    pub(super) fn curve(&self) -> Curve {
        Curve::new(&self.done, &self.cut)
    }
}

/// What was counted since then.
fn since(now: &[u32; BUCKETS], then: &[u32; BUCKETS]) -> Box<[f64; BUCKETS]> {
    let mut counts = Box::new([0.0; BUCKETS]);
    for (count, (now, then)) in counts.iter_mut().zip(now.iter().zip(then)) {
        *count = f64::from(now.wrapping_sub(*then));
    }
    counts
}
