//! The thread front: hedged calls that block, without a runtime.
//!
//! [`Hedge::blocking`] is where it begins. The call blocks its caller; every attempt, the primary
//! too, runs on a thread of its own. Beside that nothing is different: the same race decides, by
//! the same [`Rules`](crate::Rules), and tells the same events and the same
//! [`Report`](crate::Report). Time is the system's monotonic clock, unless the policy has a clock of
//! its own. Like everything that blocks, it has no place on the worker threads of an async runtime.
//!
//! # Losers
//!
//! A thread cannot be stopped from outside. What can be done is said by the policy's `losers`:
//!
//! | `losers` | what becomes of an attempt that still runs at the decision |
//! |---|---|
//! | `Drop` | it is told to stop and not waited for |
//! | `Join { grace }` | it is told to stop and waited for, at most for `grace`; then it is let go |
//! | `Detach` | it is not told, and not waited for |
//!
//! An attempt that is let go runs on until it returns; what it returns goes to `on_discard`, on its
//! thread, and where losers are detached the observer is told of its end. One that waits for its
//! thread and has not begun never does, unless losers are detached. The same holds for every
//! attempt when the caller cancels or a panic passes through the call. Work that listens looks at
//! [`Attempt::is_cancelled`](crate::Attempt::is_cancelled), or bounds its waits by
//! [`Attempt::deadline`](crate::Attempt::deadline); how many of those that do not may pile up is
//! bounded by [`Hedge::max_abandoned`].
//!
//! # Threads that cannot be had
//!
//! A hedge for which there is no thread does not start (gate `no-thread`), and the attempts that run
//! go on. A primary for which there is none runs on the caller's thread: the call is answered, but
//! nothing is hedged meanwhile.

mod call;
pub(crate) mod park;
mod place;
mod work;

use std::sync::Arc;

use crate::attempt::Attempt;
use crate::call::HedgedCall;
use crate::hedge::Hedge;
use crate::rules::Defaults;

pub use call::{BlockingCall, NextWork};
pub use place::{Job, Seat, Threads};
pub use work::BlockingWork;

pub(crate) use place::OwnThreads;

/// A policy for calls that block: made by [`Hedge::blocking`], cheap to make for each call.
#[derive(Clone, Debug)]
pub struct Blocking<'a> {
    hedge: &'a Hedge,
    threads: Arc<dyn Threads>,
}

impl Hedge {
    /// For work that blocks its thread: calls that run each attempt on a thread of its own and
    /// need no runtime.
    ///
    /// ```
    /// use hedgerow::{Attempt, Hedge};
    ///
    /// struct Db;
    /// impl Db {
    ///     fn query(&self, _attempt: Attempt) -> Result<u32, String> { Ok(42) }
    /// }
    /// static DB: Db = Db;
    ///
    /// # fn main() -> Result<(), String> {
    /// let (hedge, db) = (Hedge::default(), &DB);
    /// let row = hedge.blocking().call(|attempt| db.query(attempt))?;
    /// assert_eq!(row, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// What becomes of losers, which no one can stop: see [`Losers`](crate::Losers), of which
    /// `Drop` means here that they are told to stop and not waited for.
    pub fn blocking(&self) -> Blocking<'_> {
        Blocking { hedge: self, threads: Arc::new(OwnThreads) }
    }
}

impl<'a> Blocking<'a> {
    /// Runs attempts on these threads instead of new ones; see [`Threads`].
    #[must_use]
    pub fn on(mut self, threads: Arc<dyn Threads>) -> Self {
        self.threads = threads;
        self
    }

    /// Hedges a piece of work, and blocks until the call is over.
    ///
    /// `work` does one attempt. It runs once for the primary and once for each hedge, at the same
    /// time if need be, on threads that may outlive the call: it shares what it needs by reference
    /// to something `'static`, or owns it.
    ///
    /// # Errors
    ///
    /// The error of the attempt that decides, or the failure that the policy chooses when all
    /// attempts failed. Hedging adds none of its own.
    ///
    /// # Panics
    ///
    /// With the panic of an attempt, a predicate or a hook; see [`Panics`](crate::Panics).
    pub fn call<F, T, E>(&self, work: F) -> Result<T, E>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.prepare(work).run()
    }

    /// The same, where more is to be said about the call before it runs.
    ///
    /// ```
    /// use hedgerow::Hedge;
    ///
    /// let hedge = Hedge::default();
    /// let status = hedge
    ///     .blocking()
    ///     .prepare(|attempt| Ok::<_, String>(if attempt.hedge_number() == 0 { 503 } else { 200 }))
    ///     .handle(|outcome| !matches!(outcome, Ok(status) if *status < 500))
    ///     .run();
    /// assert_eq!(status, Ok(200));
    /// ```
    pub fn prepare<F, T, E>(
        &self,
        work: F,
    ) -> BlockingCall<'a, impl FnMut(Attempt) -> BlockingWork<T, E> + use<F, T, E>, Defaults>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let attempt = move |attempt| {
            let work = Arc::clone(&work);
            BlockingWork::new(move || work(attempt))
        };
        let call = HedgedCall::new(self.hedge, attempt);
        BlockingCall::new(call, Arc::clone(&self.threads))
    }
}
