//! What outcomes mean to the strategies of a pipeline.

use std::fmt;
use std::time::Duration;

use super::error::PipelineError;
use crate::rules::Defaults;

/// The outcome of whatever a strategy has inside.
pub type PipelineResult<T, E> = Result<T, PipelineError<E>>;

/// What outcomes mean: to the retry, the breaker, the hedge, the fallback and the cache alike.
///
/// Given to an execution ([`Execution::classify`](super::Execution::classify)) it holds for every
/// strategy that was not told otherwise. Every method has a default:
///
/// | outcome | handled |
/// |---|---|
/// | a value | no |
/// | the work's own error | yes, unless it is a rejection |
/// | a timeout inside | yes: the work did start |
/// | a rejection inside | no, unless [others were let through](super::Rejected::has_started) |
/// | cancelled by the caller | no |
/// | a fallback inside failed | yes |
pub trait Classify<T, E> {
    /// Whether the outcome is a failure that another try, another attempt or a replacement may mend.
    fn handle(&self, outcome: &PipelineResult<T, E>) -> bool {
        match outcome {
            Ok(_) | Err(PipelineError::Cancelled) => false,
            Err(PipelineError::Rejected(rejected)) => rejected.has_started(),
            Err(PipelineError::Failed(error)) => !self.is_rejection(error),
            Err(PipelineError::TimedOut(_) | PipelineError::FallbackFailed(_)) => true,
        }
    }

    /// Whether an error of the work says that it never started.
    ///
    /// A hedge returns the primary's outcome if all have failed, by default: such an error then, though
    /// others may have run. Where that matters have it return the last
    /// ([`exhausted`](crate::Hedge::exhausted)).
    fn is_rejection(&self, _error: &E) -> bool {
        false
    }

    /// How long the target asks to be left alone, where the outcome says so.
    fn retry_after(&self, _outcome: &PipelineResult<T, E>) -> Option<Duration> {
        None
    }
}

impl<T, E> Classify<T, E> for Defaults {}

/// [`Classify`] as one strategy sees it: its own, or that of the execution.
///
/// Not implemented by hand: strategies take closures or a [`Classify`].
pub trait Predicate<T, E> {
    #[doc(hidden)]
    fn handle<I: Classify<T, E>>(&self, inherited: &I, outcome: &PipelineResult<T, E>) -> bool;

    /// The same for strategies: none of them mends what its caller cancelled, whatever a closure
    /// says.
    #[doc(hidden)]
    fn handles<I: Classify<T, E>>(&self, inherited: &I, outcome: &PipelineResult<T, E>) -> bool {
        !matches!(outcome, Err(PipelineError::Cancelled)) && self.handle(inherited, outcome)
    }

    #[doc(hidden)]
    fn is_rejection<I: Classify<T, E>>(&self, inherited: &I, error: &E) -> bool {
        inherited.is_rejection(error)
    }

    #[doc(hidden)]
    fn retry_after<I: Classify<T, E>>(
        &self,
        inherited: &I,
        outcome: &PipelineResult<T, E>,
    ) -> Option<Duration> {
        inherited.retry_after(outcome)
    }
}

/// As the execution says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherit;

impl<T, E> Predicate<T, E> for Inherit {
    fn handle<I: Classify<T, E>>(&self, inherited: &I, outcome: &PipelineResult<T, E>) -> bool {
        inherited.handle(outcome)
    }
}

/// Handles what never started, and inherits the rest: for a retry that goes on to another target.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverStarted;

impl<T, E> Predicate<T, E> for NeverStarted {
    fn handle<I: Classify<T, E>>(&self, inherited: &I, outcome: &PipelineResult<T, E>) -> bool {
        never_started(&Inherit, inherited, outcome)
    }
}

/// Handles what a closure says, and inherits the rest.
#[derive(Clone, Copy)]
pub struct HandleBy<F>(pub(crate) F);

impl<T, E, F> Predicate<T, E> for HandleBy<F>
where
    F: Fn(&PipelineResult<T, E>) -> bool,
{
    fn handle<I: Classify<T, E>>(&self, _: &I, outcome: &PipelineResult<T, E>) -> bool {
        (self.0)(outcome)
    }
}

impl<T, E, F> Classify<T, E> for HandleBy<F>
where
    F: Fn(&PipelineResult<T, E>) -> bool,
{
    fn handle(&self, outcome: &PipelineResult<T, E>) -> bool {
        (self.0)(outcome)
    }
}

impl<F> fmt::Debug for HandleBy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleBy")
    }
}

/// Handles what is handled by default, and values of which a closure says so.
#[derive(Clone, Copy)]
pub struct HandleValues<F>(pub(crate) F);

impl<T, E, F> Classify<T, E> for HandleValues<F>
where
    F: Fn(&T) -> bool,
{
    fn handle(&self, outcome: &PipelineResult<T, E>) -> bool {
        match outcome {
            Ok(value) => (self.0)(value),
            Err(_) => Defaults.handle(outcome),
        }
    }
}

impl<F> fmt::Debug for HandleValues<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleValues")
    }
}

/// A strategy's own [`Classify`].
#[derive(Clone, Copy)]
pub struct Own<C>(pub(crate) C);

impl<T, E, C: Classify<T, E>> Predicate<T, E> for Own<C> {
    fn handle<I: Classify<T, E>>(&self, _: &I, outcome: &PipelineResult<T, E>) -> bool {
        self.0.handle(outcome)
    }

    fn is_rejection<I: Classify<T, E>>(&self, _: &I, error: &E) -> bool {
        self.0.is_rejection(error)
    }

    fn retry_after<I: Classify<T, E>>(
        &self,
        _: &I,
        outcome: &PipelineResult<T, E>,
    ) -> Option<Duration> {
        self.0.retry_after(outcome)
    }
}

impl<C> fmt::Debug for Own<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

/// Whether an outcome says that the work never started.
pub(crate) fn never_started<T, E, I, P>(
    predicate: &P,
    inherited: &I,
    outcome: &PipelineResult<T, E>,
) -> bool
where
    I: Classify<T, E>,
    P: Predicate<T, E>,
{
    match outcome {
        Err(PipelineError::Rejected(rejected)) => !rejected.has_started(),
        Err(PipelineError::Failed(error)) => predicate.is_rejection(inherited, error),
        _ => false,
    }
}
