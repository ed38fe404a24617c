//! One run that may be answered from a cache.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::{Duration, Instant};

use hedgerow_core::StrategyEventKind;
use pin_project_lite::pin_project;

use super::Cache;
use super::store::Kept;
use crate::pipeline::classify::{PipelineResult, Predicate};
use crate::pipeline::context::Context;
use crate::pipeline::error::PipelineError;
use crate::pipeline::next::{Next, Strategy};

impl<T, K: Hash + Eq, F, P> Cache<T, K, F, P> {
    /// What is kept, if it is no older than `longest`.
    fn find(&self, key: &K, longest: Duration) -> Option<Arc<Kept<T>>> {
        let kept = self.store.get(key)?;
        (longest == Duration::MAX || self.age(&kept) < longest).then_some(kept)
    }

    fn age(&self, kept: &Kept<T>) -> Duration {
        self.now().saturating_duration_since(kept.made)
    }

    fn now(&self) -> Instant {
        self.place.time.clock().now()
    }

    fn tell(&self, cx: &Context, result: &'static str) {
        self.place.tell(cx, StrategyEventKind::Cache { result });
    }
}

impl<'p, N, K, F, P> Strategy<N> for &'p Cache<N::Value, K, F, P>
where
    N: Next<Value: Clone>,
    K: Hash + Eq + Clone,
    F: Fn(&Context) -> Option<K>,
    P: Predicate<N::Value, N::Error>,
{
    type Run = CacheRun<'p, N, K, F, P>;

    const FORKS: bool = N::FORKS;

    #[inline]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        let Some(key) = (self.key)(cx) else { return CacheRun::run(next, cx, None) };
        if let Some(kept) = self.find(&key, self.settings.ttl) {
            self.tell(cx, "hit");
            return CacheRun { stage: Stage::Kept { value: Some(kept.value.clone()) } };
        }
        self.tell(cx, "miss");
        let told = self.place.is_told().then(|| Box::new(cx.clone()));
        let (classifier, age) = (next.classifier().clone(), self.store.age());
        CacheRun::run(next, cx, Some(Miss { key, classifier, age, told, cache: self }))
    }

    fn attempts(run: &Self::Run) -> u32 {
        match &run.stage {
            Stage::Running { run, .. } => N::attempts(run),
            Stage::Over { attempts } => *attempts,
            Stage::Kept { .. } => 1,
        }
    }
}

pin_project! {
    /// A run that may be answered from a cache.
    #[must_use = "futures do nothing unless polled"]
    pub struct CacheRun<'p, N: Next, K, F, P> {
        #[pin]
        stage: Stage<'p, N, K, F, P>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<'p, N: Next, K, F, P> {
        Kept { value: Option<N::Value> },
        Running { #[pin] run: N::Run, miss: Option<Miss<'p, N, K, F, P>> },
        Over { attempts: u32 },
    }
}

/// What is to be known when the work has ended.
struct Miss<'p, N: Next, K, F, P> {
    key: K,
    classifier: N::Classifier,
    age: u64,
    told: Option<Box<Context>>,
    cache: &'p Cache<N::Value, K, F, P>,
}

impl<N, K, F, P> Miss<'_, N, K, F, P>
where
    N: Next<Value: Clone>,
    K: Hash + Eq + Clone,
    P: Predicate<N::Value, N::Error>,
{
    /// Keeps the outcome, or replaces it.
    fn ended(
        self,
        outcome: PipelineResult<N::Value, N::Error>,
    ) -> PipelineResult<N::Value, N::Error> {
        let Self { key, classifier, age, told, cache } = self;
        if matches!(outcome, Err(PipelineError::Cancelled)) {
            return outcome; // nobody waits for another answer
        }
        if cache.predicate.handle(&classifier, &outcome) {
            let Some(kept) = cache.find_stale(&key) else { return outcome };
            if let Some(cx) = told {
                let good = cache.age(&kept) < cache.settings.ttl;
                cache.tell(&cx, if good { "hit" } else { "stale" });
            }
            return Ok(kept.value.clone());
        }
        if let Ok(value) = &outcome {
            cache.store.insert(&key, Kept::new(value.clone(), cache.now()), age);
        }
        outcome
    }
}

impl<T, K: Hash + Eq, F, P> Cache<T, K, F, P> {
    /// What may answer for a failure: kept before, or by another run meanwhile.
    #[cold]
    fn find_stale(&self, key: &K) -> Option<Arc<Kept<T>>> {
        let (ttl, stale) = (self.settings.ttl, self.settings.serve_stale);
        if stale.is_zero() {
            return None;
        }
        self.find(key, ttl.saturating_add(stale))
    }
}

impl<'p, N: Next, K, F, P> CacheRun<'p, N, K, F, P> {
    fn run(next: N, cx: &Context, miss: Option<Miss<'p, N, K, F, P>>) -> Self {
        Self { stage: Stage::Running { run: next.run_once(cx), miss } }
    }
}

impl<N, K, F, P> Future for CacheRun<'_, N, K, F, P>
where
    N: Next<Value: Clone>,
    K: Hash + Eq + Clone,
    P: Predicate<N::Value, N::Error>,
{
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        let (outcome, miss, attempts) = match stage.as_mut().project() {
            StageProj::Running { mut run, miss } => {
                let outcome = ready!(run.as_mut().poll(task));
                (outcome, miss.take(), N::attempts(run.as_ref().get_ref()))
            }
            StageProj::Kept { value } => {
                let Some(value) = value.take() else { gone() };
                (Ok(value), None, 1)
            }
            StageProj::Over { .. } => gone(),
        };
        // What ran inside gives back what it held before values are cloned.
        stage.set(Stage::Over { attempts });
        Poll::Ready(match miss {
            Some(miss) => miss.ended(outcome),
            None => outcome,
        })
    }
}

#[cold]
fn gone() -> ! {
    panic!("`CacheRun` polled after completion")
}

impl<N: Next, K, F, P> fmt::Debug for CacheRun<'_, N, K, F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Kept { .. } => "answered",
            Stage::Running { .. } => "running",
            Stage::Over { .. } => "over",
        };
        f.debug_struct("CacheRun").field("stage", &stage).finish_non_exhaustive()
    }
}
