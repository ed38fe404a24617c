//! Random strategies of each kind, on a grid of time on which they often meet.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use hedgerow::pipeline::{
    Cache, CacheControl, Chaos, ChaosControl, CircuitBreaker, ConcurrencyControl,
    ConcurrencyLimiter, Fallback, Hedging, Pipeline, RateControl, RateLimiter, Retry, Timeout,
};
use hedgerow::{
    Budget, Delay, Exhausted, FailureStart, Hedge, Losers, ManualClock, Panics, RejectedHedge,
};

use crate::p_compositions_stack::{Again, Any, Failure, Value};
use crate::support::ms;

/// The kinds of strategies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Timeout,
    Retry,
    Hedge,
    Breaker,
    Rate,
    RateWaits,
    Concurrency,
    Cache,
    Latency,
    Fault,
    Fallback,
    Nested,
    Custom,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Timeout,
        Self::Retry,
        Self::Hedge,
        Self::Breaker,
        Self::Rate,
        Self::RateWaits,
        Self::Concurrency,
        Self::Cache,
        Self::Latency,
        Self::Fault,
        Self::Fallback,
        Self::Nested,
        Self::Custom,
    ];
}

/// Counts what is taken, and grants so much.
#[derive(Debug)]
pub(crate) struct Purse {
    most: u64,
    granted: AtomicU64,
    returned: AtomicU64,
}

impl Purse {
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, granted: AtomicU64::new(0), returned: AtomicU64::new(0) })
    }

    /// What was taken for good.
    pub(crate) fn spent(&self) -> u64 {
        let (granted, returned) = (&self.granted, &self.returned);
        let spent = granted.load(Ordering::Relaxed).checked_sub(returned.load(Ordering::Relaxed));
        spent.expect("no more comes back than was taken")
    }
}

impl Budget for Purse {
    fn deposit(&self) {}

    fn try_take(&self) -> bool {
        let grants = self.spent() < self.most;
        self.granted.fetch_add(u64::from(grants), Ordering::Relaxed);
        grants
    }

    fn give_back(&self) {
        self.returned.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the test holds of the strategies that it made.
#[derive(Default)]
pub(crate) struct Controls {
    pub(crate) slots: Vec<ConcurrencyControl>,
    pub(crate) rates: Vec<RateControl>,
    pub(crate) caches: Vec<CacheControl<Value>>,
    pub(crate) chaos: Vec<ChaosControl>,
    /// How many attempts one execution can have.
    pub(crate) most: u64,
    /// The limit of the outermost, if it is a timeout.
    pub(crate) limit: Option<Duration>,
    /// What was drawn, for the message of a failure.
    settings: Vec<String>,
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Makes strategies.
pub(crate) struct Drawing<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) clock: ManualClock,
    pub(crate) purse: Option<Arc<Purse>>,
}

impl Drawing<'_> {
    /// A duration on the grid.
    fn time(&mut self, steps: std::ops::Range<u64>) -> Duration {
        ms(5 * self.rng.u64(steps))
    }

