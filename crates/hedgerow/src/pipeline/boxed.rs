//! Pipelines whose type does not say what they are made of.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::classify::{Classify, PipelineResult};
use super::context::Context;
use super::executing::{Launch, executing};
use super::execution::Terms;
use super::hedging::BoxRun;
use super::layer::{Described, Layers, Place};
use super::leaf::{Leaf, WorkRun};
use super::next::{Around, Innermost, Outcomes};
use super::outcome::{Everything, Raises};
use super::pipeline::{Built, Pipeline};
use crate::attempt::Attempt;

/// A pipeline for work of one type, whatever it is made of: to keep in a struct.
///
/// Made by [`Pipeline::boxed`]. It is used like any other pipeline; an execution costs some
/// allocations more, and its work and the futures of its attempts must be `Send`.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::{BoxPipeline, Pipeline};
///
/// struct Client {
///     pipeline: BoxPipeline<u32, String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let pipeline = Pipeline::builder()
///     .timeout(Duration::from_secs(2))
///     .hedge(Hedge::after(Duration::from_millis(150)))
///     .build()
///     .unwrap();
/// let client = Client { pipeline: pipeline.boxed() };
/// let answer = client.pipeline.execute(async |_| Ok(42)).await;
/// assert_eq!(answer, Ok(42));
/// # }
/// ```
pub type BoxPipeline<T, E> = Pipeline<Boxed<T, E>>;

impl<L: Layers + Send + Sync + 'static> Pipeline<L> {
    /// The same pipeline, for work of one type, in a type that does not say what it is made of. It
    /// shares all state with this one.
    pub fn boxed<T, E>(&self) -> BoxPipeline<T, E>
    where
        L: for<'p> Around<'p, ErasedLeaf<'p, T, E>, Run: Send>,
        T: 'static,
        E: 'static,
    {
        let layers = Boxed(Arc::new(self.clone()));
        let place = self.place().clone();
        let (strategies, warnings) = (self.strategies().to_vec(), self.warnings().to_vec());
        Pipeline::new(Built { layers, place, strategies, warnings })
    }
}

/// The strategies of a [`BoxPipeline`].
pub struct Boxed<T, E>(Arc<dyn Erased<T, E>>);

impl<T, E> fmt::Debug for Boxed<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Boxed")
    }
}

/// Work of which nobody knows the type any more, nor that of what its outcomes mean.
pub type ErasedLeaf<'w, T, E> = Leaf<ErasedWork<'w, T, E>, ErasedClassifier<'w, T, E>>;

/// A pipeline whose type nobody knows any more.
trait Erased<T, E>: Send + Sync {
    fn execute<'p>(&'p self, leaf: ErasedLeaf<'p, T, E>, terms: Terms) -> BoxRun<'p, T, E>;
}

impl<L, T, E> Erased<T, E> for Pipeline<L>
where
    L: Send + Sync,
    L: for<'p> Around<'p, ErasedLeaf<'p, T, E>, Run: Send>,
    T: 'static,
    E: 'static,
{
    fn execute<'p>(&'p self, leaf: ErasedLeaf<'p, T, E>, terms: Terms) -> BoxRun<'p, T, E> {
        Box::pin(executing::<L, ErasedLeaf<'p, T, E>>(self, leaf, terms))
    }
}

/// The future of an attempt whose type nobody knows any more.
type BoxWork<'w, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'w>>;

/// Work whose type nobody knows any more.
pub struct ErasedWork<'w, T, E>(Arc<dyn Fn(Attempt) -> BoxWork<'w, T, E> + Send + Sync + 'w>);

impl<T, E> Clone for ErasedWork<'_, T, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, E> fmt::Debug for ErasedWork<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasedWork")
    }
}

impl<'w, T, E> Outcomes for ErasedLeaf<'w, T, E> {
    type Value = T;
    type Error = E;
    type Classifier = ErasedClassifier<'w, T, E>;

    fn classifier(&self) -> &Self::Classifier {
        &self.classifier
    }
}

impl<'p, T, E> Innermost<'p> for ErasedLeaf<'p, T, E> {
    type Run = WorkRun<'p, BoxWork<'p, T, E>>;

    const FORKS: bool = false;

    fn run(&self, cx: &Context, place: &'p Place) -> Self::Run {
        WorkRun::begin(|attempt| (self.work.0)(attempt), cx, place)
    }

    fn attempts(_: &Self::Run) -> u32 {
        1
    }
}

/// What outcomes mean, of a type that nobody knows any more.
pub struct ErasedClassifier<'w, T, E>(Arc<dyn Classify<T, E> + Send + Sync + 'w>);

impl<T, E> Clone for ErasedClassifier<'_, T, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, E> fmt::Debug for ErasedClassifier<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasedClassifier")
    }
}

impl<T, E> Classify<T, E> for ErasedClassifier<'_, T, E> {
    fn handle(&self, outcome: &PipelineResult<T, E>) -> bool {
        self.0.handle(outcome)
    }

    fn is_rejection(&self, error: &E) -> bool {
        self.0.is_rejection(error)
    }

    fn retry_after(&self, outcome: &PipelineResult<T, E>) -> Option<Duration> {
        self.0.retry_after(outcome)
    }
}

impl<T, E> Layers for Boxed<T, E> {
    type Raises<I: Raises> = Everything;

    /// They were looked at before.
    fn each(&self, _: &mut dyn FnMut(&dyn Described)) {}

    fn attach(&mut self, _: &mut dyn FnMut(&'static str) -> Place) {}
}

/// The future says nothing of what it is made of, so that whatever holds it is `Send` at once.
impl<'p, T, E, F, Fut, C> Launch<'p, F, C> for Boxed<T, E>
where
    F: Fn(Attempt) -> Fut + Send + Sync + 'p,
    Fut: Future<Output = Result<T, E>> + Send + 'p,
    C: Classify<T, E> + Send + Sync + 'p,
{
    type Value = T;
    type Error = E;
    type Future = BoxRun<'p, T, E>;

    fn launch(pipeline: &'p Pipeline<Self>, leaf: Leaf<F, C>, terms: Terms) -> Self::Future {
        let Leaf { work, classifier } = leaf;
        let work = ErasedWork(Arc::new(move |attempt| Box::pin(work(attempt))));
        let classifier = ErasedClassifier(Arc::new(classifier));
        pipeline.layers().0.execute(Leaf { work, classifier }, terms)
    }
}
