//! What happened in a call.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use hedgerow_core::{Decision, End, Event, EventKind, Gate, Moment, Origin};

use crate::drive::Ending;
use crate::failure::{Cancelled, Failure};

/// One attempt of a settled call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptReport {
    /// Its number in this call: 0 is the primary.
    pub hedge_number: u8,
    /// Why it started.
    pub origin: Origin,
    /// When it started, counted from the start of the call.
    pub started: Moment,
    /// When it ended and how; `None` if it runs on without the call.
    pub ended: Option<(Moment, End)>,
    /// When it was told to stop, if it was.
    pub told_to_stop: Option<Moment>,
}

impl AttemptReport {
    /// How long it ran, if it ended.
    pub fn duration(&self) -> Option<Duration> {
        self.ended.map(|(at, _)| at.since(self.started))
    }
}

/// Everything about one call: what came back, from whom, what each attempt did and why no (more)
/// hedges were sent.
#[derive(Debug)]
pub struct Report<T, E> {
    decision: Decision,
    result: Option<Result<T, E>>,
    attempt: Option<u8>,
    attempts: Vec<AttemptReport>,
    failures: Vec<Failure<T, E>>,
    closed: Option<(Gate, Moment)>,
    log: Vec<Event>,
}

impl<T, E> Report<T, E> {
    pub(crate) fn new(ending: Ending<T, E>) -> Self {
        let Ending { decision, result, attempt, failures, closed, log } = ending;
        Self { decision, result, attempt, attempts: rows(&log), failures, closed, log }
    }

    /// How the call was decided.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// What the call returned; `None` if its caller cancelled it.
    pub fn result(&self) -> Option<&Result<T, E>> {
        self.result.as_ref()
    }

    /// The result by value.
    ///
    /// # Errors
    ///
    /// The error that the call returned, or [`Cancelled`] made into one.
    pub fn into_result(self) -> Result<T, E>
    where
        E: From<Cancelled>,
    {
        self.result.unwrap_or_else(|| Err(Cancelled.into()))
    }

    /// The result by value; `None` if the caller cancelled.
    pub fn into_outcome(self) -> Option<Result<T, E>> {
        self.result
    }

    /// The result, where an error carries every failure of the call: see [`AllFailed`].
    ///
    /// # Errors
    ///
    /// If an error was returned. `None` if the caller cancelled.
    pub fn into_detailed(self) -> Option<Result<T, AllFailed<T, E>>> {
        let Self { result, attempt, attempts, failures, .. } = self;
        Some(result?.map_err(|error| AllFailed { error, attempt, attempts, failures }))
    }

    /// The hedge number of the attempt whose outcome is returned: 0 is the primary. `None` if the
    /// caller cancelled or hedging itself failed.
    pub fn returned_attempt(&self) -> Option<u8> {
        self.attempt
    }

    /// The hedge number of the attempt whose outcome was accepted; `None` if none was.
    pub fn winner(&self) -> Option<u8> {
        match self.decision {
            Decision::Accepted(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Each attempt that started, by number.
    pub fn attempts(&self) -> &[AttemptReport] {
        &self.attempts
    }

    /// How many attempts started, the primary included.
    pub fn attempts_started(&self) -> usize {
        self.attempts.len()
    }

    /// How many hedges started.
    pub fn hedges_started(&self) -> usize {
        self.attempts.len().saturating_sub(1)
    }

    /// Every failure but the returned one, in completion order.
    pub fn failures(&self) -> &[Failure<T, E>] {
        &self.failures
    }

    /// What ended hedging before `max_hedges` was reached, and when.
    pub fn not_hedged(&self) -> Option<(Gate, Moment)> {
        self.closed
    }

    /// When the call was over, counted from its start.
    pub fn over_at(&self) -> Moment {
        self.log.last().map_or(Moment::ZERO, |event| event.at)
    }

    /// Every event of the call, in order.
    pub fn events(&self) -> &[Event] {
        &self.log
    }
}

impl<T, E: fmt::Display> fmt::Display for Report<T, E> {
    /// A line for each attempt, and one for what came of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.attempts {
            let name = if row.hedge_number == 0 { "primary" } else { "hedge" };
            write!(f, "{name} {}: started at {}", row.hedge_number, row.started)?;
            match row.ended {
                Some((at, end)) => writeln!(f, ", {} at {at}", end.name())?,
                None => writeln!(f, ", runs on")?,
            }
        }
        if let Some((gate, at)) = self.closed {
            writeln!(f, "no more hedges from {at} on: {gate}")?;
        }
        match (&self.result, self.attempt) {
            (None, _) => write!(f, "cancelled")?,
            (Some(Ok(_)), Some(attempt)) => write!(f, "answered by attempt {attempt}")?,
            (Some(Err(error)), Some(attempt)) => write!(f, "attempt {attempt} failed: {error}")?,
            (Some(_), None) => write!(f, "hedging itself failed")?,
        }
        write!(f, " at {}", self.over_at())
    }
}

/// The attempts, as the events tell of them.
fn rows(log: &[Event]) -> Vec<AttemptReport> {
    let mut rows: Vec<AttemptReport> = Vec::new();
    for event in log {
        let Some(hedge_number) = event.attempt else {
            continue;
        };
        if let EventKind::Started { origin } = event.kind {
            let started = event.at;
            rows.push(AttemptReport {
                hedge_number,
                origin,
                started,
                ended: None,
                told_to_stop: None,
            });
        }
        let Some(row) = rows.get_mut(usize::from(hedge_number)) else {
            continue;
        };
        match event.kind {
            EventKind::Ended { end, .. } => row.ended = Some((event.at, end)),
            EventKind::ToldToStop => row.told_to_stop = Some(event.at),
            _ => {}
        }
    }
    rows
}

/// The error of a call together with every other failure.
///
/// It stands for the whole by the error that the policy chose ([`error`](AllFailed::error), which
/// is also its [`source`](Error::source)).
#[derive(Debug)]
pub struct AllFailed<T, E> {
    error: E,
    attempt: Option<u8>,
    attempts: Vec<AttemptReport>,
    failures: Vec<Failure<T, E>>,
}

impl<T, E> AllFailed<T, E> {
    /// The error that stands for the whole.
    pub fn error(&self) -> &E {
        &self.error
    }

    /// The same by value.
    pub fn into_error(self) -> E {
        self.error
    }

    /// Whose error that is.
    pub fn returned_attempt(&self) -> Option<u8> {
        self.attempt
    }

    /// When each attempt started and how it ended.
    pub fn attempts(&self) -> &[AttemptReport] {
        &self.attempts
    }

    /// The other failures, in completion order.
    pub fn others(&self) -> &[Failure<T, E>] {
        &self.failures
    }
}

impl<T, E: fmt::Display> fmt::Display for AllFailed<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.attempts.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "no good answer from {count} attempt{plural}: ")?;
        match self.attempt {
            Some(attempt) => write!(f, "attempt {attempt}: {}", self.error)?,
            None => self.error.fmt(f)?,
        }
        self.failures.iter().try_for_each(|failure| write!(f, "; {failure}"))
    }
}

impl<T: fmt::Debug, E: Error + 'static> Error for AllFailed<T, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
