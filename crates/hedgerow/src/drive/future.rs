//! The future of a hedged call, and its fast path.

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hedgerow_core::{Delay, End, Verdict};
use pin_project_lite::pin_project;

use super::leave::{Abandoned, Ending, discard_all};
use super::panics::FirstPanic;
use super::race::{Parts, Race, clock_of};
use super::rest::{Rest, RestProj, abandon, begin_race, tell, tell_at_once};
use super::slots::Primary;
use super::{Begin, Work};
use crate::attempt::Attempt;
use crate::clock::Timer;
use crate::extras::Extras;
use crate::hedge::{Hedge, Path};
use crate::rules::{Discarded, NextHedge, Rules, judge};
use crate::span::CallSpan;

/// Longer than this is never: a timer that far away would only overflow something.
const LONGEST_WAIT: Duration = Duration::from_secs(1 << 32);

pin_project! {
    /// The future of a hedged call. Made by awaiting a [`HedgedCall`](crate::HedgedCall).
    ///
    /// Holds the primary inline. The rest is absent until the primary's first `Pending`, unless
    /// somebody wants more than the result.
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
        pub(crate) work: F,
        pub(crate) rules: R,
        #[pin]
        primary: Primary<Fut>,
        #[pin]
        rest: Option<Rest<Fut, R>>,
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
            if let Some(rest) = this.rest.as_pin_mut() {
                abandon((*this.policy).borrow(), this.rules, this.primary, rest);
            }
        }
    }
}

impl<P, F, Fut, R> Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    F: Begin<Fut>,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    #[inline]
    pub(crate) fn new(policy: P, work: F, rules: R, extras: Option<Box<Extras>>) -> Self {
        let hedge: &Hedge = policy.borrow();
        let span = CallSpan::open(hedge.span_mode());
        let (primary, rest) = match hedge.path() {
            Path::Plain if extras.is_none() && span.is_none() => (Primary::Ahead, None),
            Path::Counted if extras.is_none() && span.is_none() => {
                (Primary::Ahead, Some(Rest::Counted))
            }
            _ => {
                let race = Race::new(hedge, extras, span);
                (Primary::Absent, Some(Rest::Racing { race }))
            }
        };
        Self { policy, work, rules, primary, rest }
    }

    /// Polls to the very end of the call, with all that a report needs.
    pub(crate) fn poll_ending(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Ending<Fut::Value, Fut::Error>> {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        let rest = this.rest.as_mut().as_pin_mut();
        let Some(RestProj::Racing { race }) = rest.map(Rest::project) else {
            panic!("`Hedged` polled after completion");
        };
        let span = std::mem::take(race.as_mut().project().span);
        let poll = || {
            let parts = Parts {
                hedge: policy,
                work: &mut *this.work,
                rules: &mut *this.rules,
                primary: this.primary.as_mut(),
            };
            race.as_mut().poll(parts, cx)
        };
        let polled = span.within(|| catch_unwind(AssertUnwindSafe(poll)));
        *race.as_mut().project().span = span;
        let ending = match polled {
            Ok(polled) => Ok(ready!(polled)),
            Err(panic) => {
                let primary = this.primary.as_mut();
                race.as_mut().abandon(Abandoned::Panicked, policy, this.rules, primary);
                Err(panic)
            }
        };
        this.rest.set(Some(Rest::Nothing));
        ending.map_or_else(|panic| resume_unwind(panic), Poll::Ready)
    }

    /// Judges the primary's outcome, come while nothing else ran: if it is not handled, it is the
    /// answer.
    #[inline]
    fn judge(self: Pin<&mut Self>, outcome: &Result<Fut::Value, Fut::Error>) -> Verdict {
        let mut this = self.project();
        let hedge: &Hedge = (*this.policy).borrow();
        let policy = hedge.policy();
        let verdict = judge(this.rules, 0, outcome, policy.hedge_rejections);
        if !verdict.handled {
            policy.completed();
            if let Some(pushback) = verdict.pushback {
                hedge.pushed_back(pushback);
            }
            this.primary.set(Primary::Absent);
        }
        verdict
    }

    /// The primary is pending: registers the waker with the timer, which is made at its first
    /// `Pending`, and begins the race when that has ended.
    fn wait(mut self: Pin<&mut Self>, first: bool, cx: &mut Context<'_>) -> Progress {
        if first {
            self.as_mut().arm();
        }
        let mut this = self.as_mut().project();
        match this.rest.as_mut().as_pin_mut().map(Rest::project) {
            Some(RestProj::Waiting { timer, delay, .. }) => {
                if timer.poll(*delay, cx).is_pending() {
                    return Progress::Pending;
                }
                let (policy, delay) = ((*this.policy).borrow(), *delay);
                let mut race = begin_race(policy, this.rest.as_mut(), None);
                race.as_mut().timer_ended(policy, delay);
                this.rest.set(Some(Rest::Racing { race }));
                self.race(cx)
            }
            Some(RestProj::Racing { .. }) => self.race(cx),
            _ => Progress::Pending,
        }
    }

    /// Makes the timer of the first hedge, or begins the race if that is due at once.
    fn arm(self: Pin<&mut Self>) {
        let mut this = self.project();
        let policy: &Hedge = (*this.policy).borrow();
        let draw = policy.policy().draw();
        let delay = if policy.policy().max_hedges.get() == 0 {
            Delay::OnFailure
        } else {
            let next = Attempt::plain(1);
            let ask = || this.rules.delay(&NextHedge::new(&next, None));
            let asked = catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
                this.primary.set(Primary::Absent);
                resume_unwind(panic)
            });
            asked.unwrap_or_else(|| policy.policy().delay(1, draw))
        };
        // Each arm puts its own in place: the timer is large, and would be copied on its way.
        match delay {
            Delay::Immediately | Delay::After(Duration::ZERO) => {
                let now = clock_of(policy).now();
                let race = Race::resumed(policy, now, Some(Delay::Immediately), draw);
                this.rest.set(Some(Rest::Racing { race }));
            }
            Delay::After(delay) if delay <= LONGEST_WAIT => {
                Timer::start(policy.time(), delay, |timer| {
                    this.rest.set(Some(Rest::Waiting { timer, delay, draw }));
                });
            }
            Delay::After(_) | Delay::OnFailure => {
                this.rest.set(Some(Rest::Alone { started: clock_of(policy).now() }));
            }
        }
    }

    /// The primary failed while nothing else ran: the race decides what becomes of that.
    #[cold]
    fn fail(
        mut self: Pin<&mut Self>,
        outcome: Result<Fut::Value, Fut::Error>,
        verdict: Verdict,
        first: bool,
        cx: &mut Context<'_>,
    ) -> Progress {
        let mut this = self.as_mut().project();
        let policy: &Hedge = (*this.policy).borrow();
        this.primary.set(Primary::Absent);
        let asked = if first { None } else { Some(Delay::OnFailure) };
        let mut race = begin_race(policy, this.rest.as_mut(), asked);
        race.as_mut().primary_failed(policy, this.rules, outcome, verdict);
        this.rest.set(Some(Rest::Racing { race }));
        self.race(cx)
    }

    #[cold]
    fn race(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Progress {
        let Poll::Ready(ending) = self.as_mut().poll_ending(cx) else {
            return Progress::Pending;
        };
        let mut this = self.project();
        let mut outcome = ending.result;
        let number = ending.attempt.unwrap_or(0);
        let mut panics = FirstPanic::default();
        panics.catch(|| discard_all(this.rules, ending.failures));
        if outcome.is_none() {
            panics.catch(|| outcome = this.rules.cancelled().map(Err));
        }
        if panics.is_some() {
            // Nobody will see the outcome either.
            let outcome = outcome.take().map(|outcome| Discarded::new(number, outcome));
            if let Some(outcome) = outcome {
                panics.catch(|| this.rules.on_discard(outcome));
            }
            panics.resume();
        }
        let Some(outcome) = outcome else {
            unreachable!("a call with a token has an error for when it fires");
        };
        this.rest.set(Some(Rest::Answered { outcome: Some(outcome) }));
        Progress::Answered
    }

    /// The outcome of a race that is over.
    #[inline]
    fn answer(self: Pin<&mut Self>) -> Result<Fut::Value, Fut::Error> {
        match self.project().rest.as_pin_mut().map(Rest::project) {
            Some(RestProj::Answered { outcome }) => outcome.take().expect("answered once"),
            _ => unreachable!("it was put there just now"),
        }
    }

    /// The primary answered at its first poll: that counts as no time at all, so that nobody has to
    /// read the clock.
    #[inline]
    fn at_once(self: Pin<&mut Self>) {
        let this = self.project();
        let hedge: &Hedge = (*this.policy).borrow();
        if hedge.is_told() {
            tell_at_once(hedge, this.rest);
        }
    }

    /// The primary answered after it was pending: the timer has no use any more.
    #[inline(never)]
    fn disarm(self: Pin<&mut Self>) {
        let mut this = self.project();
        if let Some(rest) = &*this.rest {
            tell((*this.policy).borrow(), rest, End::Won);
        }
        this.rest.set(None);
    }
}

