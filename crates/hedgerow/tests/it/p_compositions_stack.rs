//! Pipelines of any strategies that are put together while the test runs, so that no composition is
//! a type of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Poll};

use hedgerow::InvalidOption;
use hedgerow::pipeline::parts::{
    Custom, Everything, Fault, FixedValue, Latency, Layer, Outcomes, Place, Raises, Strategy,
};
use hedgerow::pipeline::{
    Cache, Chaos, CircuitBreaker, ConcurrencyLimiter, Context, CustomStrategy, End, Fallback,
    Hedging, Next, Pipeline, PipelineResult, RateLimiter, Retry, Then, Timeout,
};

use crate::support::lock;

/// What the work answers: who did.
pub(crate) type Value = u32;
pub(crate) type Failure = &'static str;
pub(crate) type Outcome = PipelineResult<Value, Failure>;

/// Any strategy there is.
#[derive(Debug)]
pub(crate) enum Any {
    Timeout(Timeout),
    Retry(Retry),
    Hedge(Box<Hedging>),
    Breaker(CircuitBreaker),
    Rate(RateLimiter),
    Concurrency(ConcurrencyLimiter),
    Cache(Cache<Value>),
    Latency(Chaos<Latency>),
    Fault(Chaos<Faults>),
    Nested(Pipeline<Tries>),
    Custom(Pipeline<Own>),
    Fallback(Replaced),
}

type Faults = Fault<fn() -> Failure>;
type Replaced = Fallback<FixedValue<Value>>;
type Tries = Then<Retry, Then<Timeout, End>>;
type Own = Then<Custom<Again>, End>;

impl Any {
    /// Whether it may run what is inside more than once.
    fn forks(&self) -> bool {
        matches!(self, Self::Retry(_) | Self::Hedge(_) | Self::Nested(_) | Self::Custom(_))
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        match self {
            Self::Timeout(strategy) => Layer::check(strategy, mistakes),
            Self::Retry(strategy) => Layer::check(strategy, mistakes),
            Self::Breaker(strategy) => Layer::check(strategy, mistakes),
            Self::Rate(strategy) => Layer::check(strategy, mistakes),
            Self::Concurrency(strategy) => Layer::check(strategy, mistakes),
            Self::Cache(strategy) => Layer::check(strategy, mistakes),
            Self::Latency(strategy) => Layer::check(strategy, mistakes),
            Self::Fault(strategy) => Layer::check(strategy, mistakes),
            Self::Fallback(strategy) => Layer::check(strategy, mistakes),
            Self::Hedge(_) | Self::Nested(_) | Self::Custom(_) => {} // valid as they are
        }
    }

    fn attach(&mut self, place: Place) {
        match self {
            Self::Timeout(strategy) => strategy.attach(place),
            Self::Retry(strategy) => strategy.attach(place),
            Self::Hedge(strategy) => strategy.attach(place),
            Self::Breaker(strategy) => strategy.attach(place),
            Self::Rate(strategy) => strategy.attach(place),
            Self::Concurrency(strategy) => strategy.attach(place),
            Self::Cache(strategy) => strategy.attach(place),
            Self::Latency(strategy) => strategy.attach(place),
            Self::Fault(strategy) => strategy.attach(place),
            Self::Fallback(strategy) => strategy.attach(place),
            Self::Nested(_) | Self::Custom(_) => {} // they keep their own
        }
    }

    fn begin<'p, N>(&'p self, next: N, cx: &Context) -> Running<'p>
    where
        N: Next<Value = Value, Error = Failure> + 'p,
    {
        // The types are named: there is nothing that could be inferred too late.
        match self {
            Self::Timeout(strategy) => boxed::<Timeout, N>(strategy, next, cx),
            Self::Retry(strategy) => boxed::<Retry, N>(strategy, next, cx),
            Self::Hedge(strategy) => boxed::<Hedging, N>(strategy, next, cx),
            Self::Breaker(strategy) => boxed::<CircuitBreaker, N>(strategy, next, cx),
            Self::Rate(strategy) => boxed::<RateLimiter, N>(strategy, next, cx),
            Self::Concurrency(strategy) => boxed::<ConcurrencyLimiter, N>(strategy, next, cx),
            Self::Cache(strategy) => boxed::<Cache<Value>, N>(strategy, next, cx),
            Self::Latency(strategy) => boxed::<Chaos<Latency>, N>(strategy, next, cx),
            Self::Fault(strategy) => boxed::<Chaos<Faults>, N>(strategy, next, cx),
            Self::Fallback(strategy) => boxed::<Replaced, N>(strategy, next, cx),
            Self::Nested(strategy) => boxed::<Pipeline<Tries>, N>(strategy, next, cx),
            Self::Custom(strategy) => boxed::<Pipeline<Own>, N>(strategy, next, cx),
        }
    }
}

/// A run of any strategy.
pub(crate) type Running<'p> = Box<dyn Counted<Output = Outcome> + Unpin + 'p>;

/// A run that knows how many attempts it has begun.
pub(crate) trait Counted: Future {
    fn attempts(&self) -> u32;
}

