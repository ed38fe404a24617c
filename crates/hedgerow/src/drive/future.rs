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
use super::slots::Primary;
use crate::attempt::Attempt;
use crate::extras::Extras;
use crate::hedge::Hedge;
use crate::rules::{NextHedge, Rules, judge};

/// Longer than this is never: a timer that far away would only overflow something.
const LONGEST_WAIT: Duration = Duration::from_secs(1 << 32);

pin_project! {
    /// The future of a hedged call. Made by awaiting a [`HedgedCall`](crate::HedgedCall).
    ///
    /// Holds the primary inline. The timer is absent until the primary's first `Pending`, the race
    /// until there is something to decide or somebody wants more than the result.
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
        #[pin]
        primary: Primary<Fut>,
        // The first hedge is due when it ends.
        #[pin]
        timer: Option<Timer>,
        race: Option<Pin<Box<Race<Fut, R>>>>,
    }

    impl<P, F, Fut, R> PinnedDrop for Hedged<P, F, Fut, R>
    where
        P: Borrow<Hedge>,
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(race) = this.race {
                let policy = (*this.policy).borrow();
                race.as_mut().abandon(Abandoned::Dropped, policy, this.rules, this.primary);
            }
        }
    }
}

pin_project! {
    #[project = TimerProj]
    struct Timer {
        #[pin]
        sleep: tokio::time::Sleep,
        delay: Duration,
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
        let (primary, race) = if extras.is_none() && policy.borrow().is_plain() {
            (Primary::Ahead, None)
        } else {
            (Primary::Absent, Some(Race::new(policy.borrow(), extras)))
        };
        Self {
            policy,
            work,
            rules,
            primary,
            timer: None,
            race,
        }
    }

    /// Polls to the very end of the call, with all that a report needs.
    pub(crate) fn poll_ending(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Ending<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        let Some(race) = this.race else {
            panic!("`Hedged` polled after completion");
        };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let parts = Parts {
                hedge: policy,
                work: &mut *this.work,
                rules: &mut *this.rules,
                primary: this.primary.as_mut(),
            };
            race.as_mut().poll(parts, cx)
        }));
        let ending = match polled {
            Ok(polled) => Ok(ready!(polled)),
            Err(panic) => {
                let primary = this.primary.as_mut();
                race.as_mut()
                    .abandon(Abandoned::Panicked, policy, this.rules, primary);
                Err(panic)
            }
        };
        *this.race = None;
        ending.map_or_else(|panic| resume_unwind(panic), Poll::Ready)
    }

    /// Whether the primary's outcome, come while nothing else ran, is the answer.
    #[inline]
    fn accepts(self: Pin<&mut Self>, outcome: &Result<Fut::Value, Fut::Error>) -> bool {
        let mut this = self.project();
        let policy = (*this.policy).borrow().policy();
        if judge(this.rules, 0, outcome, policy.hedge_rejections).handled {
            return false;
        }
        policy.completed();
        this.primary.set(Primary::Absent);
        true
    }

    /// Everything but a first poll that answers at once.
    fn poll_more(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let (None, Some(primary)) = (&this.race, this.primary.as_mut().running()) else {
            return self.poll_race(cx);
        };
        let polled = primary.poll(cx);
        if let Poll::Ready(outcome) = &polled
            && self.as_mut().accepts(outcome)
        {
            self.project().timer.set(None);
            return polled;
        }
        match polled {
            Poll::Ready(outcome) => self.fail(outcome, Some(Delay::OnFailure), cx),
            Poll::Pending => self.poll_timer(cx),
        }
    }

    /// The primary is pending for the first time: arms the timer, or begins the race if the next
    /// attempt is due at once.
    fn arm(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        let delay = if policy.policy().max_hedges.get() == 0 {
            Delay::OnFailure
        } else {
            let asked = this.rules.delay(&NextHedge::new(&Attempt::plain(1), None));
            asked.unwrap_or_else(|| policy.policy().schedule.delay(1))
        };
        match delay {
            Delay::Immediately | Delay::After(Duration::ZERO) => {
                let now = clock_of(policy).now();
                *this.race = Some(Race::resumed(policy, now, Some(Delay::Immediately)));
                self.poll_race(cx)
            }
            Delay::After(delay) if delay <= LONGEST_WAIT => {
                let sleep = tokio::time::sleep(delay);
                this.timer.set(Some(Timer { sleep, delay }));
                self.poll_timer(cx)
            }
            Delay::After(_) | Delay::OnFailure => Poll::Pending,
        }
    }

    /// The primary is pending: registers the waker with the timer; when that has ended, begins
    /// the race.
    fn poll_timer(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let Some(timer) = this.timer.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        ready!(timer.project().sleep.poll(cx));
        *this.race = Some(begin_race((*this.policy).borrow(), this.timer, None));
        self.poll_race(cx)
    }

    /// The primary failed: the race decides what becomes of that. `asked` is the delay of the
    /// first hedge, if it was asked for and there is no timer.
    #[cold]
    fn fail(
        mut self: Pin<&mut Self>,
        outcome: Result<Fut::Value, Fut::Error>,
        asked: Option<Delay>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        this.primary.set(Primary::Absent);
        let race = this.race.insert(begin_race(policy, this.timer, asked));
        race.as_mut().primary_failed(policy, this.rules, outcome);
        self.poll_race(cx)
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

/// Leaves the fast path: makes the race that would be there had it been made at the start.
#[cold]
fn begin_race<Fut, R>(
    policy: &Hedge,
    mut timer: Pin<&mut Option<Timer>>,
    asked: Option<Delay>,
) -> Pin<Box<Race<Fut, R>>>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    let now = clock_of(policy).now();
    let race = match timer.as_mut().as_pin_mut().map(Timer::project) {
        Some(TimerProj { sleep, delay }) => {
            let started = sleep.deadline().into_std().checked_sub(*delay);
            Race::resumed(policy, started.unwrap_or(now), Some(Delay::After(*delay)))
        }
        None => Race::resumed(policy, now, asked),
    };
    timer.set(None);
    race
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
        if !matches!(*this.primary, Primary::Ahead) {
            return self.poll_more(cx);
        }
        let primary = (this.work)(Attempt::plain(0));
        // Returned as it is: taking it apart would cost a copy of the outcome.
        let polled = this.primary.as_mut().start(primary).poll(cx);
        if let Poll::Ready(outcome) = &polled
            && self.as_mut().accepts(outcome)
        {
            return polled;
        }
        match polled {
            Poll::Ready(outcome) => self.fail(outcome, None, cx),
            Poll::Pending => self.arm(cx),
        }
    }
}

impl<P, F, Fut, R> fmt::Debug for Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match (&self.race, &self.primary) {
            (Some(_), _) => "racing",
            (None, Primary::Ahead) => "not started",
            (None, Primary::Running { .. }) => "only the primary runs",
            (None, Primary::Absent) => "over",
        };
        f.debug_struct("Hedged")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}
