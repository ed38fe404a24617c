//! What went wrong in a call.

use std::any::Any;
use std::error::Error;
use std::fmt;

use hedgerow_core::Moment;

/// The caller cancelled the call through its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was cancelled by its caller")
    }
}

impl Error for Cancelled {}

/// A handled outcome of one attempt.
#[derive(Debug)]
pub struct Failure<T, E> {
    hedge: u8,
    at: Moment,
    caught: Result<Result<T, E>, Box<dyn Any + Send>>,
}

impl<T, E> Failure<T, E> {
    pub(crate) fn new(
        hedge: u8,
        at: Moment,
        caught: Result<Result<T, E>, Box<dyn Any + Send>>,
    ) -> Self {
        Self { hedge, at, caught }
    }

    pub(crate) fn into_caught(self) -> Result<Result<T, E>, Box<dyn Any + Send>> {
        self.caught
    }

    /// Whose it is: 0 is the primary.
    pub fn hedge_number(&self) -> u8 {
        self.hedge
    }

    /// When it came, counted from the start of the call.
    pub fn at(&self) -> Moment {
        self.at
    }

    /// The outcome: an error, or a value that was handled. `None` if the attempt panicked.
    pub fn outcome(&self) -> Option<&Result<T, E>> {
        self.caught.as_ref().ok()
    }

    /// The error, if the outcome is one.
    pub fn error(&self) -> Option<&E> {
        self.outcome().and_then(|outcome| outcome.as_ref().err())
    }

    /// The outcome by value. `None` if the attempt panicked.
    pub fn into_outcome(self) -> Option<Result<T, E>> {
        self.caught.ok()
    }
}

impl<T, E: fmt::Display> fmt::Display for Failure<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {}: ", self.hedge)?;
        match &self.caught {
            Ok(Ok(_)) => f.write_str("a value that counts as a failure"),
            Ok(Err(error)) => error.fmt(f),
            Err(_) => f.write_str("it panicked"),
        }
    }
}