/// How far a call came in one poll, apart from its primary. Its outcome, if it has one, waits in
/// the future: were it returned by functions out of line, it would have to live in memory on the
/// fast path too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Pending,
    Answered,
}

impl<P, F, Fut, R> Future for Hedged<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    F: Begin<Fut>,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    type Output = Result<Fut::Value, Fut::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let first = matches!(*this.primary, Primary::Ahead);
        let primary = if first {
            let work = this.work.begin(Attempt::plain(0), Duration::ZERO);
            Some(this.primary.as_mut().start(work))
        } else if matches!(*this.rest, Some(Rest::Racing { .. })) {
            None
        } else {
            this.primary.as_mut().running()
        };
        let progress = match primary.map(|primary| primary.poll(cx)) {
            Some(Poll::Ready(outcome)) => {
                let verdict = self.as_mut().judge(&outcome);
                if !verdict.handled {
                    if first {
                        self.as_mut().at_once();
                    } else {
                        self.disarm();
                    }
                    return Poll::Ready(outcome);
                }
                self.as_mut().fail(outcome, verdict, first, cx)
            }
            Some(Poll::Pending) => self.as_mut().wait(first, cx),
            None => self.as_mut().race(cx),
        };
        match progress {
            Progress::Pending => Poll::Pending,
            Progress::Answered => Poll::Ready(self.answer()),
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
        let stage = match (&self.rest, &self.primary) {
            (Some(Rest::Racing { .. }), _) => "racing",
            (_, Primary::Ahead) => "not started",
            (_, Primary::Running { .. }) => "only the primary runs",
            (_, Primary::Absent) => "over",
        };
        f.debug_struct("Hedged").field("stage", &stage).finish_non_exhaustive()
    }
}
