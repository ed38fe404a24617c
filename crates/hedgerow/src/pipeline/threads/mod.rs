//! Pipelines for work that blocks, on threads.

mod run;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::builder::{Builder, InvalidPipeline, Nest};
use super::classify::{HandleBy, HandleValues, PipelineResult};
use super::executing::Launch;
use super::execution::Execution;
use super::layer::{End, Layers};
use super::outcome::{MayCancel, MayReject, Nothing, Outcome, Raises};
use super::pipeline::Pipeline;
use crate::attempt::Attempt;
use crate::properties::Properties;
use crate::rules::Defaults;
use crate::threads::park::Parker;
use crate::threads::{OwnThreads, Threads};

pub use run::{OnThreads, ThreadRun};

/// A pipeline for work that blocks its thread: each attempt has a thread of its own, and the caller
/// waits on its own.
///
/// The strategies are those of any pipeline. What gives up on an attempt cannot stop it: it lets go
/// of it, and tells it by its [token](crate::Attempt::token), which every attempt has here; work that
/// is worth stopping asks [`Attempt::is_cancelled`] now and then. Attempts of a hedge whose losers are
/// detached are not told, and run on (M7): `Hedge::abandoning()` in a wrap is `THedgingPolicy` in
/// one (M17).
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::Pipeline;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # fn query(_attempt: hedgerow::Attempt) -> Result<u32, std::fmt::Error> { Ok(42) }
/// let pipeline = Pipeline::builder()
///     .timeout(Duration::from_secs(2))
///     .hedge(Hedge::abandoning().max_hedges(2))
///     .build_blocking()?;
/// let row = pipeline.execute(query)?;
/// assert_eq!(row, 42);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BlockingPipeline<L> {
    pipeline: Pipeline<L>,
    threads: Arc<dyn Threads>,
}

impl<S> Builder<S> {
    /// The pipeline, for work that blocks.
    ///
    /// # Errors
    ///
    /// As [`build`](Builder::build); only here losers may be detached.
    pub fn build_blocking(self) -> Result<BlockingPipeline<S::Layers>, InvalidPipeline>
    where
        S: Nest<End>,
    {
        let pipeline = self.finish(true)?;
        Ok(BlockingPipeline { pipeline, threads: Arc::new(OwnThreads) })
    }
}

impl<L> Clone for BlockingPipeline<L> {
    fn clone(&self) -> Self {
        Self { pipeline: self.pipeline.clone(), threads: Arc::clone(&self.threads) }
    }
}

impl<L> fmt::Display for BlockingPipeline<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pipeline.fmt(f)
    }
}

impl<L: Layers> BlockingPipeline<L> {
    /// Runs attempts on these threads instead of new ones; see [`Threads`].
    #[must_use]
    pub fn on(self, threads: Arc<dyn Threads>) -> Self {
        Self { threads, ..self }
    }

    /// The pipeline itself: its strategies, its warnings.
    pub fn pipeline(&self) -> &Pipeline<L> {
        &self.pipeline
    }

    /// Runs work through the pipeline, and blocks until it is over. What an attempt uses may be in
    /// use after that, so the closure owns it: an `Arc`, a pool.
    ///
    /// # Errors
    ///
    /// The work's own error, or what a strategy made of it.
    ///
    /// # Panics
    ///
    /// With the panic of an attempt, a predicate or a hook.
    pub fn execute<'p, F, T, E>(&'p self, work: F) -> PipelineResult<T, E>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
        L: Launch<'p, OnThreads<F>, Defaults, Value = T, Error = E>,
    {
        self.prepare(work).run()
    }

    /// The same, where more is to be said before it runs. Beside what its strategies raise it may be
    /// rejected, if a hedge decides for which there is no thread.
    pub fn prepare<F, T, E>(
        &self,
        work: F,
    ) -> BlockingExecution<'_, L, OnThreads<F>, Defaults, MayReject<L::Raises<Nothing>>>
    where
        F: Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    {
        let work = OnThreads { work: Arc::new(work), threads: Arc::clone(&self.threads) };
        BlockingExecution(Execution::new(&self.pipeline, work).tokens())
    }
}

/// One execution that will block: [`run`](BlockingExecution::run) it for the result, or
/// [`settle`](BlockingExecution::settle) it for an outcome to match on. The setters are those of
/// [`Execution`].
#[derive(Debug)]
#[must_use = "a prepared execution does nothing until it is run"]
pub struct BlockingExecution<'p, L, F, C, X>(Execution<'p, L, F, C, X>);

impl<'p, L, F, C, X> BlockingExecution<'p, L, F, C, X> {
    /// See [`Execution::idempotent`].
    pub fn idempotent(self, idempotent: bool) -> Self {
        Self(self.0.idempotent(idempotent))
    }

    /// See [`Execution::operation`].
    pub fn operation(self, name: impl Into<Arc<str>>) -> Self {
        Self(self.0.operation(name))
    }

    /// See [`Execution::deadline`].
    pub fn deadline(self, after: Duration) -> Self {
        Self(self.0.deadline(after))
    }

    /// See [`Execution::properties`].
    pub fn properties(self, properties: &Properties) -> Self {
        Self(self.0.properties(properties))
    }

    /// See [`Execution::cancel_on`]; the token may fire on whatever thread.
    pub fn cancel_on(
        self,
        token: &CancellationToken,
    ) -> BlockingExecution<'p, L, F, C, MayCancel<X>> {
        BlockingExecution(self.0.cancel_on(token))
    }

    /// See [`Execution::classify`].
    pub fn classify<D>(self, classifier: D) -> BlockingExecution<'p, L, F, D, X> {
        BlockingExecution(self.0.classify(classifier))
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> BlockingExecution<'p, L, F, C, X> {
    /// See [`Execution::handle`].
    pub fn handle<H>(self, handle: H) -> BlockingExecution<'p, L, F, HandleBy<H>, X>
    where
        H: Fn(&PipelineResult<L::Value, L::Error>) -> bool,
    {
        BlockingExecution(self.0.handle(handle))
    }

    /// See [`Execution::handle_values`].
    pub fn handle_values<H>(self, handle: H) -> BlockingExecution<'p, L, F, HandleValues<H>, X>
    where
        H: Fn(&L::Value) -> bool,
    {
        BlockingExecution(self.0.handle_values(handle))
    }

    /// Runs it, and blocks until it is over.
    ///
    /// # Errors
    ///
    /// As [`BlockingPipeline::execute`].
    ///
    /// # Panics
    ///
    /// As [`BlockingPipeline::execute`].
    pub fn run(self) -> PipelineResult<L::Value, L::Error> {
        Arc::new(Parker::default()).block_on(self.0.into_future())
    }

    /// Runs it, and returns an outcome to match on.
    ///
    /// # Panics
    ///
    /// As [`BlockingPipeline::execute`].
    pub fn settle(self) -> Outcome<L::Value, L::Error, X>
    where
        X: Raises,
    {
        Arc::new(Parker::default()).block_on(self.0.settle())
    }
}
