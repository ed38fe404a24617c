//! One call with scripted attempts, and what came of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use counts::operation::{Failure, Outcome};
use tokio::time::sleep;

use crate::contender::{Call, Contender};
use crate::operations::Scripted;

/// When the hedge is due.
pub(super) const DELAY: Duration = Duration::from_millis(20);
/// When losers are counted again, for contenders that end them in the background.
const LATER: Duration = Duration::from_millis(10);

/// A contender and the attempts that it makes.
pub(super) struct Trial<C> {
    pub(super) contender: C,
    attempts: Arc<Attempts>,
}

#[derive(Default)]
struct Attempts {
    started: AtomicU32,
    live: AtomicU32,
}

/// Counts an attempt as live until it is dropped.
struct Live(Arc<Attempts>);

impl Live {
    fn enter(attempts: &Arc<Attempts>) -> Self {
        attempts.live.fetch_add(1, SeqCst);
        Self(Arc::clone(attempts))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, SeqCst);
    }
}

/// A trial of `C` whose attempts do what `script` says for their number (0 is the primary), and
/// answer or fail with a number.
pub(super) fn trial<C, A>(script: impl Fn(u32) -> A + Send + Sync + 'static) -> Trial<impl Call>
where
    C: Contender,
    A: Future<Output = Result<u32, u32>> + Send + 'static,
{
    let attempts = Arc::new(Attempts::default());
    let counted = Arc::clone(&attempts);
    let operation = Scripted::new(move |_| {
        let attempt = script(counted.started.fetch_add(1, SeqCst));
        let live = Live::enter(&counted);
        async move {
            let outcome = attempt.await;
            drop(live);
            outcome.map(u64::from).map_err(|number| Failure::new(number.to_string()))
        }
    });
    Trial { contender: C::build(operation, DELAY), attempts }
}

impl<C: Call> Trial<C> {
    /// Makes the call.
    pub(super) async fn observe(&self) -> Observation {
        self.observe_as(async { shown(&self.contender.call(0).await) }).await
    }

    /// Makes the call by way of `call`, which says how it ended.
    pub(super) async fn observe_as(&self, call: impl Future<Output = String>) -> Observation {
        let start = Instant::now();
        let outcome = call.await;
        let took = start.elapsed();
        let live = self.attempts.live.load(SeqCst);
        sleep(LATER).await;
        Observation {
            outcome,
            took,
            started: self.attempts.started.load(SeqCst),
            live,
            live_later: self.attempts.live.load(SeqCst),
        }
    }
}

/// What came of a trial; displays as the cell of a table.
pub(super) struct Observation {
    outcome: String,
    took: Duration,
    started: u32,
    live: u32,
    live_later: u32,
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ms", self.outcome, self.took.as_millis())?;
        if self.started != 2 {
            write!(f, ", {} started", self.started)?;
        }
        if self.live > 0 {
            write!(f, ", {} live (then {})", self.live, self.live_later)?;
        }
        Ok(())
    }
}

/// An outcome in short.
pub(super) fn shown(outcome: &Outcome) -> String {
    match outcome {
        Ok(attempt) => format!("Ok({attempt})"),
        Err(failure) => format!("Err({failure})"),
    }
}
