//! One hedged run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use hedgerow_core::{Delay, Pushback};
use pin_project_lite::pin_project;

use super::Hedging;
use super::action::Actions;
use crate::attempt::Attempt;
use crate::drive::{Begin, Hedged};
use crate::extras::Extras;
use crate::hedge::Hedge;
use crate::pipeline::classify::{PipelineResult, Predicate};
use crate::pipeline::context::Context;
use crate::pipeline::error::PipelineError;
use crate::pipeline::next::{Next, Strategy};
use crate::rules::{Judged, NextAction, NextHedge, NoHook, Rules};

type HedgedRun<'p, N, P, A> =
    Hedged<&'p Hedge, Attempts<N>, <N as Next>::Run, HedgeRules<'p, N, P, A>>;

impl<'p, N, P, A> Strategy<N> for &'p Hedging<P, A>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
    &'p A: Actions<N>,
{
    type Run = HedgeRun<'p, N, P, A>;

    const FORKS: bool = true;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        let is_plain = cx.shared().is_none() && cx.is_idempotent();
        let numbers_matter = N::FORKS || cx.counter().is_some() || cx.number() != 0;
        // Numbers are counted by the call itself where its hooks can see them; where nothing else
        // is asked of it, it stays on its fast path, and they are counted here.
        let hooks = self.has_hooks() || <&A as Actions<N>>::ACTS;
        let by_call = !is_plain || (numbers_matter && hooks);
        let counts = cx.counter().is_none() && (N::FORKS || by_call);
        let cx = if counts { cx.counted() } else { cx.clone() };
        let extras = by_call.then(|| Box::new(self.extras(&cx)));
        let rules = HedgeRules {
            kept: <&A as Actions<N>>::keep(&next, &cx, &self.place, self.detached),
            classifier: next.classifier().clone(),
            hedging: self,
            hedges: 0,
            let_through: 1,
        };
        let work = Attempts { next, cx, numbered: by_call, counts, detached: self.detached };
        HedgeRun { hedged: Hedged::new(&self.hedge, work, rules, extras) }
    }

    fn attempts(run: &Self::Run) -> u32 {
        let work = &run.hedged.work;
        match work.cx.counter().filter(|_| work.counts) {
            Some(counter) => counter.upcoming().saturating_sub(work.cx.number()),
            None => 1 + run.hedged.rules.hedges,
        }
    }
}

impl<P, A> Hedging<P, A> {
    /// What the call is told beside its policy.
    #[cold]
    fn extras(&self, cx: &Context) -> Extras {
        let mut extras = Extras {
            first: Some(cx.number()),
            counter: cx.counter().cloned(),
            idempotent: cx.is_idempotent(),
            ..Extras::default()
        };
        if let Some(shared) = cx.shared() {
            // By the clock that the deadline was made with.
            let now = || self.place.time.clock().now();
            extras.tracked = true;
            extras.properties = Some(shared.properties.clone());
            extras.deadline = shared.deadline.map(|at| at.saturating_duration_since(now()));
            extras.operation.clone_from(&shared.operation);
        }
        extras
    }
}

pin_project! {
    /// A hedged run of what is inside.
    #[must_use = "futures do nothing unless polled"]
    pub struct HedgeRun<'p, N, P, A>
    where
        N: Next,
        P: Predicate<N::Value, N::Error>,
        &'p A: Actions<N>,
    {
        #[pin]
        hedged: HedgedRun<'p, N, P, A>,
    }
}

impl<'p, N, P, A> Future for HedgeRun<'p, N, P, A>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
    &'p A: Actions<N>,
{
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let mut hedged = self.project().hedged;
        let mut polled = hedged.as_mut().poll(cx);
        if let Poll::Ready(Err(PipelineError::Rejected(rejected))) = &mut polled
            && hedged.rules.let_through != 0
        {
            rejected.mark_started();
        }
        polled
    }
}

