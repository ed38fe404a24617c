//! The future of a hedged call, and its fast path.

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hedgerow_core::Delay;
use pin_project_lite::pin_project;

use super::Work;
use super::leave::{Abandoned, Ending, discard_all};
use super::race::{Parts, Race, clock_of};
use crate::attempt::Attempt;
use crate::call::Extras;
use crate::hedge::Hedge;
use crate::rules::{NextHedge, Rules, judge};

/// Longer than this is never: a timer that far away would only overflow something.
const LONGEST_WAIT: Duration = Duration::from_secs(1 << 32);

pin_project! {
    /// The future of a hedged call. Made by awaiting a [`HedgedCall`](crate::HedgedCall).
    ///
    /// Holds the primary inline. While only the primary runs there is nothing else but a timer,
    /// and not even that before the primary's first `Pending`.
    ///
    /// Polling it again after it was ready panics.
    #[must_use = "futures do nothing unless polled"]
    pub struct Hedged<P, F, Fut, R>
    where
        P: Borrow<Hedge>,
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        policy: P,
        work: F,
        rules: R,
        extras: Option<Box<Extras>>,
        #[pin]
        primary: Option<Fut>,
        #[pin]
        stage: Stage<Fut, R>,
    }

    impl<P, F, Fut, R> PinnedDrop for Hedged<P, F, Fut, R>
    where
        P: Borrow<Hedge>,
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if let StageProj::Racing { race } = this.stage.as_mut().project() {
                let primary = this.primary.as_mut();
                let policy = (*this.policy).borrow();
                race.as_mut().abandon(Abandoned::Dropped, policy, this.rules, primary);
            }
        }
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<Fut, R>
    where
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        Start,
        // The primary runs and no delay will start a hedge.
        Alone,
        // The primary runs and a hedge is due when the timer ends.
        Waiting { #[pin] timer: tokio::time::Sleep, delay: Duration },
        Racing { race: Pin<Box<Race<Fut, R>>> },
        Over,
    }
}

