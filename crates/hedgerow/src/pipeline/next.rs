//! How strategies run what is inside them.

use std::future::Future;

use super::classify::{Classify, PipelineResult};
use super::context::Context;
use super::layer::{End, Place, Then};

/// What a strategy does with whatever is inside it.
///
/// Implemented for references: `impl<'p, N: Next> Strategy<N> for &'p Mine`. The future may borrow
/// the strategy, which outlives every execution.
pub trait Strategy<N: Outcomes> {
    /// The future of one run.
    type Run: Future<Output = PipelineResult<N::Value, N::Error>>;

    /// Whether one run may begin more than one attempt at the same time as another, or after it.
    const FORKS: bool;

    /// Begins a run. Called from within a poll, so what can be decided at once may be.
    fn run(self, next: N, cx: &Context) -> Self::Run;

    /// How many attempts a run has begun so far: at least 1. Asked only while attempts are not
    /// counted together ([`Context`]).
    fn attempts(run: &Self::Run) -> u32;
}

/// What outcomes there are of work, and of whatever is around it, and what they mean.
///
/// Apart from [`Next`] and [`Innermost`], which run it: so the compiler knows the types of any layer
/// without a look at those inside it.
pub trait Outcomes {
    /// The work's value.
    type Value;
    /// The work's error.
    type Error;
    /// What outcomes mean in this execution.
    type Classifier: Classify<Self::Value, Self::Error> + Clone;

    /// What outcomes mean in this execution.
    fn classifier(&self) -> &Self::Classifier;
}

/// What is inside a strategy: the rest of the pipeline around the work. A strategy runs it once,
/// many times, or not at all.
///
/// Cloning clones what the work's closure captured: closures that capture references cost nothing.
pub trait Next: Outcomes + Clone {
    /// The future of one run.
    type Run: Future<Output = PipelineResult<Self::Value, Self::Error>>;

    /// Whether one run may begin more than one attempt.
    const FORKS: bool;

    /// Runs it, and keeps it for another time.
    fn run(&self, cx: &Context) -> Self::Run;

    /// Runs it for the last time.
    fn run_once(self, cx: &Context) -> Self::Run {
        self.run(cx)
    }

    /// See [`Strategy::attempts`].
    fn attempts(run: &Self::Run) -> u32;
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
pub trait Innermost<'p>: Outcomes + Clone {
    /// See [`Next::Run`].
    type Run: Future<Output = PipelineResult<Self::Value, Self::Error>>;

    /// See [`Next::FORKS`].
    const FORKS: bool;

    /// See [`Next::run`].
    fn run(&self, cx: &Context, place: &'p Place) -> Self::Run;

    /// See [`Next::run_once`].
    fn run_once(self, cx: &Context, place: &'p Place) -> Self::Run {
        self.run(cx, place)
    }

    /// See [`Strategy::attempts`].
    fn attempts(run: &Self::Run) -> u32;
}

impl<L, W: Outcomes> Outcomes for Rest<'_, L, W> {
    type Value = W::Value;
    type Error = W::Error;
    type Classifier = W::Classifier;

    fn classifier(&self) -> &Self::Classifier {
        self.work.classifier()
    }
}

/// Layers, as they run around work.
pub trait Around<'p, W: Outcomes> {
    /// See [`Next::Run`].
    type Run: Future<Output = PipelineResult<W::Value, W::Error>>;

    /// See [`Next::FORKS`].
    const FORKS: bool;

    /// See [`Next::run`].
    fn run(&'p self, work: &W, cx: &Context) -> Self::Run;

    /// See [`Next::run_once`].
    fn run_once(&'p self, work: W, cx: &Context) -> Self::Run;

    /// See [`Strategy::attempts`].
    fn attempts(run: &Self::Run) -> u32;
}

impl<'p, L: Around<'p, W>, W: Outcomes + Clone> Next for Rest<'p, L, W> {
    type Run = L::Run;

    const FORKS: bool = L::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&self, cx: &Context) -> Self::Run {
        self.layers.run(&self.work, cx)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run_once(self, cx: &Context) -> Self::Run {
        self.layers.run_once(self.work, cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        L::attempts(run)
    }
}

impl<'p, W: Innermost<'p>> Around<'p, W> for End {
    type Run = W::Run;

    const FORKS: bool = W::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&'p self, work: &W, cx: &Context) -> Self::Run {
        work.run(cx, &self.0)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run_once(&'p self, work: W, cx: &Context) -> Self::Run {
        work.run_once(cx, &self.0)
    }

    fn attempts(run: &Self::Run) -> u32 {
        W::attempts(run)
    }
}

/// That the layers inside are layers as well is left to the strategy to ask for: each bound here would
/// make the compiler look at all of them once more, at every layer.
impl<'p, S: 'p, I: 'p, W> Around<'p, W> for Then<S, I>
where
    W: Outcomes + Clone,
    &'p S: Strategy<Rest<'p, I, W>>,
{
    type Run = <&'p S as Strategy<Rest<'p, I, W>>>::Run;

    const FORKS: bool = <&'p S as Strategy<Rest<'p, I, W>>>::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(&'p self, work: &W, cx: &Context) -> Self::Run {
        self.run_once(work.clone(), cx)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run_once(&'p self, work: W, cx: &Context) -> Self::Run {
        let Self(strategy, layers) = self;
        strategy.run(Rest { layers, work }, cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        <&'p S as Strategy<Rest<'p, I, W>>>::attempts(run)
    }
}