impl<'p, N, P, A> fmt::Debug for HedgeRun<'p, N, P, A>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
    &'p A: Actions<N>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hedged.fmt(f)
    }
}

/// The work of a hedged call: the rest of the pipeline.
#[derive(Debug)]
pub struct Attempts<N> {
    next: N,
    cx: Context,
    /// Whether attempts come with their numbers.
    numbered: bool,
    /// Whether the counter was made for this run.
    counts: bool,
    /// Whether they run on where they lose.
    detached: bool,
}

impl<N: Next> Begin<N::Run> for Attempts<N> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn begin(&mut self, attempt: Attempt, after: Duration) -> N::Run {
        let hedge = attempt.hedge_number();
        let mut cx = self.cx.hedged(attempt, after);
        if !self.numbered {
            let number = match hedge {
                0 => self.cx.number(),
                _ => self.cx.next_number(hedge.into()),
            };
            cx.renumber(number);
        }
        if self.detached {
            cx.detach();
        }
        self.next.run(&cx)
    }
}

/// The rules of a hedged call in a pipeline.
pub struct HedgeRules<'p, N, P, A>
where
    N: Next,
    &'p A: Actions<N>,
{
    classifier: N::Classifier,
    kept: <&'p A as Actions<N>>::Kept,
    hedging: &'p Hedging<P, A>,
    /// How many were to start.
    hedges: u32,
    /// Which attempts began to run something and were not refused, as far as is known: a bit each.
    let_through: u16,
}

impl<'p, N, P, A> fmt::Debug for HedgeRules<'p, N, P, A>
where
    N: Next,
    &'p A: Actions<N>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgeRules").field("hedges", &self.hedges).finish_non_exhaustive()
    }
}

impl<'p, N, P, A> Rules<N::Value, PipelineError<N::Error>> for HedgeRules<'p, N, P, A>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
    &'p A: Actions<N>,
{
    type Action = <&'p A as Actions<N>>::Action;
    type Hook = NoHook;

    #[inline]
    fn handle(&mut self, judged: Judged<'_, N::Value, PipelineError<N::Error>>) -> bool {
        let handled = self.hedging.predicate.handles(&self.classifier, judged.outcome());
        if judged.is_rejection() {
            self.let_through &= !(1 << judged.hedge_number());
            // The policy may want rejections hedged that no predicate handles.
            return handled || judged.default_verdict();
        }
        handled
    }

    #[inline]
    fn is_rejection(&mut self, error: &PipelineError<N::Error>) -> bool {
        match error {
            PipelineError::Rejected(rejected) => !rejected.has_started(),
            PipelineError::Failed(error) => {
                self.hedging.predicate.is_rejection(&self.classifier, error)
            }
            _ => false,
        }
    }

    #[inline]
    fn pushback(
        &mut self,
        judged: Judged<'_, N::Value, PipelineError<N::Error>>,
    ) -> Option<Pushback> {
        let after = self.hedging.predicate.retry_after(&self.classifier, judged.outcome());
        after.map(Pushback::For)
    }

    fn next_action(
        &mut self,
        next: &NextHedge<'_>,
    ) -> Result<NextAction<Self::Action, N::Value, PipelineError<N::Error>>, PipelineError<N::Error>>
    {
        self.hedges += 1;
        let action = (&self.hedging.actions).next(&self.kept, next)?;
        if matches!(action, NextAction::Repeat | NextAction::Run(_)) {
            self.let_through |= 1 << next.hedge_number();
        }
        Ok(action)
    }

    fn on_hedge(&mut self, next: &NextHedge<'_>) -> Option<NoHook> {
        if let Some(hook) = &self.hedging.on_hedge {
            hook(next);
        }
        None
    }

    fn delay(&mut self, next: &NextHedge<'_>) -> Option<Delay> {
        self.hedging.delay_with.as_ref().map(|delay| delay(next))
    }
}
