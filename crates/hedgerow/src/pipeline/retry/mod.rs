//! Repeats what is inside when it fails.

mod run;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_core::text::format_duration;
use hedgerow_core::{Backoff, Budget, Growth, InvalidOption};

use super::builder::Builder;
use super::classify::{HandleBy, Inherit, NeverStarted, Own, PipelineResult};
use super::layer::{Facts, Layer, Place, WITHIN, address};
use super::outcome::Raises;

pub use run::RetryRun;

type OnRetry = Arc<dyn Fn(&NextRetry) + Send + Sync>;
type DelayBy = Arc<dyn Fn(&NextRetry) -> Option<Duration> + Send + Sync>;

/// Repeats what is inside when it fails, after a wait.
///
/// | option | values | default |
/// |---|---|---|
/// | `max_retries` | how many tries beyond the first; [`forever`](Retry::forever) | 3 |
/// | growth | [`exponential`](Retry::exponential), [`constant`](Retry::constant), [`linear`](Retry::linear), [`decorrelated`](Retry::decorrelated), [`immediately`](Retry::immediately) | what it is made by |
/// | `base` | the first wait | 2 s |
/// | `factor` | how the wait grows, if it is exponential: from 1 | 2 |
/// | `max_delay` | the longest wait; not less than `base` | 30 s |
/// | `jitter` | the share of a wait that is left to chance, 0 to 1 | 0 |
/// | `budget` | what further tries cost | none |
///
/// A try is repeated if its outcome is handled: by [`handle`](Retry::handle) or
/// [`classify`](Retry::classify), or as the [execution](super::Execution::handle) says, or by the
/// [defaults](super::Classify). The outcome of the last try is returned. A handled outcome that says
/// how long its target wants to be left alone ([`Classify::retry_after`](super::Classify::retry_after),
/// [`Rejected::retry_after`](super::Rejected::retry_after)) is waited for so long, at most
/// `max_delay`.
///
/// A wait that would last beyond what is around (the limit of a [`Timeout`](super::Timeout), the
/// deadline of the execution) is not begun: the outcome is returned at once. Work that must not run
/// twice ([`idempotent(false)`](super::Execution::idempotent)) is repeated only if it never started,
/// and the predicate handles that.
///
/// Around a hedge a retry multiplies: (1 + retries) x (1 + hedges) attempts, if everything fails,
/// unless they share a [`budget`](Retry::budget). Do not retry at several levels of a system.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::pipeline::{Pipeline, Retry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let retry = Retry::exponential().base(Duration::from_millis(1)).max_retries(2).jitter(0.5);
/// let pipeline = Pipeline::builder().retry(retry).build().unwrap();
/// let answer = pipeline
///     .execute(async |attempt| if attempt.number() < 2 { Err("not yet") } else { Ok(42) })
///     .await;
/// assert_eq!(answer, Ok(42));
/// # }
/// ```
#[derive(Clone)]
pub struct Retry<P = Inherit> {
    backoff: Backoff,
    /// `None` is without bound.
    max_retries: Option<u32>,
    predicate: P,
    hook: Option<OnRetry>,
    delay_with: Option<DelayBy>,
    budget: Option<Arc<dyn Budget>>,
    seed: Option<u64>,
    /// How many draws there were.
    draws: Arc<AtomicU64>,
    place: Place,
}

/// A retry that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextRetry {
    /// Which: 1 is the first retry.
    pub retry: u32,
    /// The wait before it.
    pub delay: Duration,
}

/// How the waits grow.
impl Retry {
    /// The first wait, unless it is set.
    const BASE: Duration = Duration::from_secs(2);

    fn with(growth: Growth, base: Duration) -> Self {
        Self {
            backoff: Backoff::new(growth, base),
            max_retries: Some(3),
            predicate: Inherit,
            hook: None,
            delay_with: None,
            budget: None,
            seed: None,
            draws: Arc::default(),
            place: Place::default(),
        }
    }

    /// At the next of so many targets, at once, what one of them refused: the others have not.
    pub(super) fn passing_over(targets: usize) -> Retry<NeverStarted> {
        let others = u32::try_from(targets.saturating_sub(1)).unwrap_or(u32::MAX);
        Self::immediately().max_retries(others).max_delay(Duration::ZERO).predicate(NeverStarted)
    }

    /// Each wait is twice the one before; the first is 2 s.
    pub fn exponential() -> Self {
        Self::with(Growth::Exponential(2.0), Self::BASE)
    }

    /// Each wait is 2 s.
    pub fn constant() -> Self {
        Self::with(Growth::Constant, Self::BASE)
    }

    /// Each wait is 2 s longer than the one before.
    pub fn linear() -> Self {
        Self::with(Growth::Linear, Self::BASE)
    }

    /// Each wait is between 2 s and three times the one before, by chance.
    pub fn decorrelated() -> Self {
        Self::with(Growth::Decorrelated, Self::BASE)
    }

    /// No wait.
    pub fn immediately() -> Self {
        Self::with(Growth::Constant, Duration::ZERO)
    }
}

/// The options.
impl<P> Retry<P> {
    /// How many tries may follow the first.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// Repeats as long as it fails; something around it has to end it.
    pub fn forever(mut self) -> Self {
        self.max_retries = None;
        self
    }

