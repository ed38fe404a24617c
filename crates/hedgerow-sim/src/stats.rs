//! What came out of a run.

use crate::histogram::Histogram;

/// What came of the requests of one step, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How long requests took.
    pub latency: Histogram,
    /// Requests that completed before the grace of their step was over.
    pub in_time: u64,
    /// Calls: as many as requests, unless requests fan out.
    pub calls: u64,
    /// Hedges that started.
    pub hedges: u64,
    /// Calls that a hedge answered.
    pub won: u64,
    /// Calls in which a due hedge was refused, by the budget or by another gate.
    pub refused: u64,
    /// The learned delay, before any bound, at the end of each call; empty where none was learned.
    pub learned: Histogram,
}

impl Stats {
    /// Requests that arrived. Each completed, sooner or later.
    pub fn requests(&self) -> u64 {
        self.latency.count()
    }

    /// Hedges for each call.
    pub fn extra_load(&self) -> f64 {
        ratio(self.hedges, self.calls)
    }

    /// The share of the hedges that answered their call.
    pub fn win_rate(&self) -> f64 {
        ratio(self.won, self.hedges)
    }

    /// The share of the requests that completed before the grace of their step was over.
    pub fn completed(&self) -> f64 {
        ratio(self.in_time, self.requests())
    }

    /// Adds what came of others.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.in_time += other.in_time;
        self.calls += other.calls;
        self.hedges += other.hedges;
        self.won += other.won;
        self.refused += other.refused;
        self.learned.merge(&other.learned);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What came out of one run, or of several that were merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Step by step; a request belongs to the step in which it arrived.
    pub steps: Vec<Stats>,
    /// How many events happened: arrivals, ends of attempts, timers, cancellations.
    pub events: u64,
}

impl Outcome {
    pub(crate) fn new(steps: usize, exact: bool) -> Self {
        let stats = || Stats {
            latency: if exact { Histogram::exact() } else { Histogram::default() },
            ..Stats::default()
        };
        Self { steps: (0..steps).map(|_| stats()).collect(), events: 0 }
    }

    /// All steps as one.
    pub fn total(&self) -> Stats {
        let mut steps = self.steps.iter();
        let mut total = steps.next().cloned().unwrap_or_default();
        steps.for_each(|step| total.merge(step));
        total
    }

    /// Adds what came out of another run of the same model. The order does not matter.
    pub fn merge(&mut self, other: &Self) {
        self.events += other.events;
        for (index, theirs) in other.steps.iter().enumerate() {
            match self.steps.get_mut(index) {
                Some(mine) => mine.merge(theirs),
                None => self.steps.push(theirs.clone()),
            }
        }
    }
}
