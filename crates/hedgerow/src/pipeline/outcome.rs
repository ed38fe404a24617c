//! What came of an execution, to match on.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use super::error::{FallbackFailed, PipelineError, Rejected, TimedOut};
use crate::failure::Cancelled;

/// What came of an execution.
///
/// `X` says what this pipeline can raise beside the work's own error. What it cannot is a variant
/// that has no value, and a `match` need not (and, to keep lints quiet, should not) mention it
/// (T49):
///
/// ```
/// use std::time::Duration;
/// use hedgerow::pipeline::{Outcome, Pipeline};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let pipeline = Pipeline::builder().timeout(Duration::from_secs(2)).build().unwrap();
/// match pipeline.execute(|_| async { Ok::<_, String>(42) }).settle().await {
///     Outcome::Success(answer) => assert_eq!(answer, 42),
///     Outcome::Failed(error) => panic!("{error}"),
///     Outcome::TimedOut(timed_out) => panic!("{timed_out}"),
/// } // nothing in it can reject, and nobody can cancel it
/// # }
/// ```
pub enum Outcome<T, E, X: Raises = Everything> {
    /// A value.
    Success(T),
    /// The work's own error.
    Failed(E),
    /// A limit passed.
    TimedOut(X::TimedOut),
    /// A strategy refused to start.
    Rejected(X::Rejected),
    /// A fallback failed, too.
    FallbackFailed(X::FallbackFailed<E>),
    /// The caller cancelled, through a token.
    Cancelled(X::Cancelled),
}

impl<T, E, X: Raises> Outcome<T, E, X> {
    pub(crate) fn new(result: Result<T, PipelineError<E>>) -> Self {
        match result {
            Ok(value) => Self::Success(value),
            Err(PipelineError::Failed(error)) => Self::Failed(error),
            Err(PipelineError::TimedOut(timed_out)) => {
                Self::TimedOut(X::TimedOut::raised(timed_out))
            }
            Err(PipelineError::Rejected(rejected)) => Self::Rejected(X::Rejected::raised(rejected)),
            Err(PipelineError::Cancelled) => Self::Cancelled(X::Cancelled::raised(Cancelled)),
            Err(PipelineError::FallbackFailed(failed)) => {
                Self::FallbackFailed(X::FallbackFailed::raised(failed))
            }
        }
    }

    /// The same with every variant, for functions that take the outcome of any pipeline.
    pub fn widen(self) -> Outcome<T, E> {
        Outcome::new(self.into_result())
    }

    /// The value, or why there is none.
    ///
    /// # Errors
    ///
    /// Whatever is not a success.
    pub fn into_result(self) -> Result<T, PipelineError<E>> {
        Err(match self {
            Self::Success(value) => return Ok(value),
            Self::Failed(error) => PipelineError::Failed(error),
            Self::TimedOut(timed_out) => PipelineError::TimedOut(timed_out.given()),
            Self::Rejected(rejected) => PipelineError::Rejected(rejected.given()),
            Self::FallbackFailed(failed) => PipelineError::FallbackFailed(failed.given()),
            Self::Cancelled(cancelled) => cancelled.given().into(),
        })
    }

    /// Whether it is a value.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }
}

impl<T: fmt::Debug, E: fmt::Debug, X: Raises> fmt::Debug for Outcome<T, E, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success(value) => f.debug_tuple("Success").field(value).finish(),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
            Self::TimedOut(timed_out) => f.debug_tuple("TimedOut").field(timed_out.get()).finish(),
            Self::Rejected(rejected) => f.debug_tuple("Rejected").field(rejected.get()).finish(),
            Self::FallbackFailed(failed) => {
                f.debug_tuple("FallbackFailed").field(failed.get()).finish()
            }
            Self::Cancelled(_) => f.write_str("Cancelled"),
        }
    }
}

/// Something that can be raised, or that never is.
pub trait Raised<T>: Sized {
    #[doc(hidden)]
    fn raised(what: T) -> Self;
    #[doc(hidden)]
    fn given(self) -> T;
    #[doc(hidden)]
    fn get(&self) -> &T;
}

impl<T> Raised<T> for T {
    fn raised(what: T) -> Self {
        what
    }

    fn given(self) -> T {
        self
    }

    fn get(&self) -> &T {
        self
    }
}

/// What cannot be raised. It has no value, so that a `match` need not mention it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {}

/// What a strategy may raise.
trait Raisable {}

impl Raisable for TimedOut {}
impl Raisable for Rejected {}
impl Raisable for Cancelled {}
impl<E> Raisable for Box<FallbackFailed<E>> {}

impl<T: Raisable> Raised<T> for Never {
    fn raised(_: T) -> Self {
        unreachable!("a strategy raised what its layer says that it cannot")
    }

    fn given(self) -> T {
        match self {}
    }

    fn get(&self) -> &T {
        match *self {}
    }
}

/// What the strategies of a pipeline can raise: each of the four is itself, or [`Never`].
pub trait Raises {
    /// [`TimedOut`], or [`Never`].
    type TimedOut: Raised<TimedOut>;
    /// [`Rejected`], or [`Never`].
    type Rejected: Raised<Rejected>;
    /// [`FallbackFailed`], or [`Never`].
    type FallbackFailed<E>: Raised<Box<FallbackFailed<E>>>;
    /// [`Cancelled`], or [`Never`].
    type Cancelled: Raised<Cancelled>;
}

/// What only the work itself can fail with.
#[derive(Debug)]
pub struct Nothing(Infallible);

impl Raises for Nothing {
    type TimedOut = Never;
    type Rejected = Never;
    type FallbackFailed<E> = Never;
    type Cancelled = Never;
}

/// Whatever there is: where strategies of one's own, a hedge's actions or pipelines from a file take
/// part.
#[derive(Debug)]
pub struct Everything(Infallible);

impl Raises for Everything {
    type TimedOut = TimedOut;
    type Rejected = Rejected;
    type FallbackFailed<E> = Box<FallbackFailed<E>>;
    type Cancelled = Cancelled;
}

/// What `X` can raise, and a [`TimedOut`].
#[derive(Debug)]
pub struct MayTimeOut<X>(PhantomData<X>);

impl<X: Raises> Raises for MayTimeOut<X> {
    type TimedOut = TimedOut;
    type Rejected = X::Rejected;
    type FallbackFailed<E> = X::FallbackFailed<E>;
    type Cancelled = X::Cancelled;
}

/// What `X` can raise, and a [`Rejected`].
#[derive(Debug)]
pub struct MayReject<X>(PhantomData<X>);

impl<X: Raises> Raises for MayReject<X> {
    type TimedOut = X::TimedOut;
    type Rejected = Rejected;
    type FallbackFailed<E> = X::FallbackFailed<E>;
    type Cancelled = X::Cancelled;
}

/// What `X` can raise, and a [`FallbackFailed`].
#[derive(Debug)]
pub struct MayFallShort<X>(PhantomData<X>);

impl<X: Raises> Raises for MayFallShort<X> {
    type TimedOut = X::TimedOut;
    type Rejected = X::Rejected;
    type FallbackFailed<E> = Box<FallbackFailed<E>>;
    type Cancelled = X::Cancelled;
}

/// What `X` can raise, and a [`Cancelled`].
#[derive(Debug)]
pub struct MayCancel<X>(PhantomData<X>);

impl<X: Raises> Raises for MayCancel<X> {
    type TimedOut = X::TimedOut;
    type Rejected = X::Rejected;
    type FallbackFailed<E> = X::FallbackFailed<E>;
    type Cancelled = Cancelled;
}
