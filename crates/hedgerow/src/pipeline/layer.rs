//! Strategies one inside the other, and what each knows of its place.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hedgerow_core::{Budget, InvalidOption, Observer, StrategyEvent, StrategyEventKind};

use super::context::Context;
use super::error::{Rejected, TimedOut};
use super::outcome::Raises;
use crate::abandoned::Abandoned;
use crate::clock::Time;

/// A strategy before it runs: what it can raise, whether its options make sense, how it is printed.
///
/// What it does is its [`Strategy`](super::parts::Strategy). A strategy of one's own needs no layer: it
/// goes into a pipeline by [`Builder::strategy`](super::Builder::strategy).
pub trait Layer: fmt::Debug {
    /// What a pipeline can raise that has this around what can raise `I`.
    type Raises<I: Raises>: Raises;

    /// What kind of strategy it is, as in configuration files: `retry`. Its name, unless it is given
    /// another.
    fn kind(&self) -> &'static str;

    /// Its settings in a few words: `2 times, exponential from 2s`.
    fn settings(&self) -> String {
        String::new()
    }

    /// Says which options have values that they cannot have.
    fn check(&self, _mistakes: &mut Vec<InvalidOption>) {}

    /// Is told where it is.
    fn attach(&mut self, place: Place);

    /// What matters of it to others.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

/// What of a strategy matters to others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "answers to questions that have to do with nothing"
)]
pub struct Facts {
    /// How often it runs what is inside, at most; `None` is without bound.
    pub attempts: Option<u64>,
    /// After how long it gives up, if it always does.
    pub limit: Option<Duration>,
    /// When it hedges first, if that is fixed.
    pub hedge_after: Option<Duration>,
    /// How long it waits, at least, before it first runs what is inside again.
    pub retry_after: Option<Duration>,
    /// Whether it hides from others that what is inside failed.
    pub replaces: bool,
    /// Whether what it drops runs on.
    pub detaches: bool,
    /// Whether it waits for losers, however long that takes.
    pub joins: bool,
    /// Whether executions start at different targets.
    pub(crate) spreads: bool,
    /// Tells the budgets that it takes from from others.
    pub(crate) budgets: Vec<usize>,
}

impl Facts {
    /// What is true of one of two, whichever it is.
    pub(super) fn either(self, other: Self) -> Self {
        let earlier = |one: Option<Duration>, other| Some(one?.min(other?));
        Self {
            attempts: self.attempts.zip(other.attempts).map(|(one, other)| one.max(other)),
            limit: self.limit.zip(other.limit).map(|(one, other)| one.max(other)),
            hedge_after: earlier(self.hedge_after, other.hedge_after),
            retry_after: earlier(self.retry_after, other.retry_after),
            replaces: self.replaces || other.replaces,
            detaches: self.detaches || other.detaches,
            joins: self.joins || other.joins,
            spreads: self.spreads || other.spreads,
            budgets: [self.budgets, other.budgets].concat(),
        }
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            attempts: Some(1),
            limit: None,
            hedge_after: None,
            retry_after: None,
            replaces: false,
            detaches: false,
            joins: false,
            spreads: false,
            budgets: Vec::new(),
        }
    }
}

/// Where a strategy is: what it is called, who is told, whose time it is.
#[derive(Clone, Default)]
pub struct Place {
    pub(crate) pipeline: Arc<str>,
    pub(crate) strategy: Arc<str>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) time: Time,
    /// Whether executions start at different targets.
    pub(crate) spreads: bool,
    /// The budgets that strategies around it pay into.
    pub(crate) paid: Arc<[usize]>,
    /// Whether attempts run on threads of their own.
    pub(crate) threads: bool,
    /// Counts those that run on without their execution, if a hedge of the pipeline bounds them.
    pub(crate) abandoned: Arc<OnceLock<Arc<Abandoned>>>,
}

impl Place {
    /// The strategy's name.
    pub fn strategy(&self) -> &Arc<str> {
        &self.strategy
    }

    /// Whether a strategy here pays into this budget: the outermost of those that share it does, once
    /// for all.
    pub(crate) fn pays(&self, budget: &Arc<dyn Budget>) -> bool {
        !self.paid.contains(&address(budget))
    }

