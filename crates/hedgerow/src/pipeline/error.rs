//! What can go wrong in a pipeline, beside the work.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::text::format_duration;

use crate::failure::Cancelled;

/// Why an execution gave no value: the work's own error, or what a strategy made of it.
///
/// The hedge and the retry add none of their own: they return the work's. A match has four kinds to
/// tell apart, whichever strategies there are; [`settle`](crate::pipeline::Execution::settle) leaves
/// out those that this pipeline cannot raise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipelineError<E> {
    /// The work's own error, unchanged.
    Failed(E),
    /// A limit passed.
    TimedOut(TimedOut),
    /// A strategy refused to start: an open breaker, a full limiter.
    Rejected(Rejected),
    /// The caller cancelled.
    Cancelled,
    /// What was to replace a failure failed as well.
    FallbackFailed(Box<FallbackFailed<E>>),
}

impl<E> PipelineError<E> {
    /// The work's own error, if it is one: that of the fallback, if there was one.
    pub fn failed(&self) -> Option<&E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::FallbackFailed(failed) => Some(&failed.error),
            _ => None,
        }
    }

    /// The same by value.
    pub fn into_failed(self) -> Option<E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::FallbackFailed(failed) => Some(failed.error),
            _ => None,
        }
    }

    /// The limit that passed, if one did.
    pub fn timed_out(&self) -> Option<&TimedOut> {
        match self {
            Self::TimedOut(timed_out) => Some(timed_out),
            _ => None,
        }
    }

    /// The rejection, if it is one.
    pub fn rejected(&self) -> Option<&Rejected> {
        match self {
            Self::Rejected(rejected) => Some(rejected),
            _ => None,
        }
    }

    /// Whether the caller cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// The same with another error of the work.
    pub fn map<F>(self, mut error: impl FnMut(E) -> F) -> PipelineError<F> {
        self.map_with(&mut error)
    }

    fn map_with<F>(self, map: &mut impl FnMut(E) -> F) -> PipelineError<F> {
        match self {
            Self::Failed(error) => PipelineError::Failed(map(error)),
            Self::TimedOut(timed_out) => PipelineError::TimedOut(timed_out),
            Self::Rejected(rejected) => PipelineError::Rejected(rejected),
            Self::Cancelled => PipelineError::Cancelled,
            Self::FallbackFailed(failed) => {
                let FallbackFailed { error, cause } = *failed;
                let (error, cause) = (map(error), cause.map(|cause| cause.map_with(map)));
                PipelineError::FallbackFailed(Box::new(FallbackFailed { error, cause }))
            }
        }
    }
}

impl<E> From<TimedOut> for PipelineError<E> {
    fn from(timed_out: TimedOut) -> Self {
        Self::TimedOut(timed_out)
    }
}

impl<E> From<Rejected> for PipelineError<E> {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl<E> From<Cancelled> for PipelineError<E> {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl<E: fmt::Display> fmt::Display for PipelineError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut(timed_out) => timed_out.fmt(f),
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Cancelled => Cancelled.fmt(f),
            Self::FallbackFailed(failed) => failed.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for PipelineError<E> {
    /// The work's own error tells its own source: this one only carries it.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::FallbackFailed(failed) => failed.source(),
            Self::TimedOut(_) | Self::Rejected(_) | Self::Cancelled => None,
        }
    }
}

/// A limit of a pipeline passed; what ran inside was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedOut {
    strategy: Arc<str>,
    limit: Duration,
    elapsed: Duration,
}

impl TimedOut {
    /// The timeout called `strategy`, whose limit is `limit`, gave up after `elapsed`.
    pub fn new(strategy: impl Into<Arc<str>>, limit: Duration, elapsed: Duration) -> Self {
        Self { strategy: strategy.into(), limit, elapsed }
    }

    /// The name of the timeout in its pipeline.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The limit.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// How long it really was: more than the limit, if the thread was busy.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, elapsed) = (format_duration(self.limit), format_duration(self.elapsed));
        write!(f, "{}: no answer within {limit} (gave up after {elapsed})", self.strategy)
    }
}

impl Error for TimedOut {}

/// Work that never started, because a strategy refused it.
///
/// Where a hedge or a retry is inside, it may be that of one attempt or try alone, while others were let
/// through: then the [work did start](Rejected::has_started), and to the strategies around this is a
/// failure like any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    strategy: Arc<str>,
    reason: &'static str,
    retry_after: Option<Duration>,
    started: bool,
}

impl Rejected {
    /// The strategy called `strategy` refused, for this reason: a short phrase.
    pub fn new(strategy: impl Into<Arc<str>>, reason: &'static str) -> Self {
        Self { strategy: strategy.into(), reason, retry_after: None, started: false }
    }

    /// The same of work that did start, in another attempt or an earlier try: for strategies of one's
    /// own that run it more than once.
    #[must_use]
    pub fn after_start(mut self) -> Self {
        self.mark_started();
        self
    }

    pub(super) fn mark_started(&mut self) {
        self.started = true;
    }

    /// Whether the work did start nevertheless, or may have, in another attempt or an earlier try:
    /// whoever runs it once more repeats it.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// The same, with the time after which it may be worth another try.
    #[must_use]
    pub fn after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// The name of the strategy in its pipeline.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// Why: a word or two, always the same for the same reason.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// When it may be worth another try, if anybody can say.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.strategy, self.reason)?;
        match self.retry_after {
            Some(after) => write!(f, "; try again in {}", format_duration(after)),
            None => Ok(()),
        }
    }
}

impl Error for Rejected {}

/// What was to replace a failure failed as well: both errors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbackFailed<E> {
    /// The error of the fallback.
    pub error: E,
    /// What it was to replace, unless that was a value.
    pub cause: Option<PipelineError<E>>,
}

impl<E> FallbackFailed<E> {
    /// `error` came instead of a replacement for `cause`.
    pub fn new(error: E, cause: Option<PipelineError<E>>) -> Self {
        Self { error, cause }
    }
}

impl<E: fmt::Display> fmt::Display for FallbackFailed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{} (the fallback, after: {cause})", self.error),
            None => write!(f, "{} (the fallback)", self.error),
        }
    }
}

impl<E: Error + 'static> Error for FallbackFailed<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
