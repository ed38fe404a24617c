//! The options of a policy, one by one.

use std::sync::Arc;

use hedgerow_core::latency::{Learner, Learning};
use hedgerow_core::{
    Both, Budget, Exhausted, ExtraLoad, FailureStart, Losers, MaxHedges, Observer, Panics,
    RatioBudget, RejectedHedge, Schedule,
};

use super::{Hedge, literal};
use crate::abandoned::Abandoned;
use crate::clock::{Clock, Time};
use crate::span::SpanMode;

impl Hedge {
    /// When the next attempt is due: a [`Delay`](crate::Delay), a [`Duration`](std::time::Duration), or a list with one delay per
    /// hedge whose last entry repeats.
    pub fn delay(mut self, schedule: impl Into<Schedule>) -> Self {
        self.policy.learner = None;
        self.policy.schedule = schedule.into();
        self.derived()
    }

    /// How many attempts beyond the primary may start: 0 (no hedging) to 10.
    ///
    /// # Panics
    ///
    /// If `hedges` is more than 10.
    #[track_caller]
    pub fn max_hedges(mut self, hedges: u32) -> Self {
        self.policy.max_hedges = literal(MaxHedges::new(hedges));
        self
    }

    /// What a handled failure does while hedges are left.
    pub fn failure_start(mut self, failure_start: FailureStart) -> Self {
        self.policy.failure_start = failure_start;
        self
    }

    /// Which failure is returned when every attempt has failed.
    pub fn exhausted(mut self, exhausted: Exhausted) -> Self {
        self.policy.exhausted = exhausted;
        self
    }

    /// What happens to attempts that still run at the decision.
    pub fn losers(mut self, losers: Losers) -> Self {
        self.policy.losers = losers;
        self.derived()
    }

    /// What a hedge that was rejected before it started means.
    pub fn rejected_hedge(mut self, rejected_hedge: RejectedHedge) -> Self {
        self.policy.rejected_hedge = rejected_hedge;
        self
    }

    /// Whether rejections are worth another attempt, where no predicate of the call's own decides.
    pub fn hedge_rejections(mut self, hedge_rejections: bool) -> Self {
        self.policy.hedge_rejections = hedge_rejections;
        self
    }

    /// What a panic of an attempt means.
    pub fn panics(mut self, panics: Panics) -> Self {
        self.policy.panics = panics;
        self.derived()
    }

    /// Bounds the extra load: over any stretch of calls at most `ratio` hedges for each completed
    /// call, plus the 20 that may be saved up. Starts with nothing saved; see [`RatioBudget`].
    ///
    /// # Panics
    ///
    /// If `ratio` is not more than 0 and at most 1; a [`RatioBudget`] of one's own may have more.
    #[track_caller]
    pub fn max_extra_load(self, ratio: f64) -> Self {
        let load = literal(ExtraLoad::at_most_one(ratio));
        match self.learner().map(Learner::learning) {
            Some(learning) => self.learning(Learning { load: ratio, ..learning }),
            None => self.bounded(load),
        }
    }