    /// The first wait.
    pub fn base(mut self, base: Duration) -> Self {
        self.backoff.base = base;
        self
    }

    /// Each wait is so many times the one before: an exponential back-off.
    pub fn factor(mut self, factor: f64) -> Self {
        self.backoff.growth = Growth::Exponential(factor);
        self
    }

    /// The longest wait.
    pub fn max_delay(mut self, max: Duration) -> Self {
        self.backoff.max = max;
        self
    }

    /// How much of a wait is left to chance: 0 is nothing, 1 all of it. The wait only becomes
    /// shorter by it.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// Draws the same numbers in every run of the program: for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What further tries cost: each takes one from this budget, and none starts if it refuses. Each
    /// execution that completes pays in, once: by the outermost strategy that shares the budget.
    ///
    /// A budget by ratio starts with nothing saved up: at 5 % the first retry is granted after twenty
    /// executions, and a single failure among them is not repeated. For rare failures leave the budget
    /// out, or give one that has more to begin with.
    ///
    /// Shared with the hedges inside, it makes a sum of the product of tries and hedges: one attempt,
    /// and as many more as it grants (PR-68).
    pub fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Tells each retry before the wait for it begins. A panic reaches the caller.
    pub fn on_retry(mut self, hook: impl Fn(&NextRetry) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// The wait before each retry; `None` is the one that it is told. At most `max_delay`.
    pub fn delay_with(
        mut self,
        delay: impl Fn(&NextRetry) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.delay_with = Some(Arc::new(delay));
        self
    }

    /// Which outcomes are repeated, whatever the execution says.
    pub fn handle<T, E, H>(self, handle: H) -> Retry<HandleBy<H>>
    where
        H: Fn(&PipelineResult<T, E>) -> bool,
    {
        self.predicate(HandleBy(handle))
    }

    /// What outcomes mean, whatever the execution says.
    pub fn classify<C>(self, classifier: C) -> Retry<Own<C>> {
        self.predicate(Own(classifier))
    }

    fn predicate<Q>(self, predicate: Q) -> Retry<Q> {
        Retry {
            backoff: self.backoff,
            max_retries: self.max_retries,
            predicate,
            hook: self.hook,
            delay_with: self.delay_with,
            budget: self.budget,
            seed: self.seed,
            draws: self.draws,
            place: self.place,
        }
    }

    /// A number from 0 to 1 by chance.
    fn draw(&self) -> f64 {
        match self.seed {
            None => fastrand::f64(),
            Some(seed) => {
                let drawn = self.draws.fetch_add(1, Ordering::Relaxed);
                fastrand::Rng::with_seed(seed.wrapping_add(drawn)).f64()
            }
        }
    }

    /// The wait before this retry, where the outcome asked for `asked`.
    fn delay(&self, retry: u32, before: Option<Duration>, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.min(self.backoff.max);
        }
        let is_chance = self.backoff.jitter > 0.0 || self.backoff.growth == Growth::Decorrelated;
        let draw = if is_chance { self.draw() } else { 0.0 };
        let delay = self.backoff.delay(retry, before, draw);
        let by = self.delay_with.as_ref().and_then(|by| by(&NextRetry { retry, delay }));
        by.map_or(delay, |delay| delay.min(self.backoff.max))
    }
}

impl<P: fmt::Debug> Layer for Retry<P> {
    type Raises<I: Raises> = I;

    fn kind(&self) -> &'static str {
        "retry"
    }

    fn settings(&self) -> String {
        let times = match self.max_retries {
            None => "for ever".to_owned(),
            Some(1) => "once".to_owned(),
            Some(times) => format!("{times} times"),
        };
        let Backoff { growth, base, jitter, .. } = self.backoff;
        let base = format_duration(base);
        let waits = match growth {
            _ if self.backoff.base.is_zero() => "at once".to_owned(),
            Growth::Constant => format!("after {base}"),
            Growth::Linear => format!("after {base}, {base} more each time"),
            Growth::Exponential(factor) => format!("after {base}, times {factor}"),
            Growth::Decorrelated => format!("after {base}, decorrelated"),
            _ => String::new(),
        };
        let jitter = if jitter > 0.0 { format!(", jitter {jitter}") } else { String::new() };
        let within = if self.budget.is_some() { WITHIN } else { "" };
        format!("{times}, {waits}{jitter}{within}")
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        self.backoff.check(mistakes);
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }

    fn facts(&self) -> Facts {
        let attempts = self.max_retries.map(|retries| 1 + u64::from(retries));
        let budgets = self.budget.iter().map(address).collect();
        let waits = attempts != Some(1) && self.delay_with.is_none();
        let drawn = if self.backoff.growth == Growth::Decorrelated { 0.0 } else { 1.0 };
        let retry_after = waits.then(|| self.backoff.delay(1, None, drawn));
        Facts { attempts, retry_after, budgets, ..Facts::default() }
    }
}

impl<P: fmt::Debug> fmt::Debug for Retry<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("backoff", &self.backoff)
            .field("max_retries", &self.max_retries)
            .field("predicate", &self.predicate)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl<S> Builder<S> {
    /// Adds a [`Retry`].
    pub fn retry<P>(self, retry: Retry<P>) -> Builder<(S, Retry<P>)>
    where
        Retry<P>: Layer,
    {
        self.with(retry)
    }
}