    /// Whether anybody is told.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.observer.is_some()
    }

    /// Tells whoever wants to know what the strategy did in this execution.
    #[inline]
    pub fn tell(&self, cx: &Context, kind: StrategyEventKind) {
        if self.is_told() {
            self.tell_all(Some(cx), kind);
        }
    }

    /// The same of something that belongs to no execution.
    #[inline]
    pub(crate) fn announce(&self, kind: StrategyEventKind) {
        if self.is_told() {
            self.tell_all(None, kind);
        }
    }

    #[cold]
    fn tell_all(&self, cx: Option<&Context>, kind: StrategyEventKind) {
        let Some(observer) = &self.observer else { return };
        observer.strategy(&StrategyEvent::new(
            &self.pipeline,
            &self.strategy,
            cx.and_then(|cx| cx.attempt().operation()),
            cx.and_then(Context::execution),
            cx.map(|cx| cx.attempt().number()),
            kind,
        ));
    }

    /// Refuses to start, and tells so.
    pub(crate) fn reject(
        &self,
        cx: &Context,
        reason: &'static str,
        retry_after: Option<Duration>,
    ) -> Rejected {
        self.tell(cx, StrategyEventKind::Rejected { reason, retry_after });
        let rejected = Rejected::new(Arc::clone(&self.strategy), reason);
        match retry_after {
            Some(after) => rejected.after(after),
            None => rejected,
        }
    }

    /// Gives up, and tells so.
    pub(crate) fn time_out(&self, cx: &Context, limit: Duration, elapsed: Duration) -> TimedOut {
        self.tell(cx, StrategyEventKind::TimedOut { limit, elapsed });
        TimedOut::new(Arc::clone(&self.strategy), limit, elapsed)
    }
}

/// What the settings of a strategy say that has a budget.
pub(super) const WITHIN: &str = ", within a budget";

/// Tells budgets apart.
pub(super) fn address(budget: &Arc<dyn Budget>) -> usize {
    Arc::as_ptr(budget).cast::<()>().addr()
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("pipeline", &self.pipeline)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

/// A strategy, and what is inside it.
#[derive(Debug, Clone)]
pub struct Then<S, I>(pub(crate) S, pub(crate) I);

/// The innermost of a pipeline: the work.
#[derive(Debug, Clone, Default)]
pub struct End(pub(crate) Place);

/// Strategies, one inside the other: [`Then`] and, innermost, [`End`].
pub trait Layers {
    /// What they can raise around what can raise `I`.
    type Raises<I: Raises>: Raises;

    /// Looks at each, from the outside to the inside.
    fn each(&self, look: &mut dyn FnMut(&dyn Described));

    /// Tells each where it is.
    fn attach(&mut self, place: &mut dyn FnMut(&'static str) -> Place);
}

/// [`Layers`] that can be inside a pipeline, whatever its work is: all but boxed ones, and those with
/// a closure that is not [`Clone`]. Each place that a pipeline has in others is a clone of it, which
/// shares all state.
#[diagnostic::on_unimplemented(
    message = "this pipeline cannot be inside another one",
    note = "what is in a `BoxPipeline` runs work of one type: put the pipeline in as it was before \
            `boxed()`, and box the whole",
    note = "the closures of its strategies have to be `Clone`"
)]
pub trait Nests: Layers + Clone {}

impl Nests for End {}

impl<S: Layer + Clone, L: Layers + Clone> Nests for Then<S, L> {}

impl Layers for End {
    type Raises<I: Raises> = I;

    fn each(&self, _: &mut dyn FnMut(&dyn Described)) {}

    fn attach(&mut self, place: &mut dyn FnMut(&'static str) -> Place) {
        self.0 = place("work");
    }
}

impl<S: Layer, L: Layers> Layers for Then<S, L> {
    type Raises<I: Raises> = S::Raises<L::Raises<I>>;

    fn each(&self, look: &mut dyn FnMut(&dyn Described)) {
        look(&self.0);
        self.1.each(look);
    }

    fn attach(&mut self, place: &mut dyn FnMut(&'static str) -> Place) {
        let here = place(self.0.kind());
        self.0.attach(here);
        self.1.attach(place);
    }
}

/// What can be asked of a strategy whatever its type.
pub trait Described {
    /// See [`Layer::kind`].
    fn kind(&self) -> &'static str;
    /// See [`Layer::settings`].
    fn settings(&self) -> String;
    /// See [`Layer::check`].
    fn check(&self, mistakes: &mut Vec<InvalidOption>);
    /// See [`Layer::facts`].
    fn facts(&self) -> Facts;
}

impl<S: Layer> Described for S {
    fn kind(&self) -> &'static str {
        Layer::kind(self)
    }

    fn settings(&self) -> String {
        Layer::settings(self)
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        Layer::check(self, mistakes);
    }

    fn facts(&self) -> Facts {
        Layer::facts(self)
    }
}
