//! The race: every attempt of a call that did not end with its primary's first answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hedgerow_core::{Call, Delay, Losers, Moment, Policy, Step, Terms, Verdict};
use pin_project_lite::pin_project;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::leave::Ending;
use super::slots::{HedgeOf, Primary, Slots};
use super::{Begin, Work};
use crate::attempt::Attempt;
use crate::clock::{Clock, Sleep};
use crate::extras::Extras;
use crate::failure::Failure;
use crate::hedge::Hedge;
use crate::rules::{NextAction, NextHedge, Rules};
use crate::span::CallSpan;

/// The parts of the call that live in its future, lent to the race for one turn.
pub(super) struct Parts<'a, F, Fut, R> {
    pub(super) hedge: &'a Hedge,
    pub(super) work: &'a mut F,
    pub(super) rules: &'a mut R,
    pub(super) primary: Pin<&'a mut Primary<Fut>>,
}

/// A hedge that starts when its hook has ended.
pub(super) struct Held<Fut, R>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    pub(super) hook: Pin<Box<R::Hook>>,
    pub(super) attempt: Attempt,
    pub(super) action: ActionOf<Fut, R>,
}

/// What a hedge of a call does.
pub(super) type ActionOf<Fut, R> = NextAction<
    <R as Rules<<Fut as Work>::Value, <Fut as Work>::Error>>::Action,
    <Fut as Work>::Value,
    <Fut as Work>::Error,
>;

/// Which attempts of this turn are still to be polled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scan {
    /// The call starts in this turn: its time counts from here.
    Start,
    All,
    /// The primary was polled on the fast path in this very turn.
    None,
    /// The same, and this is what time it is.
    Due(Moment),
}

pin_project! {
    pub(super) struct Race<Fut, R>
    where
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        pub(super) call: Call,
        pub(super) extras: Option<Box<Extras>>,
        // What the engine's moments are counted from.
        pub(super) origin: Instant,
        #[pin]
        pub(super) slots: Slots<HedgeOf<Fut, R::Action>>,
        // The attempts of a call that tracks them, by hedge number; empty otherwise.
        pub(super) attempts: Vec<Attempt>,
        pub(super) failures: Vec<Failure<Fut::Value, Fut::Error>>,
        // The accepted outcome, or the error that hedging itself failed with.
        pub(super) outcome: Option<Result<Fut::Value, Fut::Error>>,
        pub(super) held: Option<Box<Held<Fut, R>>>,
        timer: Option<(Moment, Sleep)>,
        cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
        // Whose poll is under way: whom a panic belongs to.
        pub(super) polling: Option<u8>,
        scan: Scan,
        pub(super) span: CallSpan,
    }
}

/// The clock that the policy names, or the default one.
pub(super) fn clock_of(hedge: &Hedge) -> &dyn Clock {
    hedge.time().clock()
}