struct Counting<R> {
    run: Pin<Box<R>>,
    attempts: fn(&R) -> u32,
}

impl<R: Future> Future for Counting<R> {
    type Output = R::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<R::Output> {
        self.run.as_mut().poll(cx)
    }
}

impl<R: Future> Counted for Counting<R> {
    fn attempts(&self) -> u32 {
        (self.attempts)(&self.run)
    }
}

fn boxed<'p, S, N>(strategy: &'p S, next: N, cx: &Context) -> Running<'p>
where
    &'p S: Strategy<N>,
    <&'p S as Strategy<N>>::Run: 'p,
    N: Next<Value = Value, Error = Failure> + 'p,
{
    let run = Box::pin(strategy.run(next, cx));
    Box::new(Counting { run, attempts: <&'p S as Strategy<N>>::attempts })
}

/// Strategies one inside the other, the outermost first.
#[derive(Debug)]
pub(crate) struct Stack {
    strategies: Vec<Any>,
    /// How often each run of a retry or of a hedge ran what is inside.
    repeats: Arc<Repeats>,
}

pub(crate) type Repeats = Mutex<Vec<Arc<AtomicU32>>>;

/// How often retries and hedges ran what is inside again.
pub(crate) fn again(repeats: &Repeats) -> u32 {
    let runs = lock(repeats);
    runs.iter().map(|runs| runs.load(Ordering::Relaxed).saturating_sub(1)).sum()
}

impl Stack {
    pub(crate) fn new(strategies: Vec<Any>) -> Self {
        Self { strategies, repeats: Arc::default() }
    }

    pub(crate) fn repeats(&self) -> Arc<Repeats> {
        Arc::clone(&self.repeats)
    }

    /// Runs these of its strategies around `next`.
    fn begin<'p, N>(&'p self, strategies: &'p [Any], next: N, cx: &Context) -> Running<'p>
    where
        N: Next<Value = Value, Error = Failure> + 'p,
    {
        let Some((first, strategies)) = strategies.split_first() else {
            let run = Box::pin(next.run_once(cx));
            return Box::new(Counting { run, attempts: N::attempts });
        };
        let runs = Arc::default();
        if matches!(first, Any::Retry(_) | Any::Hedge(_)) {
            lock(&self.repeats).push(Arc::clone(&runs));
        }
        let stack = self;
        if N::FORKS || strategies.iter().any(Any::forks) {
            first.begin(Remaining::<N, true> { stack, strategies, next, runs }, cx)
        } else {
            first.begin(Remaining::<N, false> { stack, strategies, next, runs }, cx)
        }
    }
}

impl Layer for Stack {
    type Raises<I: Raises> = Everything;

    fn kind(&self) -> &'static str {
        "stack"
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        for strategy in &self.strategies {
            strategy.check(mistakes);
        }
    }

    fn attach(&mut self, place: Place) {
        for strategy in &mut self.strategies {
            strategy.attach(place.clone());
        }
    }
}

impl<'p, N> Strategy<N> for &'p Stack
where
    N: Next<Value = Value, Error = Failure> + 'p,
{
    type Run = Running<'p>;

    const FORKS: bool = true;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        self.begin(&self.strategies, next, cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// The strategies from one on inwards.
struct Remaining<'p, N, const FORKS: bool> {
    stack: &'p Stack,
    strategies: &'p [Any],
    next: N,
    /// How often it was run.
    runs: Arc<AtomicU32>,
}

impl<N: Clone, const FORKS: bool> Clone for Remaining<'_, N, FORKS> {
    fn clone(&self) -> Self {
        let Self { stack, strategies, next, runs } = self;
        Self { stack, strategies, next: next.clone(), runs: Arc::clone(runs) }
    }
}

impl<N, const FORKS: bool> Outcomes for Remaining<'_, N, FORKS>
where
    N: Outcomes<Value = Value, Error = Failure>,
{
    type Value = Value;
    type Error = Failure;
    type Classifier = N::Classifier;

    fn classifier(&self) -> &Self::Classifier {
        self.next.classifier()
    }
}

impl<'p, N, const FORKS: bool> Next for Remaining<'p, N, FORKS>
where
    N: Next<Value = Value, Error = Failure> + 'p,
{
    type Run = Running<'p>;

    const FORKS: bool = FORKS;

    fn run(&self, cx: &Context) -> Self::Run {
        self.clone().run_once(cx)
    }

    fn run_once(self, cx: &Context) -> Self::Run {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.stack.begin(self.strategies, self.next, cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// A strategy of one's own: what failed is tried once more.
#[derive(Debug)]
pub(crate) struct Again;

impl<'p, N> CustomStrategy<N> for &'p Again
where
    N: Next + 'p,
{
    type Run = Pin<Box<dyn Future<Output = PipelineResult<N::Value, N::Error>> + 'p>>;

    fn run(self, next: N, cx: Context) -> Self::Run {
        Box::pin(async move {
            let outcome = next.run(&cx).await;
            if outcome.is_ok() || !cx.is_idempotent() {
                return outcome;
            }
            next.run_once(&cx.next_try()).await
        })
    }
}
