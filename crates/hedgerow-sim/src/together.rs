//! Calls that share servers, a budget or what was learned: events, in the order of their time.

use hedgerow_core::{Call, Losers, MOST_HEDGES, Moment, Verdict};

use crate::flight::{Copies, World, obey};
use crate::load::Arrival;
use crate::model::Model;
use crate::pool::{Job, Pool};
use crate::queue::{Event, Key, Queue};
use crate::run::Progress;
use crate::servers::{OnCancel, Picker, nanos};
use crate::slots::Slots;
use crate::stats::Outcome;
use crate::strategy::Strategy;
use crate::work::Draws;

/// Runs all events until the last request is over and the last server idle.
pub(crate) fn run(model: &Model, strategy: &Strategy, seed: u64, progress: &Progress) -> Outcome {
    let mut together = Together::new(model, strategy, seed, progress);
    let mut arrivals = model.load.requests(seed);
    let mut arrival = arrivals.next();
    loop {
        let next = together.site.queue.next_time().unwrap_or(u64::MAX);
        match arrival {
            Some(request) if request.at < next => {
                together.arrive(request);
                arrival = arrivals.next();
            }
            _ => match together.site.queue.pop() {
                Some((now, event)) => together.happen(now, event),
                None => break,
            },
        }
    }
    debug_assert_eq!(together.open, 0, "every request completes");
    together.outcome
}

/// A call in flight.
#[derive(Debug)]
struct Flight {
    call: Call,
    copies: Copies,
    jobs: [Key; MOST_HEDGES as usize + 1],
    start: u64,
    /// The timer that is set, if it has not fired.
    timer: u64,
    /// The request, and what is to be known of it when it is over.
    request: Key,
}

/// A request that waits for its calls.
#[derive(Debug)]
struct Request {
    arrival: Arrival,
    calls: u32,
}

struct Together<'a> {
    strategy: &'a Strategy,
    seed: u64,
    progress: &'a Progress,
    site: Site<'a>,
    flights: Slots<Flight>,
    requests: Slots<Request>,
    next_call: u64,
    open: u64,
    outcome: Outcome,
}

/// Everything outside the calls.
struct Site<'a> {
    model: &'a Model,
    queue: Queue,
    pool: Pool<'a>,
    picker: Picker,
    /// Whether anybody minds that a loser is cancelled.
    cancels: bool,
}

const NONE: Key = Key { index: u32::MAX, tenant: 0 };