    /// Bounds the extra load by a budget of one's own, or by one that other policies share.
    pub fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        (self.policy.budget, self.load) = (Some(budget), None);
        self
    }

    /// Whether completed calls pay into the budget; not if something around them does.
    #[cfg_attr(not(feature = "pipeline"), expect(dead_code, reason = "for pipelines"))]
    pub(crate) fn paying(mut self, pays: bool) -> Self {
        self.policy.pays = pays;
        self
    }

    /// Bounds the extra load by a budget that nobody else has.
    pub(crate) fn bounded(mut self, load: ExtraLoad) -> Self {
        self.policy.budget = Some(Arc::new(RatioBudget::new(load)));
        self.load = Some(load);
        self
    }

    /// Whether a target that asks for quiet is left alone by later calls, too: while it is quiet no
    /// hedge of this policy or of its clones starts, neither by delay nor after a failure (gate
    /// `pushback`). A policy that begins to learn does this by itself; for others a pushback counts
    /// for its own call alone. Who asked, and for how long, the call says with
    /// [`pushback`](crate::HedgedCall::pushback).
    pub fn quiet_after_pushback(mut self, quiet: bool) -> Self {
        self.policy.quiet = quiet.then(Arc::default);
        self.epoch.get_or_insert_default();
        self
    }

    /// Whether to decide and count everything, and to send no hedge.
    ///
    /// Delays, gates, chances and the budget work as ever, but instead of a start the call tells
    /// that the gate `dry-run` refused it. [`explain`](Hedge::explain) then says how many calls
    /// would have been hedged, and what that is predicted to bring:
    ///
    /// ```
    /// use hedgerow::{Gate, Hedge};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let hedge = Hedge::adaptive().dry_run(true);
    /// let answer: Result<u32, String> = hedge.call(|_| async { Ok(42) }).await;
    /// assert_eq!(answer, Ok(42));
    /// let why = hedge.explain().expect("it learns");
    /// assert_eq!(why.refused_by(Gate::DryRun), 0, "that call needed no hedge");
    /// # }
    /// ```
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.policy.dry_run = dry_run;
        self
    }

    /// Tells every event of every call; several observers are told in turn. An observed call
    /// allocates and reads the clock, unless the observer can do without most events
    /// ([`Observer::wants_all`]).
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.policy.observer = Some(match self.policy.observer.take() {
            None => observer,
            Some(earlier) => Arc::new(Both(earlier, observer)),
        });
        self.derived()
    }

    /// Whether calls have a span of their own, which all their attempts run in (feature `tracing`;
    /// without it there are no spans). A call that has one allocates and reads the clock.
    pub fn span(mut self, span: SpanMode) -> Self {
        self.span = span;
        self
    }

    /// Takes the time from this clock, and waits by it. Calls then allocate.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.time = Time::Own(clock);
        self.derived()
    }

    /// Waits by the ring, Hedgerow's own timer, instead of tokio's, also inside tokio's runtimes.
    ///
    /// The ring serves the whole process from one thread, which starts with the first call that
    /// waits and sleeps while nobody does. It costs less than tokio's timer, above all where many
    /// threads arm timers at once; it depends on no runtime, so that calls are woken also while
    /// theirs is not driven. It counts in milliseconds: a hedge is never early, and on an idle
    /// machine at most 2 ms late.
    ///
    /// Outside tokio's runtimes, and without the feature `tokio`, every policy waits by the ring
    /// anyway, unless it has a [`clock`](Hedge::clock) of its own.
    ///
    /// Tests in tokio's paused time need no other policy: where tokio's clock is found to be
    /// virtual, the call waits by that. It is looked for in programs with debug assertions or with
    /// the feature `test-util`; elsewhere looking would cost more than the timer.
    ///
    /// # Panics
    ///
    /// The first call that waits panics if the thread cannot be started.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow::Hedge;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # async fn load(attempt: u32) -> Result<&'static str, &'static str> {
    /// #     if attempt == 0 { std::future::pending().await } Ok("ada")
    /// # }
    /// let hedge = Hedge::after(Duration::from_millis(5)).ring_timer();
    /// assert_eq!(hedge.call(|attempt| load(attempt.number())).await, Ok("ada"));
    /// # }
    /// ```
    pub fn ring_timer(mut self) -> Self {
        self.time = Time::Ring;
        self.derived()
    }

    /// Bounds the attempts that run on without their calls: once there are `most` of them, in all
    /// calls of this policy and its clones together, no further hedge starts until one has ended
    /// (gate `abandoned`). A primary is never refused, so there may be more. 0 means that nothing
    /// is hedged.
    ///
    /// For attempts that are tasks or threads of their own: those of losers that are detached, of
    /// [`blocking`](Hedge::blocking) calls that do not listen when they are told to stop, and of
    /// callers who left early. No bound by default.
    pub fn max_abandoned(mut self, most: usize) -> Self {
        self.abandoned = Some(Arc::new(Abandoned::at_most(most)));
        self
    }

    /// How many attempts run on without their calls now; `None` for a policy that does not bound
    /// them ([`max_abandoned`](Hedge::max_abandoned); a bound of [`usize::MAX`] only counts).
    pub fn abandoned(&self) -> Option<usize> {
        self.abandoned.as_ref().map(|abandoned| abandoned.count())
    }
}