impl<Fut, R> Race<Fut, R>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    fn with(
        call: Call,
        extras: Option<Box<Extras>>,
        origin: Instant,
        scan: Scan,
    ) -> Pin<Box<Self>> {
        Box::pin(Self {
            call,
            extras,
            origin,
            slots: Slots::new(),
            attempts: Vec::new(),
            failures: Vec::new(),
            outcome: None,
            held: None,
            timer: None,
            cancelled: None,
            polling: None,
            scan,
            span: CallSpan::default(),
        })
    }

    /// The timer of the first hedge has just ended: reading the clock would only say so again.
    /// Where another hedge may follow it is read all the same, as that one's delay counts from
    /// when this one really starts; and where it matters how late the timer is, to a learned policy
    /// (gate `late`) or to one that may be quiet.
    pub(super) fn timer_ended(self: Pin<&mut Self>, hedge: &Hedge, delay: Duration) {
        let Policy { max_hedges, learner, quiet, .. } = hedge.policy();
        if max_hedges.get() == 1 && learner.is_none() && quiet.is_none() {
            *self.project().scan = Scan::Due(Moment::from(delay));
        }
    }

    /// A race in which nothing has started.
    #[cold]
    pub(super) fn new(
        hedge: &Hedge,
        extras: Option<Box<Extras>>,
        span: CallSpan,
    ) -> Pin<Box<Self>> {
        let policy = hedge.policy();
        assert!(
            policy.losers != Losers::Detach || extras.as_ref().is_some_and(|extras| extras.spawned),
            "losers = detach: attempts that outlive the call need tasks of their own; add \
             `.spawned()` to the call"
        );
        let terms = extras.as_ref().map_or_else(Terms::default, |extras| Terms {
            idempotent: extras.idempotent,
            deadline: extras.deadline.map_or(Moment::NEVER, Moment::from),
            log: extras.settle,
            ..Terms::default()
        });
        let terms = Terms { draw: policy.draw(), ..terms };
        let call = Call::new(policy, terms);
        let token = extras.as_ref().and_then(|extras| extras.token.clone());
        let mut race = Self::with(call, extras, clock_of(hedge).now(), Scan::Start);
        let cancelled = token.map(|token| Box::pin(token.cancelled_owned()));
        let this = race.as_mut().project();
        (*this.cancelled, *this.span) = (cancelled, span);
        race
    }

    /// A race whose primary started on the fast path and was polled in this turn. `delay` is that
    /// of the first hedge, if it was asked for.
    pub(super) fn resumed(
        hedge: &Hedge,
        origin: Instant,
        delay: Option<Delay>,
        draw: u64,
    ) -> Pin<Box<Self>> {
        let mut call = Call::under_way(hedge.policy(), draw);
        call.begun_at(hedge.begun(origin));
        if let Some(delay) = delay {
            call.delay(delay);
        }
        Self::with(call, None, origin, Scan::None)
    }

    /// The primary failed on the fast path.
    pub(super) fn primary_failed(
        self: Pin<&mut Self>,
        hedge: &Hedge,
        rules: &mut R,
        outcome: Result<Fut::Value, Fut::Error>,
        verdict: Verdict,
    ) {
        let now = moment(hedge, self.origin);
        self.keep(hedge, rules, 0, Ok(outcome), verdict, now);
    }

    /// One turn: what ended, who cancelled, what is next (E3, E4).
    pub(super) fn poll<F>(
        mut self: Pin<&mut Self>,
        mut parts: Parts<'_, F, Fut, R>,
        cx: &mut Context<'_>,
    ) -> Poll<Ending<Fut::Value, Fut::Error>>
    where
        F: Begin<Fut>,
    {
        let scan = std::mem::replace(self.as_mut().project().scan, Scan::All);
        if scan == Scan::Start {
            let now = clock_of(parts.hedge).now();
            let this = self.as_mut().project();
            *this.origin = now;
            this.call.begun_at(parts.hedge.begun(now));
        }
        let mut now = match scan {
            Scan::Due(now) => now,
            _ => moment(parts.hedge, self.origin),
        };
        if scan == Scan::All {
            self.as_mut().poll_running(&mut parts, now, cx);
        }
        self.as_mut().poll_cancelled(parts.hedge, now, cx);
        self.as_mut().poll_hook(&mut parts, now, cx);
        loop {
            let policy = parts.hedge.policy();
            // An attempt, or a hook, may have cancelled the call it belongs to.
            self.as_mut().poll_cancelled(parts.hedge, now, cx);
            match self.as_mut().project().call.step(policy, now) {
                Step::AskDelay { hedge } => self.as_mut().ask_delay(&mut parts, hedge),
                Step::Start { attempt, origin } => {
                    self.as_mut().prepare(&mut parts, attempt, origin, now, cx);
                }
                Step::Release => self.as_mut().release(&mut parts, cx),
                Step::Finish(decision) => {
                    return Poll::Ready(self.finish(&mut parts, decision));
                }
                Step::Wait { until } => {
                    if self.as_mut().poll_timer(parts.hedge, until, cx).is_pending() {
                        return Poll::Pending;
                    }
                    now = moment(parts.hedge, self.origin).max(until);
                }
            }
        }
    }

    fn poll_cancelled(self: Pin<&mut Self>, hedge: &Hedge, now: Moment, cx: &mut Context<'_>) {
        let this = self.project();
        if let Some(cancelled) = this.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            *this.cancelled = None;
            this.call.cancel(hedge.policy(), now);
        }
    }

    /// Waits for the hook of a held hedge; starts the hedge when it ends (A27). Once the call is
    /// decided, a hedge that has not started never will.
    fn poll_hook<F>(
        mut self: Pin<&mut Self>,
        parts: &mut Parts<'_, F, Fut, R>,
        now: Moment,
        cx: &mut Context<'_>,
    ) where
        F: Begin<Fut>,
    {
        let this = self.as_mut().project();
        if this.call.decision().is_some() {
            self.drop_held();
        } else if let Some(held) = this.held
            && held.hook.as_mut().poll(cx).is_ready()
        {
            if !this.call.still_wanted(parts.hedge.policy(), now) {
                self.drop_held();
            } else if let Some(held) = this.held.take() {
                self.begin(parts, held.attempt, held.action, now, cx);
            }
        }
    }

    fn ask_delay<F>(self: Pin<&mut Self>, parts: &mut Parts<'_, F, Fut, R>, hedge: u8) {
        let next = Attempt::plain(hedge);
        let asked = parts.rules.delay(&NextHedge::new(&next, None));
        let delay = asked.unwrap_or_else(|| {
            let draw = self.call.draw();
            parts.hedge.policy().delay(hedge, draw)
        });
        self.project().call.delay(delay);
    }

    /// Ready when `until` has come; arms or moves the timer as needed.
    fn poll_timer(
        self: Pin<&mut Self>,
        hedge: &Hedge,
        until: Moment,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let this = self.project();
        if this.timer.as_ref().is_none_or(|(at, _)| *at != until) {
            let deadline = this.origin.checked_add(until.since(Moment::ZERO));
            let deadline = deadline.filter(|_| !until.is_never());
            let sleep = |deadline| (until, clock_of(hedge).sleep_until(deadline));
            *this.timer = deadline.map(sleep);
        }
        match this.timer {
            Some((_, sleep)) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// What time it is, as the engine counts.
pub(super) fn moment(hedge: &Hedge, origin: Instant) -> Moment {
    Moment::from(clock_of(hedge).now().saturating_duration_since(origin))
}
