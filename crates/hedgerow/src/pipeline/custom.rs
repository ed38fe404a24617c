//! Strategies of one's own.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use pin_project_lite::pin_project;

use super::context::Context;
use super::layer::{Facts, Layer, Place};
use super::next::{Next, Strategy};
use super::outcome::{Everything, Raises};
use crate::attempt::AttemptCounter;

/// A strategy of one's own in a pipeline; see [`Builder::strategy`](super::Builder::strategy).
pub struct Custom<S> {
    name: &'static str,
    strategy: Arc<S>,
}

impl<S> Custom<S> {
    pub(crate) fn new(name: &'static str, strategy: S) -> Self {
        Self { name, strategy: Arc::new(strategy) }
    }
}

/// Clones share the strategy.
impl<S> Clone for Custom<S> {
    fn clone(&self) -> Self {
        Self { name: self.name, strategy: Arc::clone(&self.strategy) }
    }
}

impl<S: fmt::Debug> fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.strategy.fmt(f)
    }
}

impl<S: fmt::Debug> Layer for Custom<S> {
    /// Nobody knows what it raises.
    type Raises<I: Raises> = Everything;

    fn kind(&self) -> &'static str {
        self.name
    }

    fn attach(&mut self, _: Place) {}

    /// Nobody knows how often it runs what is inside.
    fn facts(&self) -> Facts {
        Facts { attempts: None, ..Facts::default() }
    }
}

/// Nobody knows how often it runs what is inside, so attempts are counted together: that costs an
/// allocation for each run.
impl<'p, S, N> Strategy<N> for &'p Custom<S>
where
    N: Next,
    &'p S: CustomStrategy<N>,
{
    type Run = CustomRun<<&'p S as CustomStrategy<N>>::Run>;

    const FORKS: bool = true;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        CustomRun::counted(cx, |cx| (&*self.strategy).run(next, cx))
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// What a strategy of one's own does with whatever is inside it.
///
/// Implemented for references, as the future may borrow the strategy:
///
/// ```
/// use std::pin::Pin;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use hedgerow::pipeline::{Context, CustomStrategy, Next, Pipeline, PipelineResult};
///
/// /// Counts what comes out.
/// #[derive(Debug, Default)]
/// struct Count(AtomicU64);
///
/// impl<'p, N> CustomStrategy<N> for &'p Count
/// where
///     N: Next<Run: Send> + Send + 'p,
/// {
///     type Run = Pin<Box<dyn Future<Output = PipelineResult<N::Value, N::Error>> + Send + 'p>>;
///
///     fn run(self, next: N, cx: Context) -> Self::Run {
///         let run = next.run_once(&cx);
///         Box::pin(async move {
///             let outcome = run.await;
///             self.0.fetch_add(1, Ordering::Relaxed);
///             outcome
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let pipeline = Pipeline::builder().strategy("count", Count::default()).build().unwrap();
/// let answer = pipeline.execute(|_| async { Ok::<_, String>(7) }).await;
/// assert_eq!(answer, Ok(7));
/// # }
/// ```
///
/// One that runs it more than once keeps it with [`Next::run`], and gives it [`Context::next_try`] from
/// the second time on, so that no number is used twice. Work that is not
/// [idempotent](Context::is_idempotent) is not to be run again.
pub trait CustomStrategy<N: Next> {
    /// The future of one run.
    type Run: Future<Output = super::PipelineResult<N::Value, N::Error>>;

    /// Begins a run. Called from within a poll.
    fn run(self, next: N, cx: Context) -> Self::Run;
}

pin_project! {
    /// A run of strategies of which nobody knows how many attempts they begin.
    #[derive(Debug)]
    pub struct CustomRun<F> {
        #[pin]
        run: F,
        counter: Option<AttemptCounter>,
        first: u32,
    }
}

impl<F> CustomRun<F> {
    /// Begins a run whose attempts are counted.
    pub(crate) fn counted(cx: &Context, run: impl FnOnce(Context) -> F) -> Self {
        let first = cx.attempt().number();
        let cx = cx.counted();
        let counter = cx.counter().cloned();
        Self { run: run(cx), counter, first }
    }

    /// How many attempts it has begun so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.counter.as_ref().map_or(1, |counter| counter.upcoming().saturating_sub(self.first))
    }
}

impl<F: Future> Future for CustomRun<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<F::Output> {
        self.project().run.poll(cx)
    }
}
