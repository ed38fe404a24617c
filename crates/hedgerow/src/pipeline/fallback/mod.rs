//! Replaces what failed.

mod run;

use std::fmt;
use std::future::{Future, Ready, ready};

use super::builder::Builder;
use super::classify::{Classify, HandleBy, Own, PipelineResult, Predicate};
use super::error::PipelineError;
use super::layer::{Facts, Layer, Place};
use super::outcome::{MayFallShort, Raises};

pub use run::FallbackRun;

/// Replaces what failed inside: by a value, or by what a future gives.
///
/// By default everything that the [execution](super::Execution::handle) handles is replaced, and what
/// was rejected inside (an open breaker, a full limiter) as well; never an execution that its caller
/// cancelled. [`handle`](Fallback::handle) and [`classify`](Fallback::classify) say otherwise.
///
/// If the fallback fails, both errors are returned:
/// [`FallbackFailed`](super::PipelineError::FallbackFailed) has its own and the cause, unless what was
/// to be replaced was a value (a response with status 503, say). It is not asked if the execution is dropped or succeeds.
///
/// Outermost it answers whatever happens inside; inside a retry it would hide what is to be retried.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::pipeline::{Fallback, Pipeline};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let pipeline = Pipeline::builder()
///     .fallback(Fallback::value("from yesterday"))
///     .timeout(Duration::from_millis(5))
///     .build()
///     .unwrap();
/// let news = pipeline.execute(|_| std::future::pending::<Result<&str, String>>()).await;
/// assert_eq!(news, Ok("from yesterday"));
/// # }
/// ```
#[derive(Clone)]
pub struct Fallback<R, P = Unanswered, H = ()> {
    replacement: R,
    predicate: P,
    hook: H,
    /// Whether it replaces whatever fails, as nobody has said otherwise.
    replaces: bool,
    place: Place,
}

impl<T: Clone> Fallback<FixedValue<T>> {
    /// Replaces what failed by this value.
    pub fn value(value: T) -> Self {
        Self::new(FixedValue(value))
    }
}

impl<F> Fallback<MadeBy<F>> {
    /// Replaces what failed by what this closure's future gives: another source, a default made for
    /// the case. It is given what failed.
    ///
    /// ```
    /// use hedgerow::pipeline::{Fallback, Pipeline, PipelineResult};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let fallback = Fallback::with(|failed: &PipelineResult<u32, String>| {
    ///     println!("{failed:?}");
    ///     async { Ok(42) }
    /// });
    /// let pipeline = Pipeline::builder().fallback(fallback).build().unwrap();
    /// let answer = pipeline.execute(async |_| Err("down".to_owned())).await;
    /// assert_eq!(answer, Ok(42));
    /// # }
    /// ```
    pub fn with<T, E, Fut>(make: F) -> Self
    where
        F: Fn(&PipelineResult<T, E>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Self::new(MadeBy(make))
    }
}

impl<R> Fallback<R> {
    fn new(replacement: R) -> Self {
        let place = Place::default();
        Self { replacement, predicate: Unanswered, hook: (), replaces: true, place }
    }
}

impl<R, P, H> Fallback<R, P, H> {
    /// Which outcomes are replaced, whatever the execution says.
    pub fn handle<T, E, C>(self, handle: C) -> Fallback<R, HandleBy<C>, H>
    where
        C: Fn(&PipelineResult<T, E>) -> bool,
    {
        self.predicate(HandleBy(handle))
    }

    /// What outcomes mean, whatever the execution says.
    pub fn classify<C>(self, classifier: C) -> Fallback<R, Own<C>, H> {
        self.predicate(Own(classifier))
    }

    fn predicate<Q>(self, predicate: Q) -> Fallback<R, Q, H> {
        let Self { replacement, predicate: _, hook, replaces: _, place } = self;
        Fallback { replacement, predicate, hook, replaces: false, place }
    }

    /// Tells what failed before it is replaced. A panic reaches the caller.
    pub fn on_fallback<T, E, G>(self, hook: G) -> Fallback<R, P, OnFallback<G>>
    where
        G: Fn(&PipelineResult<T, E>),
    {
        let Self { replacement, predicate, hook: _, replaces, place } = self;
        Fallback { replacement, predicate, hook: OnFallback(hook), replaces, place }
    }
}

/// What is replaced unless something else is said: what the execution handles, and rejections.
#[derive(Debug, Clone, Copy)]
pub struct Unanswered;

impl<T, E> Predicate<T, E> for Unanswered {
    fn handle<I: Classify<T, E>>(&self, inherited: &I, outcome: &PipelineResult<T, E>) -> bool {
        matches!(outcome, Err(PipelineError::Rejected(_))) || inherited.handle(outcome)
    }
}

/// What takes the place of a failure.
pub trait Replacement<T, E> {
    #[doc(hidden)]
    type Run: Future<Output = Result<T, E>>;

    #[doc(hidden)]
    fn replace(&self, failed: &PipelineResult<T, E>) -> Self::Run;
}

/// The same value each time.
#[derive(Debug, Clone, Copy)]
pub struct FixedValue<T>(T);

impl<T: Clone, E> Replacement<T, E> for FixedValue<T> {
    type Run = Ready<Result<T, E>>;

    fn replace(&self, _: &PipelineResult<T, E>) -> Self::Run {
        ready(Ok(self.0.clone()))
    }
}

/// What a closure's future gives.
#[derive(Clone, Copy)]
pub struct MadeBy<F>(F);

impl<T, E, F, Fut> Replacement<T, E> for MadeBy<F>
where
    F: Fn(&PipelineResult<T, E>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Run = Fut;

    fn replace(&self, failed: &PipelineResult<T, E>) -> Fut {
        (self.0)(failed)
    }
}

impl<F> fmt::Debug for MadeBy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadeBy")
    }
}

/// What is told of a failure before it is replaced.
pub trait FallbackHook<T, E> {
    #[doc(hidden)]
    fn tell(&self, failed: &PipelineResult<T, E>);
}

impl<T, E> FallbackHook<T, E> for () {
    fn tell(&self, _: &PipelineResult<T, E>) {}
}

/// Tells a closure.
#[derive(Clone, Copy)]
pub struct OnFallback<F>(F);

impl<T, E, F: Fn(&PipelineResult<T, E>)> FallbackHook<T, E> for OnFallback<F> {
    fn tell(&self, failed: &PipelineResult<T, E>) {
        (self.0)(failed);
    }
}

impl<F> fmt::Debug for OnFallback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFallback")
    }
}

/// What a kind of replacement adds to what can be raised.
pub trait FallsShort {
    #[doc(hidden)]
    type Raises<I: Raises>: Raises;
}

impl<T> FallsShort for FixedValue<T> {
    type Raises<I: Raises> = I;
}

impl<F> FallsShort for MadeBy<F> {
    type Raises<I: Raises> = MayFallShort<I>;
}

impl<R: FallsShort, P, H> Layer for Fallback<R, P, H> {
    type Raises<I: Raises> = R::Raises<I>;

    fn kind(&self) -> &'static str {
        "fallback"
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }

    fn facts(&self) -> Facts {
        Facts { replaces: self.replaces, ..Facts::default() }
    }
}

impl<R, P, H> fmt::Debug for Fallback<R, P, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").finish_non_exhaustive()
    }
}

impl<S> Builder<S> {
    /// Adds a [`Fallback`].
    pub fn fallback<R, P, H>(self, fallback: Fallback<R, P, H>) -> Builder<(S, Fallback<R, P, H>)>
    where
        Fallback<R, P, H>: Layer,
    {
        self.with(fallback)
    }
}
