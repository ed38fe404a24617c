//! Puts strategies together.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hedgerow_core::{Both, InvalidOption, Observer};

use super::custom::Custom;
use super::dynamic::{AnyStrategy, Dynamic};
use super::hedging::Hedging;
use super::layer::{Described, End, Layer, Layers, Nests, Place, Then};
use super::pipeline::{Built, Pipeline, StrategyInfo};
use super::timeout::Timeout;
use super::warnings::warnings;
use crate::clock::{Clock, Time};

/// Puts strategies together: the first added is outermost (T47).
///
/// There is a shortcut for each strategy of the crate; [`with`](Builder::with) takes any of them, and
/// is the same: `.retry(it)` is `.with(it)` (T50). Code of strategies that a program does not add is
/// not in it.
///
/// Options are looked at when the pipeline is [built](Builder::build): all mistakes come at once
/// (T48).
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<S> {
    strategies: S,
    /// A name for each strategy that has one of its own.
    names: Vec<Option<Arc<str>>>,
    name: Arc<str>,
    observer: Option<Arc<dyn Observer>>,
    time: Time,
}

impl Builder<()> {
    pub(crate) fn new() -> Self {
        let (names, observer, time) = (Vec::new(), None, Time::default());
        Self { strategies: (), names, name: "pipeline".into(), observer, time }
    }
}

impl<S> Builder<S> {
    /// The pipeline's name, for errors, logs and metrics. Default: `pipeline`.
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Gives the strategy that was added last a name of its own, where there are two of a kind.
    /// Default: its kind.
    ///
    /// # Panics
    ///
    /// If nothing was added yet.
    #[track_caller]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        let last = self.names.last_mut().expect("a strategy is added first, and named then");
        *last = Some(name.into());
        self
    }

    /// Tells everything that strategies do, and every attempt of the work; the hedges tell their
    /// events, too. Several observers are told in turn.
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        let observer = match self.observer {
            None => observer,
            Some(earlier) => Arc::new(Both(earlier, observer)),
        };
        Self { observer: Some(observer), ..self }
    }

    /// Takes the time of all strategies from this clock, and waits by it; those of hedges included
    /// that have no clock of their own.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { time: Time::Own(clock), ..self }
    }

    /// Waits by the ring; see [`Hedge::ring_timer`](crate::Hedge::ring_timer). The cheapest for
    /// pipelines, too: what is ready at once costs less, if it goes through a
    /// [circuit breaker](super::CircuitBreaker).
    pub fn ring_timer(self) -> Self {
        Self { time: Time::Ring, ..self }
    }

    /// Adds a strategy inside those that were added before.
    pub fn with<A: Layer>(self, strategy: A) -> Builder<(S, A)> {
        let Self { strategies, mut names, name, observer, time } = self;
        names.push(None);
        Builder { strategies: (strategies, strategy), names, name, observer, time }
    }

    /// Adds a [`Timeout`].
    pub fn timeout(self, timeout: impl Into<Timeout>) -> Builder<(S, Timeout)> {
        self.with(timeout.into())
    }

    /// Adds a hedge: a policy, or a [`Hedging`] that says more. What is inside it runs in each of its
    /// attempts.
    pub fn hedge<P, A>(self, hedge: impl Into<Hedging<P, A>>) -> Builder<(S, Hedging<P, A>)>
    where
        Hedging<P, A>: Layer,
    {
        self.with(hedge.into())
    }

    /// Adds a whole pipeline. It keeps its name, and its observer and its clock if it has them;
    /// otherwise it takes those of the whole. Used elsewhere, too, it shares its state with that.
    /// A boxed pipeline goes nowhere: what it has inside is work of one type; box the whole.
    pub fn pipeline<L: Nests>(self, pipeline: Pipeline<L>) -> Builder<(S, Pipeline<L>)> {
        self.with(pipeline)
    }

    /// Adds a strategy of one's own, under this name.
    pub fn strategy<A: fmt::Debug>(
        self,
        name: &'static str,
        strategy: A,
    ) -> Builder<(S, Custom<A>)> {
        self.with(Custom::new(name, strategy))
    }

    /// The pipeline.
    ///
    /// # Errors
    ///
    /// Every option of every strategy that has a value it cannot have.
    pub fn build(self) -> Result<Pipeline<S::Layers>, InvalidPipeline>
    where
        S: Nest<End>,
    {
        self.finish(false)
    }

    pub(crate) fn finish(self, threads: bool) -> Result<Pipeline<S::Layers>, InvalidPipeline>
    where
        S: Nest<End>,
    {
        let (strategies, rest) = self.split();
        rest.assemble(strategies.nest(End::default()), threads)
    }

    fn split(self) -> (S, Builder<()>) {
        let Self { strategies, names, name, observer, time } = self;
        (strategies, Builder { strategies: (), names, name, observer, time })
    }
}

impl Builder<()> {
    /// A pipeline of strategies that are known only now, each with its name, the outermost first.
    ///
    /// # Errors
    ///
    /// As [`build`](Builder::build), and more than 64 strategies: each takes room on the stack.
    pub fn build_dynamic(
        mut self,
        strategies: Vec<(Arc<str>, AnyStrategy)>,
    ) -> Result<Pipeline<Dynamic>, InvalidPipeline> {
        if let Some(too_many) = Self::too_many(strategies.len()) {
            return Err(InvalidPipeline { mistakes: vec![too_many] });
        }
        let (names, strategies): (Vec<_>, _) = strategies.into_iter().unzip();
        self.names = names.into_iter().map(Some).collect();
        self.assemble(Dynamic::new(strategies), false)
    }

