//! How strategies run what is inside them.

use std::future::Future;

use super::classify::{Classify, PipelineResult};
use super::context::Context;
use super::layer::{End, Place, Then};

/// What a strategy does with whatever is inside it.
///
/// Implemented for references: `impl<'p, N: Next> Strategy<N> for &'p Mine`. The future may borrow
/// the strategy, which outlives every execution.
pub trait Strategy<N: Next> {
    /// The future of one run.
    type Run: Future<Output = PipelineResult<N::Value, N::Error>>;

    /// Whether one run may begin more than one attempt at the same time as another, or after it.
    const FORKS: bool = N::FORKS;

    /// Begins a run. Called from within a poll, so what can be decided at once may be.
    fn run(self, next: N, cx: Context) -> Self::Run;

    /// How many attempts a run has begun so far: at least 1. Asked only while attempts are not
    /// counted together ([`Context`]).
    fn attempts(run: &Self::Run) -> u32;
}

/// What is inside a strategy: the rest of the pipeline around the work. A strategy runs it once,
/// many times, or not at all.
///
/// Cloning clones what the work's closure captured: closures that capture references cost nothing.
pub trait Next: Clone {
    /// The work's value.
    type Value;
    /// The work's error.
    type Error;
    /// The future of one run.
    type Run: Future<Output = PipelineResult<Self::Value, Self::Error>>;
    /// What outcomes mean in this execution.
    type Classifier: Classify<Self::Value, Self::Error> + Clone;

    /// Whether one run may begin more than one attempt.
    const FORKS: bool;

    /// Runs it, and keeps it for another time.
    fn run(&self, cx: Context) -> Self::Run;

    /// Runs it for the last time.
    fn run_once(self, cx: Context) -> Self::Run {
        self.run(cx)
    }

    /// See [`Strategy::attempts`].
    fn attempts(run: &Self::Run) -> u32;

    /// What outcomes mean in this execution.
    fn classifier(&self) -> &Self::Classifier;
}

/// The layers from here on inwards, around the work.
#[derive(Debug)]
pub struct Rest<'p, L, W> {
    pub(crate) layers: &'p L,
    pub(crate) work: W,
}

impl<L, W: Clone> Clone for Rest<'_, L, W> {
    fn clone(&self) -> Self {
        Self { layers: self.layers, work: self.work.clone() }
    }
}

/// What is innermost: the work, or what is around a pipeline inside another.
pub trait Innermost<'p>: Clone {
    /// See [`Next::Value`].
    type Value;
    /// See [`Next::Error`].
    type Error;
    /// See [`Next::Run`].
    type Run: Future<Output = PipelineResult<Self::Value, Self::Error>>;
    /// See [`Next::Classifier`].
    type Classifier: Classify<Self::Value, Self::Error> + Clone;

    /// See [`Next::FORKS`].
    const FORKS: bool;

    /// See [`Next::run`].
    fn run(&self, cx: Context, place: &'p Place) -> Self::Run;

    /// See [`Next::run_once`].
    fn run_once(self, cx: Context, place: &'p Place) -> Self::Run {
        self.run(cx, place)
    }

    /// See [`Strategy::attempts`].
    fn attempts(run: &Self::Run) -> u32;

    /// See [`Next::classifier`].
    fn classifier(&self) -> &Self::Classifier;
}

impl<'p, W: Innermost<'p>> Next for Rest<'p, End, W> {
    type Value = W::Value;
    type Error = W::Error;
    type Run = W::Run;
    type Classifier = W::Classifier;

    const FORKS: bool = W::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&self, cx: Context) -> Self::Run {
        self.work.run(cx, &self.layers.0)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run_once(self, cx: Context) -> Self::Run {
        self.work.run_once(cx, &self.layers.0)
    }

    fn attempts(run: &Self::Run) -> u32 {
        W::attempts(run)
    }

    fn classifier(&self) -> &Self::Classifier {
        self.work.classifier()
    }
}

impl<'p, S, I, W> Next for Rest<'p, Then<S, I>, W>
where
    W: Innermost<'p>,
    Rest<'p, I, W>: Next<Value = W::Value, Error = W::Error, Classifier = W::Classifier>,
    &'p S: Strategy<Rest<'p, I, W>>,
{
    type Value = W::Value;
    type Error = W::Error;
    type Run = <&'p S as Strategy<Rest<'p, I, W>>>::Run;
    type Classifier = W::Classifier;

    const FORKS: bool = <&'p S as Strategy<Rest<'p, I, W>>>::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&self, cx: Context) -> Self::Run {
        let Then(strategy, layers) = self.layers;
        strategy.run(Rest { layers, work: self.work.clone() }, cx)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run_once(self, cx: Context) -> Self::Run {
        let Then(strategy, layers) = self.layers;
        strategy.run(Rest { layers, work: self.work }, cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        <&'p S as Strategy<Rest<'p, I, W>>>::attempts(run)
    }

    fn classifier(&self) -> &Self::Classifier {
        self.work.classifier()
    }
}
