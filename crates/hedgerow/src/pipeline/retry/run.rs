//! One run of a retry: tries, and waits between them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use hedgerow_core::StrategyEventKind;
use pin_project_lite::pin_project;

use super::{NextRetry, Retry};
use crate::drive::panics::at_last;
use crate::pipeline::classify::{PipelineResult, Predicate, never_started};
use crate::pipeline::context::Context;
use crate::pipeline::error::{PipelineError, Rejected};
use crate::pipeline::next::{Next, Strategy};
use crate::pipeline::wait::Wait;

impl<'p, N, P> Strategy<N> for &'p Retry<P>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
{
    type Run = RetryRun<'p, N, P>;

    const FORKS: bool = true;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        let (run, next) = match self.max_retries {
            Some(0) => (next.run_once(cx), None),
            _ => (next.run(cx), Some(next)),
        };
        let (stage, cx) = (Stage::Trying { run }, cx.clone());
        RetryRun { stage, retry: self, next, cx, began: None, more: None }
    }

    fn attempts(run: &Self::Run) -> u32 {
        let begun = run.more.as_ref().map_or(0, |more| more.begun);
        match &run.stage {
            Stage::Trying { run } => begun.saturating_add(N::attempts(run)),
            Stage::Waiting { .. } | Stage::Over => begun.max(1),
        }
    }
}

/// What there is once a try was repeated.
#[derive(Debug, Default)]
struct More {
    /// How many attempts the tries that are over have begun.
    begun: u32,
    /// How many retries there were.
    retries: u32,
    /// The wait before the latest.
    waited: Option<Duration>,
    /// Whether the work did start in one that was repeated.
    started: bool,
}

pin_project! {
    /// One run of a [`Retry`].
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryRun<'p, N, P>
    where
        N: Next,
    {
        #[pin]
        stage: Stage<N>,
        retry: &'p Retry<P>,
        // What is inside, as long as it may run again.
        next: Option<N>,
        cx: Context,
        // When the first try was seen to take time, if that matters.
        began: Option<Instant>,
        more: Option<Box<More>>,
    }

    impl<N: Next, P> PinnedDrop for RetryRun<'_, N, P> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // It was taken for a try that does not start.
            if let (Stage::Waiting { .. }, Some(budget)) = (&*this.stage, &this.retry.budget) {
                at_last(false, || budget.give_back());
            }
        }
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<N: Next> {
        Trying { #[pin] run: N::Run },
        Waiting { #[pin] wait: Wait, delay: Duration },
        Over,
    }
}

impl<N, P> RetryRun<'_, N, P>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
{
    /// Whether the outcome of a try is to be repeated, and after which wait.
    fn judge(
        self: Pin<&mut Self>,
        outcome: &PipelineResult<N::Value, N::Error>,
    ) -> Option<Duration> {
        let this = self.project();
        let (retry, next) = (*this.retry, this.next.as_ref()?);
        let classifier = next.classifier();
        let predicate = &retry.predicate;
        if !predicate.handles(classifier, outcome) {
            return None;
        }
        let started = !never_started(predicate, classifier, outcome);
        if started && !this.cx.is_idempotent() {
            return None;
        }
        let gives_up = |reason| {
            retry.place.tell(this.cx, StrategyEventKind::GaveUp { reason });
            None
        };
        let (retries, waited) =
            this.more.as_ref().map_or((0, None), |more| (more.retries, more.waited));
        if retry.max_retries.is_some_and(|most| retries >= most) {
            return gives_up("no retries left");
        }
        let rejected = outcome.as_ref().err().and_then(PipelineError::rejected);
        let asked = predicate.retry_after(classifier, outcome);
        let asked = asked.or_else(|| rejected.and_then(Rejected::retry_after));
        let delay = retry.delay(retries.saturating_add(1), waited, asked);
        if !has_time(retry, this.cx, *this.began, delay) {
            return gives_up("no time left");
        }
        if retry.budget.as_ref().is_some_and(|budget| !budget.try_take()) {
            return gives_up("budget");
        }
        this.more.get_or_insert_default().started |= started;
        Some(delay)
    }

    /// Ends the try that is over, and waits for the next.
    fn wait(mut self: Pin<&mut Self>, delay: Duration) {
        let mut this = self.as_mut().project();
        let Stage::Trying { run } = &*this.stage else { return };
        let more = this.more.get_or_insert_default();
        more.begun = more.begun.saturating_add(N::attempts(run));
        more.retries = more.retries.saturating_add(1);
        more.waited = Some(delay);
        let retry = more.retries;
        this.stage.set(Stage::Waiting { wait: Wait::new(), delay });
        this.retry.place.tell(this.cx, StrategyEventKind::Retrying { retry, delay });
        if let Some(hook) = &this.retry.hook {
            hook(&NextRetry { retry, delay });
        }
    }

    /// Begins another try. The last one takes what is inside along.
    fn again(self: Pin<&mut Self>) {
        let mut this = self.project();
        let (begun, retries) = this.more.as_ref().map_or((1, 0), |more| (more.begun, more.retries));
        let later = match this.cx.within() {
            Some(_) => gone(*this.began, this.retry.place.time.clock().now()),
            None => Duration::ZERO,
        };
        let cx = this.cx.again(this.cx.next_number(begun), later);
        let is_last = this.retry.max_retries.is_some_and(|most| retries >= most);
        let is_told = this.retry.place.is_told();
        // Nobody asks about the last outcome, unless somebody is told of it.
        let next = if is_last && !is_told { this.next.take() } else { this.next.clone() };
        let next = next.expect("it is kept until the last try");
        this.stage.set(Stage::Over); // what took the budget's grant starts now
        let run = next.run_once(&cx);
        this.stage.set(Stage::Trying { run });
    }
}

impl<N: Next, P> RetryRun<'_, N, P> {
    /// The first poll ends: whatever limits the run counts from here.
    #[inline]
    fn pending<V>(self: Pin<&mut Self>) -> Poll<V> {
        let this = self.project();
        if this.began.is_none() && this.cx.within().is_some() {
            *this.began = Some(this.retry.place.time.clock().now());
        }
        Poll::Pending
    }

    /// The execution completes: pays into the budget, unless a strategy around it does.
    #[inline]
    fn pay(&self) {
        if let Some(budget) = &self.retry.budget
            && self.retry.place.pays(budget)
        {
            budget.deposit();
        }
    }
}

