//! Pipelines whose strategies are known only when the program runs.

use super::breaker::CircuitBreaker;
use super::chaos::{Chaos, Latency};
use super::classify::Classify;
use super::concurrency::ConcurrencyLimiter;
use super::context::Context;
use super::custom::CustomRun;
use super::executing::{Launch, executing};
use super::execution::Terms;
use super::hedging::{BoxRun, Hedging};
use super::layer::{Described, End, Layer, Layers, Nests, Place};
use super::leaf::Leaf;
use super::next::{Around, Innermost, Next, Outcomes, Strategy};
use super::outcome::{Everything, Raises};
use super::pipeline::Pipeline;
use super::rate::RateLimiter;
use super::retry::Retry;
use super::timeout::Timeout;
use crate::attempt::Attempt;
use crate::drive::Work;

/// A strategy that works on any work: what a configuration file can name.
///
/// A fallback and a cache are not among them: they need values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyStrategy {
    /// A [`Timeout`].
    Timeout(Timeout),
    /// A [`Retry`].
    Retry(Retry),
    /// A [`Hedging`].
    Hedge(Hedging),
    /// A [`CircuitBreaker`].
    CircuitBreaker(CircuitBreaker),
    /// A [`RateLimiter`].
    RateLimiter(RateLimiter),
    /// A [`ConcurrencyLimiter`].
    ConcurrencyLimiter(ConcurrencyLimiter),
    /// A [`Chaos`] that makes things slow.
    Chaos(Chaos<Latency>),
}

/// Does the same with whatever strategy it is.
macro_rules! each {
    ($any:expr, $strategy:ident => $does:expr) => {
        match $any {
            AnyStrategy::Timeout($strategy) => $does,
            AnyStrategy::Retry($strategy) => $does,
            AnyStrategy::Hedge($strategy) => $does,
            AnyStrategy::CircuitBreaker($strategy) => $does,
            AnyStrategy::RateLimiter($strategy) => $does,
            AnyStrategy::ConcurrencyLimiter($strategy) => $does,
            AnyStrategy::Chaos($strategy) => $does,
        }
    };
}

/// Strategies that are known only when the program runs, the outermost first.
///
/// Each run of one allocates, and attempts are counted together.
#[derive(Debug, Clone)]
pub struct Dynamic {
    pub(crate) strategies: Vec<AnyStrategy>,
    end: End,
}

impl Dynamic {
    pub(crate) fn new(strategies: Vec<AnyStrategy>) -> Self {
        Self { strategies, end: End::default() }
    }
}

impl Layers for Dynamic {
    type Raises<I: Raises> = Everything;

    fn each(&self, look: &mut dyn FnMut(&dyn Described)) {
        for strategy in &self.strategies {
            each!(strategy, strategy => look(strategy));
        }
    }

    fn attach(&mut self, place: &mut dyn FnMut(&'static str) -> Place) {
        for strategy in &mut self.strategies {
            each!(strategy, strategy => strategy.attach(place(Layer::kind(strategy))));
        }
        self.end.attach(place);
    }
}

impl Nests for Dynamic {}

impl<'p, W> Around<'p, W> for Dynamic
where
    W: Innermost<'p, Value: Send, Error: Send, Run: Send, Classifier: Send + Sync>
        + Send
        + Sync
        + 'p,
{
    type Run = CustomRun<BoxRun<'p, W::Value, W::Error>>;

    const FORKS: bool = true;

    fn run(&'p self, work: &W, cx: &Context) -> Self::Run {
        self.run_once(work.clone(), cx)
    }

    fn run_once(&'p self, work: W, cx: &Context) -> Self::Run {
        let Self { strategies, end } = self;
        CustomRun::counted(cx, |cx| Remaining { strategies, place: &end.0, work }.run_once(&cx))
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// The future says nothing of what it is made of, so that whatever holds it is `Send` at once.
impl<'p, F, C, Fut> Launch<'p, F, C> for Dynamic
where
    F: Fn(Attempt) -> Fut + Clone + Send + Sync + 'p,
    Fut: Work<Value: Send, Error: Send> + Send + 'p,
    C: Classify<Fut::Value, Fut::Error> + Clone + Send + Sync + 'p,
{
    type Value = Fut::Value;
    type Error = Fut::Error;
    type Future = BoxRun<'p, Fut::Value, Fut::Error>;

    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        Box::pin(executing::<Self, Leaf<F, C>>(pipeline, leaf, terms))
    }
}

/// The strategies from one on inwards, around the work.
#[derive(Debug, Clone)]
struct Remaining<'p, W> {
    strategies: &'p [AnyStrategy],
    place: &'p Place,
    work: W,
}

impl<W: Outcomes> Outcomes for Remaining<'_, W> {
    type Value = W::Value;
    type Error = W::Error;
    type Classifier = W::Classifier;

    fn classifier(&self) -> &Self::Classifier {
        self.work.classifier()
    }
}

impl<'p, W> Next for Remaining<'p, W>
where
    W: Innermost<'p, Value: Send, Error: Send, Run: Send, Classifier: Send + Sync>
        + Send
        + Sync
        + 'p,
{
    type Run = BoxRun<'p, W::Value, W::Error>;

    const FORKS: bool = true;

    fn run(&self, cx: &Context) -> Self::Run {
        self.clone().run_once(cx)
    }

    fn run_once(self, cx: &Context) -> Self::Run {
        let Self { strategies, place, work } = self;
        let Some((strategy, strategies)) = strategies.split_first() else {
            return Box::pin(work.run_once(cx, place));
        };
        let next = Remaining { strategies, place, work };
        each!(strategy, strategy => Box::pin(strategy.run(next, cx)))
    }

    /// Asked by nobody: attempts are counted together.
    fn attempts(_: &Self::Run) -> u32 {
        1
    }
}
