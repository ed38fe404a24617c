//! The hedge, as a strategy.

mod action;
mod run;

use std::fmt;
use std::sync::Arc;

use hedgerow_core::{Budget, Delay, Losers, Schedule};

use super::classify::{HandleBy, Inherit, Own, PipelineResult};
use super::layer::{Facts, Layer, Place, WITHIN, address};
use super::outcome::Raises;
use crate::clock::Time;
use crate::hedge::Hedge;
use crate::rules::NextHedge;

pub use action::{ActBy, ActionResult, Actions, BoxRun, Repeat, RestOfPipeline};
pub use run::{Attempts, HedgeRules, HedgeRun};

/// What is told before a hedge starts.
type Hook = Arc<dyn Fn(&NextHedge<'_>) + Send + Sync>;

/// The delay before a hedge.
type DelayBy = Arc<dyn Fn(&NextHedge<'_>) -> Delay + Send + Sync>;

/// The hedge as a strategy: each of its attempts runs what is inside it.
///
/// `.hedge(policy)` is this with nothing else said. It adds no error of its own (T39). Rejections of
/// an inner breaker or limiter are told from failures: what a rejected hedge does is the policy's
/// [`rejected_hedge`](Hedge::rejected_hedge), whether a rejected primary is hedged its
/// [`hedge_rejections`](Hedge::hedge_rejections).
///
/// Hooks and generators see the hedge's own numbers: 1 is the first hedge (T23).
#[derive(Clone)]
pub struct Hedging<P = Inherit, A = Repeat> {
    hedge: Hedge,
    predicate: P,
    actions: A,
    on_hedge: Option<Hook>,
    delay_with: Option<DelayBy>,
    place: Place,
    /// Losers run on, on threads of their own: they are not told to stop.
    detached: bool,
}

impl Hedging {
    /// Hedges what is inside by this policy.
    pub fn new(hedge: Hedge) -> Self {
        let (predicate, actions, place) = (Inherit, Repeat, Place::default());
        let (on_hedge, delay_with) = (None, None);
        Self { hedge, predicate, actions, on_hedge, delay_with, place, detached: false }
    }
}

impl From<Hedge> for Hedging {
    fn from(hedge: Hedge) -> Self {
        Self::new(hedge)
    }
}

impl<P, A> Hedging<P, A> {
    /// Which outcomes are worth another attempt, whatever the execution says.
    pub fn handle<T, E, H>(self, handle: H) -> Hedging<HandleBy<H>, A>
    where
        H: Fn(&PipelineResult<T, E>) -> bool,
    {
        self.predicate(HandleBy(handle))
    }

    /// What outcomes mean, whatever the execution says.
    pub fn classify<C>(self, classifier: C) -> Hedging<Own<C>, A> {
        self.predicate(Own(classifier))
    }

    fn predicate<Q>(self, predicate: Q) -> Hedging<Q, A> {
        let Self { hedge, predicate: _, actions, on_hedge, delay_with, place, detached } = self;
        Hedging { hedge, predicate, actions, on_hedge, delay_with, place, detached }
    }

    /// Tells each hedge just before it starts. A panic ends the execution (T41).
    pub fn on_hedge(mut self, hook: impl Fn(&NextHedge<'_>) + Send + Sync + 'static) -> Self {
        self.on_hedge = Some(Arc::new(hook));
        self
    }

    /// The delay before each hedge, asked right after the previous attempt started (T32, T33).
    pub fn delay_with(
        mut self,
        delay: impl Fn(&NextHedge<'_>) -> Delay + Send + Sync + 'static,
    ) -> Self {
        self.delay_with = Some(Arc::new(delay));
        self
    }

    /// What a hedge does instead of the same work: another region, another endpoint (T27). Never
    /// asked for the primary (T29).
    ///
    /// What it runs goes around every strategy inside the hedge (T30), unless it awaits the
    /// [`RestOfPipeline`] that it is given: that runs those strategies around the original work
    /// (T31).
    ///
    /// ```
    /// use hedgerow::pipeline::{Hedging, Pipeline, RestOfPipeline, ActionResult};
    /// use hedgerow::{Hedge, NextAction, NextHedge};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let hedging = Hedging::new(Hedge::default().max_hedges(2)).next_action(
    ///     |next: &NextHedge<'_>, rest: RestOfPipeline<'_, u32, String>| match next.hedge_number() {
    ///         1 => Ok(NextAction::Run(Box::pin(async { Ok(42) }))), // the other region
    ///         _ => Ok(NextAction::Run(Box::pin(async { rest.await }))),
    ///     },
    /// );
    /// let pipeline = Pipeline::builder().with(hedging).build().unwrap();
    /// let answer = pipeline.execute(|_| async { Err("down".to_owned()) }).await;
    /// assert_eq!(answer, Ok(42));
    /// # }
    /// ```
    pub fn next_action<T, E, F>(self, next: F) -> Hedging<P, ActBy<F>>
    where
        F: for<'a> Fn(&NextHedge<'_>, RestOfPipeline<'a, T, E>) -> ActionResult<'a, T, E>,
    {
        let Self { hedge, predicate, actions: _, on_hedge, delay_with, place, detached } = self;
        let actions = ActBy(next);
        Hedging { hedge, predicate, actions, on_hedge, delay_with, place, detached }
    }

    /// The same within this budget.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.hedge = self.hedge.budget(budget);
        self
    }

    /// Goes on with what an earlier one has learned and saved up.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn taking_over(&mut self, earlier: &Self) {
        // Observers and the clock are the pipeline's.
        let (observer, time) = (self.hedge.policy().observer.clone(), self.hedge.time().clone());
        let hedge = self.hedge.clone().taking_over(&earlier.hedge);
        self.hedge = hedge.observed_by(observer, time);
    }

    /// Whether anybody can see the numbers of the hedges that are to start.
    fn has_hooks(&self) -> bool {
        self.on_hedge.is_some() || self.delay_with.is_some()
    }
}

impl<P: fmt::Debug, A: Acts> Layer for Hedging<P, A> {
    type Raises<I: Raises> = A::Raises<I>;

    fn kind(&self) -> &'static str {
        "hedge"
    }

    fn settings(&self) -> String {
        let policy = self.hedge.policy();
        let when = match (&policy.learner, &policy.schedule) {
            (Some(_), _) => "learned delay".to_owned(),
            (None, Schedule::Every(delay)) => delay.to_string(),
            (None, Schedule::Steps(steps)) => {
                let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
                steps.join(", ")
            }
        };
        let within = if policy.budget.is_some() { WITHIN } else { "" };
        match policy.max_hedges.get() {
            0 => "off".to_owned(),
            1 => format!("{when}{within}"),
            most => format!("{when}, at most {most}{within}"),
        }
    }

    fn attach(&mut self, place: Place) {
        // Not again where the pipeline is put into another: it is told the same then.
        if let (Some(observer), None) = (&place.observer, &self.place.observer) {
            self.hedge = self.hedge.clone().observer(Arc::clone(observer));
        }
        match &place.time {
            _ if !self.hedge.time().is_default() => {}
            Time::Automatic => {}
            Time::Ring => self.hedge = self.hedge.clone().ring_timer(),
            Time::Own(clock) => self.hedge = self.hedge.clone().clock(Arc::clone(clock)),
        }
        if let Some(abandoned) = self.hedge.counts_abandoned() {
            // Counted for the first hedge that bounds them.
            let _ = place.abandoned.set(Arc::clone(abandoned));
        }
        if place.threads && self.hedge.policy().losers == Losers::Detach {
            self.detached = true;
            self.hedge = self.hedge.clone().losers(Losers::Drop);
        }
        let pays = self.hedge.policy().budget.as_ref().is_some_and(|budget| place.pays(budget));
        self.hedge = self.hedge.clone().paying(pays);
        self.place = place;
    }

    fn facts(&self) -> Facts {
        let policy = self.hedge.policy();
        let hedges = u64::from(policy.max_hedges.get());
        let fixed = policy.learner.is_none() && self.delay_with.is_none() && hedges > 0;
        let hedge_after = match policy.schedule.delay(1) {
            Delay::After(delay) if fixed => Some(delay),
            _ => None,
        };
        let detaches = self.detached || policy.losers == Losers::Detach;
        let joins = policy.losers == Losers::Join { grace: None };
        let budgets = policy.budget.iter().map(address).collect();
        let attempts = Some(1 + hedges);
        Facts { attempts, hedge_after, detaches, joins, budgets, ..Facts::default() }
    }
}

/// What its actions add to what a hedge can raise.
pub trait Acts {
    #[doc(hidden)]
    type Raises<I: Raises>: Raises;
}

impl Acts for Repeat {
    type Raises<I: Raises> = I;
}

impl<F> Acts for ActBy<F> {
    /// Nobody knows what runs instead.
    type Raises<I: Raises> = crate::pipeline::outcome::Everything;
}

impl<P: fmt::Debug, A> fmt::Debug for Hedging<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedging")
            .field("hedge", &self.hedge)
            .field("predicate", &self.predicate)
            .finish_non_exhaustive()
    }
}