    fn choice<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.rng.usize(..values.len())]
    }

    /// The strategies of these kinds.
    pub(crate) fn stack(&mut self, kinds: &[Kind]) -> (Vec<Any>, Controls) {
        let mut controls = Controls { most: 1, ..Controls::default() };
        let mut strategies = Vec::new();
        for kind in kinds {
            let outermost = strategies.is_empty();
            let strategy = self.strategy(*kind, outermost, &mut controls);
            controls.settings.push(format!("{strategy:?}"));
            strategies.push(strategy);
        }
        (strategies, controls)
    }

    fn strategy(&mut self, kind: Kind, outermost: bool, controls: &mut Controls) -> Any {
        match kind {
            Kind::Timeout => {
                let limit = self.time(1..16);
                controls.limit = controls.limit.or(outermost.then_some(limit));
                Any::Timeout(Timeout::after(limit))
            }
            Kind::Retry => Any::Retry(self.retry(&mut controls.most)),
            Kind::Hedge => Any::Hedge(Box::new(Hedging::new(self.hedge(&mut controls.most)))),
            Kind::Breaker => {
                let breaker = CircuitBreaker::consecutive(self.rng.u32(1..4));
                let breaker = breaker.open_for(self.time(1..10)).probes(self.rng.u32(1..3));
                // Without an end to the lease a place that is lost stays lost.
                let lease = self.choice(&[ms(10), ms(100), Duration::MAX, Duration::MAX]);
                Any::Breaker(breaker.probe_lease(lease))
            }
            Kind::Rate | Kind::RateWaits => {
                let limiter = RateLimiter::per(self.rng.u32(1..4), self.time(1..8));
                let waits = [ms(15), ms(60), Duration::MAX];
                let wait = if kind == Kind::Rate { Duration::ZERO } else { self.choice(&waits) };
                let limiter = limiter.max_wait(wait);
                controls.rates.push(limiter.control());
                Any::Rate(limiter)
            }
            Kind::Concurrency => {
                let limiter = self.slots();
                controls.slots.push(limiter.control());
                Any::Concurrency(limiter)
            }
            Kind::Cache => {
                let cache = Cache::single().ttl(self.time(1..10));
                let cache = cache.serve_stale(self.choice(&[Duration::ZERO, ms(30)]));
                controls.caches.push(cache.control());
                Any::Cache(cache)
            }
            Kind::Latency => {
                let latency = Chaos::latency(self.time(1..6)).rate(0.5).seed(self.rng.u64(..));
                controls.chaos.push(latency.control());
                Any::Latency(latency)
            }
            Kind::Fault => {
                let fault = Chaos::fault(fault as fn() -> Failure).rate(0.4).seed(self.rng.u64(..));
                controls.chaos.push(fault.control());
                Any::Fault(fault)
            }
            Kind::Fallback => Any::Fallback(Fallback::value(1_000_000)),
            Kind::Nested => {
                controls.most *= 2;
                let retry = Retry::constant().base(ms(5)).max_retries(1);
                let builder = Pipeline::builder().clock(Arc::new(self.clock.clone()));
                let pipeline = builder.retry(retry).timeout(self.time(2..12));
                Any::Nested(pipeline.build().unwrap())
            }
            Kind::Custom => {
                controls.most *= 2;
                Any::Custom(Pipeline::builder().strategy("again", Again).build().unwrap())
            }
        }
    }

    fn slots(&mut self) -> ConcurrencyLimiter {
        let limiter = ConcurrencyLimiter::new(self.rng.usize(1..3));
        let wait = self.choice(&[ms(5), ms(20), Duration::MAX]);
        match self.rng.usize(..3) {
            0 => limiter,
            queue => limiter.max_queue(queue).max_wait(wait),
        }
    }

    fn retry(&mut self, most: &mut u64) -> Retry {
        let retries = self.rng.u32(..3);
        *most *= 1 + u64::from(retries);
        let retry = match self.rng.u32(..3) {
            0 => Retry::immediately(),
            1 => Retry::constant().base(self.time(1..6)),
            _ => Retry::exponential().base(self.time(1..4)),
        };
        let retry = retry.max_retries(retries);
        match &self.purse {
            Some(purse) => retry.budget(purse.clone()),
            None => retry,
        }
    }

    fn hedge(&mut self, most: &mut u64) -> Hedge {
        let hedges = self.rng.u32(..3);
        *most *= 1 + u64::from(hedges);
        let starts = [FailureStart::Launch, FailureStart::LaunchWhenIdle, FailureStart::Wait];
        let losers = [
            Losers::Drop,
            Losers::Drop,
            Losers::Join { grace: None },
            Losers::Join { grace: Some(ms(10)) },
        ];
        let rejected = [RejectedHedge::Stop, RejectedHedge::Decide, RejectedHedge::Hedge];
        let delay = match self.rng.u32(..6) {
            0 => Delay::OnFailure,
            _ => Delay::After(self.time(0..6)),
        };
        let hedge = Hedge::default()
            .delay(delay)
            .max_hedges(hedges)
            .failure_start(self.choice(&starts))
            .exhausted(self.choice(&[Exhausted::Primary, Exhausted::First, Exhausted::Last]))
            .losers(self.choice(&losers))
            .rejected_hedge(self.choice(&rejected))
            .hedge_rejections(self.rng.bool())
            .panics(self.choice(&[Panics::Propagate, Panics::AsFailure]));
        match &self.purse {
            Some(purse) => hedge.budget(purse.clone()),
            None => hedge,
        }
    }
}

fn fault() -> Failure {
    "fault"
}
