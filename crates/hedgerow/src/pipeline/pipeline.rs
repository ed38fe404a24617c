//! A built pipeline: what people keep.

use std::fmt;
use std::sync::Arc;

use super::builder::{Builder, attach};
use super::context::Context;
use super::execution::Execution;
use super::layer::{Facts, Layer, Layers, Nests, Place};
use super::leaf::Inner;
use super::next::{Around, Next, Strategy};
use super::outcome::{Nothing, Raises};
use crate::attempt::Attempt;
use crate::drive::Work;
use crate::rules::Defaults;

/// Strategies one inside the other, ready to run work: the first added is outermost.
///
/// Clones share everything: breakers, limiters, what was learned. `L` says which strategies there
/// are; a [`BoxPipeline`](super::BoxPipeline) has no such parameter. See the
/// [module](crate::pipeline) for all strategies.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::Pipeline;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # async fn search(_attempt: hedgerow::Attempt, _query: &str) -> Result<u32, std::fmt::Error> { Ok(3) }
/// let pipeline = Pipeline::builder()
///     .timeout(Duration::from_secs(2))
///     .hedge(Hedge::after(Duration::from_millis(150)))
///     .build()?;
/// let query = String::from("hedges");
/// let found = pipeline.execute(|attempt| search(attempt, &query)).await?;
/// assert_eq!(found, 3);
/// # Ok(()) }
/// ```
pub struct Pipeline<L>(Arc<Built<L>>);

pub(crate) struct Built<L> {
    pub(crate) layers: L,
    pub(crate) place: Place,
    pub(crate) strategies: Vec<StrategyInfo>,
    pub(crate) warnings: Vec<String>,
}

/// One strategy of a built pipeline, as it can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrategyInfo {
    /// Its name in the pipeline.
    pub name: Arc<str>,
    /// What kind of strategy it is: `retry`.
    pub kind: &'static str,
    /// Its settings in a few words.
    pub settings: String,
    /// What of it matters to others.
    pub facts: Facts,
}

impl fmt::Display for StrategyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            name if name == self.kind => f.write_str(name)?,
            name => write!(f, "{} {name:?}", self.kind)?,
        }
        match self.settings.as_str() {
            "" => Ok(()),
            settings => write!(f, " ({settings})"),
        }
    }
}

impl Pipeline<()> {
    /// Begins an empty pipeline.
    pub fn builder() -> Builder<()> {
        Builder::new()
    }
}

impl<L> Pipeline<L> {
    pub(crate) fn new(built: Built<L>) -> Self {
        Self(Arc::new(built))
    }

    pub(crate) fn layers(&self) -> &L {
        &self.0.layers
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// Whether it is a clone of this one.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its name: `pipeline`, unless it was given another.
    pub fn name(&self) -> &str {
        &self.0.place.pipeline
    }

    /// Its strategies, the outermost first.
    pub fn strategies(&self) -> &[StrategyInfo] {
        &self.0.strategies
    }

    /// What is allowed and probably not meant: a hedge that a timeout around it never lets start,
    /// say (A34).
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// How often the work runs in one execution, if everything fails: (1 + retries) x (1 + hedges)
    /// for each retry and hedge in it. `None` is without bound, and where nobody knows, as a strategy
    /// of one's own takes part. A shared budget makes a sum of the product, see
    /// [`Retry::budget`](super::Retry::budget).
    pub fn max_attempts(&self) -> Option<u64> {
        let mut factors = self.0.strategies.iter().map(|strategy| strategy.facts.attempts);
        factors.try_fold(1, |all: u64, factor| Some(all.saturating_mul(factor?)))
    }
}

impl<L: Nests> Pipeline<L> {
    /// The same in its place in another pipeline, with all its state: has the observer and the clock
    /// of that one where it has none of its own.
    pub(crate) fn adopted(&self, around: &Place) -> Self {
        let Built { layers, place, strategies, warnings } = &*self.0;
        let (mut layers, mut place) = (layers.clone(), place.clone());
        if place.observer.is_none() {
            place.observer.clone_from(&around.observer);
        }
        if place.time.is_default() {
            place.time = around.time.clone();
        }
        (place.threads, place.abandoned) = (around.threads, Arc::clone(&around.abandoned));
        place.paid = Arc::clone(&around.paid);
        attach(&mut layers, strategies, &place);
        let (strategies, warnings) = (strategies.clone(), warnings.clone());
        Self::new(Built { layers, place, strategies, warnings })
    }
}

impl<L: Layers> Pipeline<L> {
    /// Runs work through the pipeline.
    ///
    /// `work` makes the future of one attempt. It is called for every attempt, also of retries and
    /// hedges, and is cloned where a strategy keeps it for another: a closure that captures
    /// references is copied for nothing, one that owns things clones them. Nothing happens until the
    /// execution is awaited; see [`Execution`] for what else can be said before that.
    pub fn execute<F, Fut>(&self, work: F) -> Execution<'_, L, F, Defaults, L::Raises<Nothing>>
    where
        F: Fn(Attempt) -> Fut + Clone,
        Fut: Work,
    {
        Execution::new(self, work)
    }
}

impl<L> Clone for Pipeline<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// One line: the strategies from the outside to the inside.
impl<L> fmt::Display for Pipeline<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        for strategy in self.strategies() {
            write!(f, "{strategy} > ")?;
        }
        f.write_str("work")
    }
}

impl<L> fmt::Debug for Pipeline<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strategies: Vec<_> = self.strategies().iter().map(ToString::to_string).collect();
        f.debug_struct("Pipeline")
            .field("name", &self.name())
            .field("strategies", &strategies)
            .finish()
    }
}

/// A pipeline in another one: what is inside it there runs in the place of its work.
impl<L: Nests> Layer for Pipeline<L> {
    type Raises<I: Raises> = L::Raises<I>;

    fn kind(&self) -> &'static str {
        "pipeline"
    }

    fn settings(&self) -> String {
        self.to_string()
    }

    fn attach(&mut self, place: Place) {
        *self = self.adopted(&place);
    }

    fn facts(&self) -> Facts {
        let inside = || self.strategies().iter().map(|strategy| &strategy.facts);
        // A limit inside a retry or a hedge is that of one try.
        let whole = inside().take_while(|facts| facts.attempts == Some(1));
        Facts {
            attempts: self.max_attempts(),
            limit: whole.filter_map(|facts| facts.limit).min(),
            hedge_after: inside().find_map(|facts| facts.hedge_after),
            retry_after: inside().find_map(|facts| facts.retry_after),
            replaces: inside().any(|facts| facts.replaces),
            detaches: inside().any(|facts| facts.detaches),
            joins: inside().any(|facts| facts.joins),
            spreads: inside().any(|facts| facts.spreads),
            budgets: inside().flat_map(|facts| facts.budgets.iter().copied()).collect(),
        }
    }
}

impl<'p, N: Next, L> Strategy<N> for &'p Pipeline<L>
where
    L: Around<'p, Inner<N>>,
{
    type Run = L::Run;

    const FORKS: bool = L::FORKS;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        self.layers().run_once(Inner(next), cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        L::attempts(run)
    }
}
