//! One execution: what the pipeline does not say, and its future.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::classify::{HandleBy, HandleValues, PipelineResult};
use super::executing::{Launch, Settling};
use super::leaf::Leaf;
use super::outcome::MayCancel;
use super::pipeline::Pipeline;
use crate::properties::Properties;
use crate::rules::Defaults;

/// One execution before it is awaited: await it for the result, or [`settle`](Execution::settle) it
/// for an outcome to match on.
///
/// It runs inside the caller's task: nothing is spawned, nothing needs to be `'static` or `Send`, and
/// dropping it drops every attempt, gives back every slot and counts nowhere as a failure. An
/// execution whose first attempt answers, with none of the setters below, allocates nothing.
///
/// `X` is what it can raise; see [`Outcome`](super::Outcome).
#[must_use = "an execution does nothing until it is awaited"]
pub struct Execution<'p, L, F, C, X> {
    pipeline: &'p Pipeline<L>,
    leaf: Leaf<F, C>,
    terms: Terms,
    raises: PhantomData<X>,
}

/// What the caller says about an execution.
#[derive(Debug, Clone)]
pub struct Terms {
    pub(super) idempotent: bool,
    pub(super) asked: Option<Box<Asked>>,
}

/// What few executions ask for.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) token: Option<CancellationToken>,
    pub(super) properties: Option<Properties>,
    pub(super) operation: Option<Arc<str>>,
    pub(super) deadline: Option<Duration>,
    tokens: bool,
}

impl Asked {
    /// Whether attempts can tell.
    pub(super) fn is_shared(&self) -> bool {
        self.tokens
            || self.token.is_some()
            || self.properties.is_some()
            || self.operation.is_some()
            || self.deadline.is_some()
    }
}

impl<'p, L, F, X> Execution<'p, L, F, Defaults, X> {
    /// What it can raise is up to who makes it.
    pub(crate) fn new(pipeline: &'p Pipeline<L>, work: F) -> Self {
        let leaf = Leaf { work, classifier: Defaults };
        let terms = Terms { idempotent: true, asked: None };
        Self { pipeline, leaf, terms, raises: PhantomData }
    }
}

impl<'p, L, F, C, X> Execution<'p, L, F, C, X> {
    fn ask(mut self, set: impl FnOnce(&mut Asked)) -> Self {
        set(self.terms.asked.get_or_insert_default());
        self
    }

    /// Whether the work may run more than once (default: yes). If not, nothing is hedged, and only
    /// work that never started is repeated, where the predicate handles rejections (T34-T36).
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.terms.idempotent = idempotent;
        self
    }

    /// What this is, for logs and traces: a name, such as a route.
    pub fn operation(self, name: impl Into<Arc<str>>) -> Self {
        self.ask(|asked| asked.operation = Some(name.into()))
    }

    /// When the caller stops waiting, counted from the start. No hedge and no retry starts at or
    /// after it, and attempts can read it; it does not end the execution, a timeout does.
    pub fn deadline(self, after: Duration) -> Self {
        self.ask(|asked| asked.deadline = Some(after))
    }

    /// Gives attempts these properties: each attempt of a hedge a copy, of which the winner's is
    /// merged back; without a hedge all attempts the same.
    pub fn properties(self, properties: &Properties) -> Self {
        self.ask(|asked| asked.properties = Some(properties.clone()))
    }

    /// Gives each attempt a token, which fires when the attempt loses, when a strategy gives up on
    /// it and when the execution is dropped (T18-T20, T51); see
    /// [`Attempt::token`](crate::Attempt::token).
    pub fn tokens(self) -> Self {
        self.ask(|asked| asked.tokens = true)
    }

    /// Ends the execution when `token` fires, with [`PipelineError::Cancelled`](super::PipelineError::Cancelled): everything inside
    /// is dropped at once, losers are not waited for. An execution that is cancelled before it
    /// starts runs nothing; an outcome of the same moment wins over the token.
    pub fn cancel_on(self, token: &CancellationToken) -> Execution<'p, L, F, C, MayCancel<X>> {
        let Self { pipeline, leaf, terms, raises: _ } =
            self.ask(|asked| asked.token = Some(token.clone()));
        Execution { pipeline, leaf, terms, raises: PhantomData }
    }

    /// What outcomes mean, for every strategy that was not told otherwise.
    pub fn classify<D>(self, classifier: D) -> Execution<'p, L, F, D, X> {
        let Self { pipeline, leaf, terms, raises } = self;
        let leaf = Leaf { work: leaf.work, classifier };
        Execution { pipeline, leaf, terms, raises }
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> Execution<'p, L, F, C, X> {
    /// Which values are failures, beside the errors that are anyway: for every strategy that was not
    /// told otherwise.
    ///
    /// ```
    /// use hedgerow::Hedge;
    /// use hedgerow::pipeline::Pipeline;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let pipeline = Pipeline::builder().hedge(Hedge::default()).build().unwrap();
    /// let status = pipeline
    ///     .execute(|attempt| async move {
    ///         Ok::<_, String>(if attempt.number() == 0 { 503 } else { 200 })
    ///     })
    ///     .handle_values(|status| *status >= 500)
    ///     .await;
    /// assert_eq!(status, Ok(200));
    /// # }
    /// ```
    pub fn handle_values<H>(self, handle: H) -> Execution<'p, L, F, HandleValues<H>, X>
    where
        H: Fn(&L::Value) -> bool,
    {
        self.classify(HandleValues(handle))
    }

    /// Which outcomes are failures, for every strategy that was not told otherwise; see
    /// [`Classify::handle`](super::Classify::handle). It takes the place of all defaults: a closure
    /// that handles every error also handles rejections, so that a retry repeats what an open breaker
    /// refused. [`handle_values`](Execution::handle_values) keeps them.
    pub fn handle<H>(self, handle: H) -> Execution<'p, L, F, HandleBy<H>, X>
    where
        H: Fn(&PipelineResult<L::Value, L::Error>) -> bool,
    {
        self.classify(HandleBy(handle))
    }

    /// Resolves to an outcome to match on instead of a result; see [`Outcome`](super::Outcome).
    pub fn settle(self) -> Settling<L::Future, X> {
        Settling::new(self.into_future())
    }
}

impl<'p, L: Launch<'p, F, C>, F, C, X> IntoFuture for Execution<'p, L, F, C, X> {
    type Output = PipelineResult<L::Value, L::Error>;
    type IntoFuture = L::Future;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        let Self { pipeline, leaf, terms, raises: _ } = self;
        L::launch(pipeline, leaf, terms)
    }
}

impl<L, F, C, X> fmt::Debug for Execution<'_, L, F, C, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("terms", &self.terms).finish_non_exhaustive()
    }
}