/// Whether a wait ends before whatever is around does.
fn has_time<P>(retry: &Retry<P>, cx: &Context, began: Option<Instant>, delay: Duration) -> bool {
    let deadline = cx.attempt().deadline();
    if cx.within().is_none() && deadline.is_none() {
        return true;
    }
    let now = retry.place.time.clock().now();
    let gone = gone(began, now);
    let within = cx.within().is_none_or(|within| delay < within.saturating_sub(gone));
    within && deadline.is_none_or(|at| delay < at.saturating_duration_since(now))
}

/// How long the run has taken at this moment.
fn gone(began: Option<Instant>, now: Instant) -> Duration {
    began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
}

/// So many tries that end at once may follow each other in one poll: then it is another's turn.
const TRIES_IN_A_POLL: u32 = 16;

impl<N, P> Future for RetryRun<'_, N, P>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
{
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        let mut tries = 0;
        loop {
            let this = self.as_mut().project();
            match this.stage.project() {
                StageProj::Trying { run } => match run.poll(cx) {
                    Poll::Pending => return self.pending(),
                    Poll::Ready(mut outcome) => match self.as_mut().judge(&outcome) {
                        None => {
                            self.pay();
                            if let Err(PipelineError::Rejected(rejected)) = &mut outcome
                                && self.more.as_ref().is_some_and(|more| more.started)
                            {
                                rejected.mark_started();
                            }
                            return Poll::Ready(outcome);
                        }
                        Some(delay) => {
                            self.as_mut().wait(delay);
                            drop(outcome);
                        }
                    },
                },
                StageProj::Waiting { wait, delay } => {
                    if !delay.is_zero()
                        && wait.poll(&this.retry.place.time, *delay, cx).is_pending()
                    {
                        return self.pending();
                    }
                    if tries == TRIES_IN_A_POLL {
                        cx.waker().wake_by_ref();
                        return self.pending();
                    }
                    tries += 1;
                    self.as_mut().again();
                }
                StageProj::Over => panic!("`RetryRun` polled after completion"),
            }
        }
    }
}

impl<N: Next, P> fmt::Debug for RetryRun<'_, N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Trying { .. } => "trying",
            Stage::Waiting { .. } => "waiting",
            Stage::Over => "over",
        };
        f.debug_struct("RetryRun")
            .field("stage", &stage)
            .field("more", &self.more)
            .finish_non_exhaustive()
    }
}
