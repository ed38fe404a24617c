//! Calls that cannot get in each other's way, one after the other: no queue of events is needed.

use hedgerow_core::{Call, Losers, MOST_HEDGES, Moment, Verdict};

use crate::flight::{Copies, World, obey};
use crate::load::Arrival;
use crate::model::Model;
use crate::run::Progress;
use crate::servers::{OnCancel, Picker};
use crate::stats::Outcome;
use crate::strategy::Strategy;
use crate::work::Draws;

/// Runs all calls by themselves. Gives the very figures that the other engine would.
pub(crate) fn run(model: &Model, strategy: &Strategy, seed: u64, progress: &Progress) -> Outcome {
    let mut outcome = model.outcome();
    let mut call = 0;
    for arrival in model.load.requests(seed) {
        let stats = &mut outcome.steps[arrival.step];
        outcome.events += 1;
        let mut slowest = 0;
        for _ in 0..model.load.calls_per_request() {
            let draws = Draws::new(&model.work, seed, call);
            let mut alone = Alone::new(model, strategy, draws, arrival);
            let done =
                alone.fly(strategy, Call::new(strategy.policy(), strategy.terms(seed, call)));
            slowest = slowest.max(alone.now);
            outcome.events += alone.events;
            stats.count_call(&done);
            call += 1;
        }
        let end = arrival.at.saturating_add(slowest);
        stats.count_request(slowest, end <= arrival.late);
        progress.one_more(stats.requests());
    }
    outcome
}

/// One call; its times count from its own start.
struct Alone<'a> {
    model: &'a Model,
    copies: Copies,
    arrival: Arrival,
    now: u64,
    ends: [u64; MOST_HEDGES as usize + 1],
    joins: bool,
    events: u64,
}

impl<'a> Alone<'a> {
    #[inline]
    fn new(model: &'a Model, strategy: &Strategy, draws: Draws, arrival: Arrival) -> Self {
        Self {
            model,
            copies: Copies::new(draws, arrival.step),
            arrival,
            now: 0,
            ends: [u64::MAX; MOST_HEDGES as usize + 1],
            joins: matches!(strategy.policy().losers, Losers::Join { .. }),
            events: 0,
        }
    }

    fn fly(&mut self, strategy: &Strategy, mut call: Call) -> Call {
        while let Some(until) = obey(&mut call, strategy, Moment::from_nanos(self.now), self) {
            self.events += 1;
            match self.next_end() {
                Some((attempt, end)) if end <= until.as_nanos() => {
                    self.now = end;
                    self.copies.back(attempt);
                    let now = Moment::from_nanos(end);
                    if call.is_running(attempt) {
                        call.finished(strategy.policy(), attempt, Verdict::ACCEPTED, now);
                    }
                }
                _ => self.now = until.as_nanos(),
            }
        }
        call
    }

    /// The attempt that ends next; of several the first.
    fn next_end(&self) -> Option<(u8, u64)> {
        let ends = self.copies.with_server().map(|attempt| (attempt, self.ends[attempt]));
        let (attempt, end) = ends.min_by_key(|(_, end)| *end)?;
        Some((u8::try_from(attempt).ok()?, end))
    }
}

impl World for Alone<'_> {
    #[inline]
    fn start(&mut self, attempt: u8) {
        let (servers, copies) = (&self.model.servers, &mut self.copies);
        let server =
            Picker::default().pick(servers, &mut copies.used, &mut copies.draws.rng, |_| 0);
        let factor = servers.factor(server, self.arrival.at.saturating_add(self.now));
        let nanos = crate::pool::nanos(self.model.attempt(copies) * factor);
        self.ends[usize::from(attempt)] = self.now.saturating_add(nanos);
        copies.sent(attempt);
    }

    fn server(&self) -> Option<u32> {
        self.copies.used.first()
    }

    fn release(&mut self) {
        let servers = &self.model.servers;
        if self.joins && servers.on_cancel == OnCancel::Running {
            let stopped = self.now.saturating_add(servers.cancel_latency);
            for attempt in self.copies.with_server() {
                self.ends[attempt] = self.ends[attempt].min(stopped);
            }
        }
    }
}