    /// A mistake if these are too many strategies.
    pub(crate) fn too_many(strategies: usize) -> Option<InvalidOption> {
        const MOST: usize = 64;
        let remedy = format!("a pipeline has at most {MOST} strategies; leave some out");
        (strategies > MOST).then(|| InvalidOption::new("strategies", strategies, remedy))
    }

    fn assemble<L: Layers>(
        self,
        mut layers: L,
        threads: bool,
    ) -> Result<Pipeline<L>, InvalidPipeline> {
        let Self { strategies: (), names, name, observer, time } = self;
        let names = unique(names, &layers).into_iter();
        let strategies = describe(&layers, names.clone());
        check(&layers, &strategies, threads)?;
        // Threads have no runtime: what wakes them is the ring.
        let time = if threads && time.has_timer() { Time::Ring } else { time };
        let abandoned = Arc::default();
        let spreads = strategies.iter().any(|strategy| strategy.facts.spreads);
        let (pipeline, strategy, paid) = (name, "pipeline".into(), Arc::default());
        let place = Place { pipeline, strategy, observer, time, spreads, paid, threads, abandoned };
        attach(&mut layers, &strategies, &place);
        let warnings = warnings(&strategies);
        Ok(Pipeline::new(Built { layers, place, strategies, warnings }))
    }
}

impl<S: fmt::Debug> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("strategies", &self.strategies)
            .finish_non_exhaustive()
    }
}

/// Strategies in the order in which they were added, put one inside the other.
pub trait Nest<I> {
    /// The strategies, one inside the other.
    type Layers: Layers;

    #[doc(hidden)]
    fn nest(self, inner: I) -> Self::Layers;
}

impl<I: Layers> Nest<I> for () {
    type Layers = I;

    fn nest(self, inner: I) -> I {
        inner
    }
}

impl<S, A, I> Nest<I> for (S, A)
where
    S: Nest<Then<A, I>>,
{
    type Layers = S::Layers;

    fn nest(self, inner: I) -> S::Layers {
        self.0.nest(Then(self.1, inner))
    }
}

/// A name for each strategy: its own, or its kind; numbered where that would be another's. Made names
/// leave the given ones alone.
fn unique(names: Vec<Option<Arc<str>>>, layers: &impl Layers) -> Vec<Arc<str>> {
    let mut given: BTreeSet<_> = names.iter().flatten().cloned().collect();
    let mut taken = given.clone();
    let (mut names, mut unique) = (names.into_iter(), Vec::new());
    layers.each(&mut |layer| {
        let own = names.next().flatten();
        let first = own.clone().filter(|own| given.remove(own));
        let name = own.unwrap_or_else(|| layer.kind().into());
        let numbered = (2..).map(|number| Arc::from(format!("{name}-{number}")));
        let mut made = [Arc::clone(&name)].into_iter().chain(numbered);
        unique.extend(first.or_else(|| made.find(|name| taken.insert(Arc::clone(name)))));
    });
    unique
}

fn describe(layers: &impl Layers, mut names: impl Iterator<Item = Arc<str>>) -> Vec<StrategyInfo> {
    let mut strategies = Vec::new();
    layers.each(&mut |layer: &dyn Described| {
        let (kind, settings, facts) = (layer.kind(), layer.settings(), layer.facts());
        let name = names.next().unwrap_or_else(|| kind.into());
        strategies.push(StrategyInfo { name, kind, settings, facts });
    });
    strategies
}

fn check(
    layers: &impl Layers,
    strategies: &[StrategyInfo],
    threads: bool,
) -> Result<(), InvalidPipeline> {
    let mut mistakes = Vec::new();
    let mut place = strategies.iter();
    layers.each(&mut |layer| {
        let mut found = Vec::new();
        layer.check(&mut found);
        let Some(StrategyInfo { name, facts, .. }) = place.next() else { return };
        if facts.detaches && !threads {
            let remedy = "attempts of a pipeline run in the caller's task and cannot outlive it; \
                          use drop or join, or build_blocking() for threads";
            found.push(InvalidOption::new("losers", "detach", remedy));
        }
        mistakes.extend(found.into_iter().map(|mistake| mistake.within(name)));
    });
    if mistakes.is_empty() { Ok(()) } else { Err(InvalidPipeline { mistakes }) }
}

/// Tells each strategy where it is, in a pipeline that is there.
pub(super) fn attach(layers: &mut impl Layers, strategies: &[StrategyInfo], there: &Place) {
    let mut paid = there.paid.to_vec();
    let mut inside = strategies.iter();
    layers.attach(&mut |kind| {
        let Some(StrategyInfo { name, facts, .. }) = inside.next() else {
            return Place { strategy: kind.into(), paid: paid.as_slice().into(), ..there.clone() };
        };
        let place =
            Place { strategy: Arc::clone(name), paid: paid.as_slice().into(), ..there.clone() };
        paid.extend(&facts.budgets);
        place
    });
}

/// All that is wrong with a pipeline: at least one mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPipeline {
    mistakes: Vec<InvalidOption>,
}

impl InvalidPipeline {
    /// The mistakes, in the order of the strategies.
    pub fn mistakes(&self) -> &[InvalidOption] {
        &self.mistakes
    }
}

impl fmt::Display for InvalidPipeline {
    /// One mistake a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPipeline {}