impl<P, F, Fut, R> Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    #[inline]
    pub(crate) fn new(policy: P, work: F, rules: R, extras: Option<Box<Extras>>) -> Self {
        Self {
            policy,
            work,
            rules,
            extras,
            primary: None,
            stage: Stage::Start,
        }
    }

    /// Polls to the very end of the call, with all that a report needs.
    pub(crate) fn poll_ending(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Ending<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        if let StageProj::Start = this.stage.as_mut().project() {
            let race = Race::fresh(policy, this.extras.as_deref());
            this.stage.set(Stage::Racing { race });
        }
        let StageProj::Racing { race } = this.stage.as_mut().project() else {
            panic!("`Hedged` polled after completion");
        };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let parts = Parts {
                hedge: policy,
                work: &mut *this.work,
                rules: &mut *this.rules,
                extras: this.extras.as_deref(),
                primary: this.primary.as_mut(),
            };
            race.as_mut().poll(parts, cx)
        }));
        match polled {
            Ok(polled) => {
                let ending = ready!(polled);
                this.stage.set(Stage::Over);
                this.primary.set(None);
                Poll::Ready(ending)
            }
            Err(panic) => {
                let primary = this.primary.as_mut();
                race.as_mut()
                    .abandon(Abandoned::Panicked, policy, this.rules, primary);
                this.stage.set(Stage::Over);
                this.primary.set(None);
                resume_unwind(panic)
            }
        }
    }

    /// The primary is pending for the first time: arms the timer, or starts the race if the next
    /// attempt is due at once. Says whether there is a race now.
    #[cold]
    fn arm(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        let this = self.as_mut().project();
        let mut stage = this.stage;
        let policy: &Hedge = (*this.policy).borrow();
        let delay = match policy.policy().max_hedges.get() {
            0 => Delay::OnFailure,
            _ => {
                let first = Attempt::plain(1);
                let asked = this.rules.delay(&NextHedge::new(&first, None));
                asked.unwrap_or_else(|| policy.policy().schedule.delay(1))
            }
        };
        match delay {
            Delay::After(delay) if delay > LONGEST_WAIT => stage.set(Stage::Alone),
            Delay::After(delay) if !delay.is_zero() => {
                stage.set(Stage::Waiting {
                    timer: tokio::time::sleep(delay),
                    delay,
                });
                return self.poll_timer(cx);
            }
            Delay::OnFailure => stage.set(Stage::Alone),
            Delay::After(_) | Delay::Immediately => {
                let origin = clock_of(policy).now();
                let race = Race::resumed(policy, origin, Some(Delay::Immediately));
                stage.set(Stage::Racing { race });
                return true;
            }
        }
        false
    }

    /// Registers the waker with the timer; when it has ended, starts the race. Says whether there
    /// is a race now.
    fn poll_timer(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        let mut this = self.project();
        let StageProj::Waiting { mut timer, .. } = this.stage.as_mut().project() else {
            return false;
        };
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        let race = Self::interrupt((*this.policy).borrow(), this.stage.as_mut());
        this.stage.set(Stage::Racing { race });
        true
    }

    /// Leaves the fast path: makes the race that would be there had it been made at the start.
    #[cold]
    fn interrupt(policy: &Hedge, stage: Pin<&mut Stage<Fut, R>>) -> Pin<Box<Race<Fut, R>>> {
        match stage.project() {
            StageProj::Waiting { timer, delay } => {
                let origin = timer.deadline().into_std().checked_sub(*delay);
                let origin = origin.unwrap_or_else(|| clock_of(policy).now());
                Race::resumed(policy, origin, Some(Delay::After(*delay)))
            }
            StageProj::Alone => {
                Race::resumed(policy, clock_of(policy).now(), Some(Delay::OnFailure))
            }
            _ => Race::resumed(policy, clock_of(policy).now(), None),
        }
    }

    #[cold]
    fn poll_race(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Fut::Value, Fut::Error>> {
        let ending = ready!(self.as_mut().poll_ending(cx));
        let rules = self.project().rules;
        let result = ending.result.or_else(|| rules.cancelled().map(Err));
        discard_all(rules, ending.failures);
        match result {
            Some(result) => Poll::Ready(result),
            None => unreachable!("only a call with a token is cancelled, and it has an error"),
        }
    }
}

impl<P, F, Fut, R> Future for Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    type Output = Result<Fut::Value, Fut::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        let first = match this.stage.as_mut().project() {
            StageProj::Start if this.extras.is_none() && policy.is_plain() => {
                let primary = (this.work)(Attempt::plain(0));
                this.primary.set(Some(primary));
                true
            }
            StageProj::Alone | StageProj::Waiting { .. } => false,
            _ => return self.poll_race(cx),
        };
        let Some(primary) = this.primary.as_mut().as_pin_mut() else {
            return self.poll_race(cx);
        };
        let Poll::Ready(outcome) = primary.poll(cx) else {
            let races = if first {
                self.as_mut().arm(cx)
            } else {
                self.as_mut().poll_timer(cx)
            };
            return if races {
                self.poll_race(cx)
            } else {
                Poll::Pending
            };
        };
        let verdict = judge(this.rules, 0, &outcome, policy.policy().hedge_rejections);
        if !verdict.handled {
            this.stage.set(Stage::Over);
            this.primary.set(None);
            policy.policy().completed();
            return Poll::Ready(outcome);
        }
        let mut race = Self::interrupt(policy, this.stage.as_mut());
        this.primary.set(None);
        race.as_mut().primary_failed(policy, verdict, outcome);
        this.stage.set(Stage::Racing { race });
        self.poll_race(cx)
    }
}

impl<P, F, Fut, R> fmt::Debug for Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Start => "not started",
            Stage::Alone | Stage::Waiting { .. } => "only the primary runs",
            Stage::Racing { .. } => "racing",
            Stage::Over => "over",
        };
        f.debug_struct("Hedged")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}