impl<'a> Together<'a> {
    fn new(model: &'a Model, strategy: &'a Strategy, seed: u64, progress: &'a Progress) -> Self {
        let (servers, losers) = (&model.servers, strategy.policy().losers);
        let minds = servers.workers.is_some() || matches!(losers, Losers::Join { .. });
        let site = Site {
            model,
            queue: Queue::default(),
            pool: Pool::new(servers),
            picker: Picker::default(),
            cancels: minds && servers.on_cancel != OnCancel::Ignore && losers != Losers::Detach,
        };
        Self {
            strategy,
            seed,
            progress,
            site,
            flights: Slots::default(),
            requests: Slots::default(),
            next_call: 0,
            open: 0,
            outcome: model.outcome(),
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        self.outcome.events += 1;
        self.open += 1;
        let calls = self.site.model.load.calls_per_request();
        let request = self.requests.add(Request { arrival, calls });
        for _ in 0..calls {
            let number = self.next_call;
            self.next_call += 1;
            let flight = self.flights.add(Flight {
                call: Call::new(self.strategy.policy(), self.strategy.terms(self.seed, number)),
                copies: Copies::new(
                    Draws::new(&self.site.model.work, self.seed, number),
                    arrival.step,
                ),
                jobs: [NONE; MOST_HEDGES as usize + 1],
                start: arrival.at,
                timer: u64::MAX,
                request,
            });
            self.go_on(flight, arrival.at);
        }
    }

    fn happen(&mut self, now: u64, event: Event) {
        let Site { pool, queue, .. } = &mut self.site;
        match event {
            Event::Done(job) => {
                if let Some(job) = pool.done(job, now, queue) {
                    self.ended(job, now);
                }
            }
            Event::Cancel(job) => {
                self.outcome.events += 1;
                if let Some(job) = pool.cancel(job, now, queue) {
                    self.ended(job, now);
                }
            }
            Event::Timer(flight) => {
                if self.flights.get(flight).is_some_and(|flight| flight.timer == now) {
                    self.outcome.events += 1;
                    self.go_on(flight, now);
                }
            }
        }
    }

    /// A server is rid of a job: its call hears of it, if it still listens.
    fn ended(&mut self, job: Job, now: u64) {
        self.outcome.events += 1;
        let Some(flight) = self.flights.get_mut(job.flight) else { return };
        flight.copies.back(job.attempt);
        if flight.call.is_running(job.attempt) {
            let moment = Moment::from_nanos(now - flight.start);
            let policy = self.strategy.policy_of(flight.copies.used.first());
            flight.call.finished(policy, job.attempt, Verdict::ACCEPTED, moment);
            self.go_on(job.flight, now);
        }
    }

    /// Does what the call wants, until it waits or is over.
    fn go_on(&mut self, key: Key, now: u64) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let Flight { call, copies, jobs, start, timer, .. } = flight;
        let mut hands = Hands { site: &mut self.site, copies, jobs, flight: key, now };
        let moment = Moment::from_nanos(now - *start);
        match obey(call, self.strategy, moment, &mut hands) {
            None => self.over(key, now),
            Some(until) if until.is_never() => {}
            Some(until) => {
                let at = start.saturating_add(until.as_nanos());
                // Most calls are answered before their timer, and some of them surely: their
                // timers need not be set. Whatever comes first asks again.
                if at != *timer && !hands.hears_before(at) {
                    *timer = at;
                    self.site.queue.add(at, Event::Timer(key));
                }
            }
        }
    }

    fn over(&mut self, key: Key, now: u64) {
        let Some(flight) = self.flights.get(key) else { return };
        let of = flight.request;
        let Some(request) = self.requests.get_mut(of) else { return };
        let stats = &mut self.outcome.steps[request.arrival.step];
        stats.count_call(&flight.call);
        let server = flight.copies.used.first();
        self.strategy.completed(&flight.call, server, now);
        if let Some(delay) = self.strategy.learned(server) {
            stats.learned.record(nanos(delay));
        }
        self.flights.clear(key);
        request.calls -= 1;
        if request.calls == 0 {
            let arrival = request.arrival;
            stats.count_request(now - arrival.at, now <= arrival.late);
            self.requests.clear(of);
            self.open -= 1;
            self.progress.one_more(stats.requests());
        }
    }
}

/// What a call can do to the world.
struct Hands<'s, 'a> {
    site: &'s mut Site<'a>,
    copies: &'s mut Copies,
    jobs: &'s mut [Key; MOST_HEDGES as usize + 1],
    flight: Key,
    now: u64,
}

impl Hands<'_, '_> {
    /// Whether one of the call's attempts is sure to end by then.
    fn hears_before(&self, at: u64) -> bool {
        let end = |attempt| self.site.pool.job(self.jobs[attempt]).and_then(|job| job.end);
        self.copies.with_server().filter_map(end).any(|end| end <= at)
    }
}

impl World for Hands<'_, '_> {
    fn start(&mut self, attempt: u8) {
        let Self { site, copies, flight, now, .. } = self;
        let Site { model, queue, pool, picker, .. } = site;
        let (used, rng) = (&mut copies.used, &mut copies.draws.rng);
        let server = picker.pick(&model.servers, used, rng, |server| pool.load(server));
        let work = model.attempt(copies);
        let job = Job { flight: *flight, attempt, server, work, end: None };
        self.jobs[usize::from(attempt)] = pool.submit(job, *now, queue);
        copies.sent(attempt);
    }

    fn server(&self) -> Option<u32> {
        self.copies.used.first()
    }

    fn release(&mut self) {
        if self.site.cancels {
            let at = self.now.saturating_add(self.site.model.servers.cancel_latency);
            for attempt in self.copies.with_server() {
                self.site.queue.add(at, Event::Cancel(self.jobs[attempt]));
            }
        }
    }
}
