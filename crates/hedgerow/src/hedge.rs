//! The policy that people keep: `Hedge`.

mod keyed;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hedgerow_core::latency::{Explanation, Keys, Learner, Learning};
use hedgerow_core::{
    Budget, Delay, Event, Exhausted, ExtraLoad, FailureStart, InvalidOption, Losers, MaxHedges,
    Moment, Observer, Panics, Policy, Pushback, RatioBudget, RejectedHedge, Schedule,
};

use crate::abandoned::Abandoned;
use crate::clock::{Clock, Time};
use crate::span::SpanMode;

/// A call on the fast path tells when it began only when there is something to decide. Those that
/// had begun by the first moment that is told have their place in time, too.
const BEFORE: Duration = Duration::from_secs(86_400);

/// A hedging policy: when to start another attempt, how many, and what to do with the losers.
///
/// Plain data without type parameters: keep one per dependency, share it by reference or clone it
/// (clones share the budget). The parts that need the caller's types join at the call, see
/// [`HedgedCall`](crate::HedgedCall).
///
/// | option | default | set by |
/// |---|---|---|
/// | delay | after 2 s | [`after`](Hedge::after), [`delay`](Hedge::delay), [`adaptive`](Hedge::adaptive) |
/// | `max_hedges` | 1 | [`max_hedges`](Hedge::max_hedges) |
/// | `failure_start` | `Launch` | [`failure_start`](Hedge::failure_start) |
/// | `exhausted` | `Primary` | [`exhausted`](Hedge::exhausted) |
/// | `losers` | `Drop` | [`losers`](Hedge::losers) |
/// | `rejected_hedge` | `Stop` | [`rejected_hedge`](Hedge::rejected_hedge) |
/// | `hedge_rejections` | false | [`hedge_rejections`](Hedge::hedge_rejections) |
/// | `panics` | `Propagate` | [`panics`](Hedge::panics) |
/// | `max_extra_load` | no bound | [`max_extra_load`](Hedge::max_extra_load) |
/// | `quiet_after_pushback` | false; true for adaptive | [`quiet_after_pushback`](Hedge::quiet_after_pushback) |
/// | `dry_run` | false | [`dry_run`](Hedge::dry_run) |
/// | `span` | `IfParent` | [`span`](Hedge::span) |
/// | `max_abandoned` | no bound | [`max_abandoned`](Hedge::max_abandoned) |
/// | timer | tokio's inside its runtimes, elsewhere the ring | [`ring_timer`](Hedge::ring_timer), [`clock`](Hedge::clock) |
/// | `max_keys` | 256 | [`max_keys`](Hedge::max_keys), for [`key`](Hedge::key) and [`server`](Hedge::server) |
///
/// Setters that can be given an impossible number panic and say what would be right, as for any
/// literal mistake in a program; numbers that come from outside go through `HedgeConfig` (feature
/// `serde`), which reports every mistake at once as an error.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hedge = Hedge::after(Duration::from_millis(50)).max_hedges(2).max_extra_load(0.05);
/// let answer: Result<u32, String> = hedge.call(|_| async { Ok(42) }).await;
/// assert_eq!(answer, Ok(42));
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a policy does nothing until something is called through it"]
pub struct Hedge {
    policy: Policy,
    time: Time,
    span: SpanMode,
    /// Derived from the rest: a call may take the fast path.
    plain: bool,
    /// What the time of the learner and of the quiet is counted from: [`BEFORE`] the first moment
    /// that either was told.
    epoch: Option<Arc<OnceLock<Instant>>>,
    /// What is learned apart; there if anything is learned.
    keys: Option<Arc<Keys>>,
    /// Counts the attempts that outlive their calls, if they are bounded.
    abandoned: Option<Arc<Abandoned>>,
}

impl Default for Hedge {
    /// The default of every option.
    fn default() -> Self {
        Self::from_policy(Policy::default())
    }
}

impl Hedge {
    /// One hedge if there is no answer after `delay`. A good first value is the latency that 95 of
    /// 100 calls stay under. Zero starts all attempts at once; [`Duration::MAX`] means never.
    pub fn after(delay: Duration) -> Self {
        Self::default().delay(Delay::After(delay))
    }

    /// Structured concurrency: `attempts` in total, the next one `after` the start of the latest
    /// or as soon as all that started have failed; the first failure is returned; losers are told
    /// to stop and waited for (rules K1 to K33).
    ///
    /// **The work has to listen**: a loser that does not look at its token runs to its end, and the
    /// call with it, so that nothing is gained. Either say
    /// [`until_cancelled`](crate::Attempt::until_cancelled) in the work, or drop losers instead:
    /// `.losers(Losers::Drop)`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow::Hedge;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # async fn load(attempt: u32) -> Result<&'static str, &'static str> {
    /// #     if attempt == 0 { std::future::pending().await } Ok("ada")
    /// # }
    /// let profile = Hedge::structured(Duration::from_millis(5), 3)
    ///     .call(async |attempt| {
    ///         let loading = load(attempt.number());
    ///         attempt.until_cancelled(loading).await.unwrap_or(Err("cancelled"))
    ///     })
    ///     .await;
    /// assert_eq!(profile, Ok("ada"));
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If `attempts` is 0 or more than 11.
    #[track_caller]
    pub fn structured(after: Duration, attempts: u32) -> Self {
        let mut hedge = Self::after(after)
            .failure_start(FailureStart::LaunchWhenIdle)
            .exhausted(Exhausted::First)
            .losers(Losers::Join { grace: None })
            .rejected_hedge(RejectedHedge::Hedge)
            .hedge_rejections(true);
        hedge.policy.max_hedges = literal(MaxHedges::from_total(attempts));
        hedge
    }

    /// A pipeline strategy: one hedge after two seconds or at a failure; the primary's failure is
    /// returned; losers are dropped; a rejection is judged by the predicate alone, so that an
    /// unhandled one of a hedge ends the call (rules T1 to T54).
    pub fn strategy() -> Self {
        Self::default().rejected_hedge(RejectedHedge::Decide)
    }

    /// A threaded policy: one extra attempt after two seconds or at a failure; the latest failure
    /// is returned; losers run on in the background (rules M1 to M22). Calls must be
    /// [`blocking`](Hedge::blocking) or [`spawned`](crate::HedgedCall::spawned).
    pub fn abandoning() -> Self {
        Self::default()
            .exhausted(Exhausted::Last)
            .losers(Losers::Detach)
            .rejected_hedge(RejectedHedge::Hedge)
            .hedge_rejections(true)
    }

    /// Learns by itself when to hedge, and when not to: the recommended policy.
    ///
    /// It hedges at the time and with the probability that make the 99th percentile lowest for at
    /// most 5 % extra load, from the latencies of the latest seconds. It starts no hedge before it
    /// has seen some 200 calls, while nearly all calls are slow, or while hedges hardly ever win.
    /// Clones share what was learned. Say [`max_extra_load`](Hedge::max_extra_load) for another
    /// load, [`learning`](Hedge::learning) for the rest, and [`key`](Hedge::key) where calls differ
    /// by what they ask for.
    pub fn adaptive() -> Self {
        Self::default().learning(Learning::default())
    }

    /// Learns when to hedge, as told; takes the place of the delay. Bounds the extra load by what
    /// `learning` says, and forgets what an earlier learner and its keys knew.
    ///
    /// # Panics
    ///
    /// If `learning.load` is not more than 0 and at most 1.
    #[track_caller]
    pub fn learning(mut self, learning: Learning) -> Self {
        let load = literal(ExtraLoad::at_most_one(learning.load));
        // Whoever had said what a pushback is to mean is not asked again.
        if self.policy.learner.replace(Arc::new(Learner::new(learning))).is_none() {
            self = self.quiet_after_pushback(true);
        }
        self.epoch.get_or_insert_default();
        self.keys = Some(Arc::new(Keys::new(learning.max_keys)));
        self.budget(Arc::new(RatioBudget::new(load)))
    }

    /// Why calls are hedged when they are, what that is predicted to bring, and why calls are not
    /// hedged when they are not; `None` for a policy that does not learn.
    ///
    /// ```
    /// let hedge = hedgerow::Hedge::adaptive();
    /// let why = hedge.explain().expect("it learns");
    /// assert_eq!(why.plan.delay, None, "nothing is known yet");
    /// ```
    pub fn explain(&self) -> Option<Explanation> {
        self.learner().map(Learner::explain)
    }

    /// What a learned policy has found out; `None` for one that does not learn.
    pub fn learner(&self) -> Option<&Learner> {
        self.policy.learner.as_deref()
    }

    /// When the next attempt is due: a [`Delay`], a [`Duration`], or a list with one delay per
    /// hedge whose last entry repeats.
    pub fn delay(mut self, schedule: impl Into<Schedule>) -> Self {
        self.policy.learner = None;
        self.policy.schedule = schedule.into();
        self
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
            None => self.budget(Arc::new(RatioBudget::new(load))),
        }
    }

    /// Bounds the extra load by a budget of one's own, or by one that other policies share.
    pub fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.policy.budget = Some(budget);
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
    /// allocates and reads the clock.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.policy.observer = Some(match self.policy.observer.take() {
            None => observer,
            Some(earlier) => Arc::new(move |event: &Event| {
                // The later one is told whatever the earlier one does.
                let told = catch_unwind(AssertUnwindSafe(|| earlier.event(event)));
                observer.event(event);
                told.unwrap_or_else(|panic| resume_unwind(panic));
            }),
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

    /// The options as plain data, as the engine takes them.
    #[inline]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn from_policy(policy: Policy) -> Self {
        let (epoch, keys, abandoned) = (None, None, None);
        Self {
            policy,
            time: Time::default(),
            span: SpanMode::default(),
            plain: false,
            epoch,
            keys,
            abandoned,
        }
        .derived()
    }

    fn derived(mut self) -> Self {
        self.plain = matches!(self.policy.losers, Losers::Drop)
            && matches!(self.policy.panics, Panics::Propagate)
            && self.policy.observer.is_none()
            && self.time.has_timer();
        self
    }

    /// Lets the learner look at what came, if it is time to.
    pub(crate) fn tick(&self, learner: &Learner, now: Instant) {
        learner.tick(self.policy_time(now));
    }

    /// The moment as the learner and the quiet count it, for all clones alike.
    fn policy_time(&self, now: Instant) -> Moment {
        let Some(epoch) = &self.epoch else { return Moment::ZERO };
        let first = || now.checked_sub(BEFORE).unwrap_or(now);
        Moment::from(now.saturating_duration_since(*epoch.get_or_init(first)))
    }

    /// When a call that began at this instant did, for the policy's quiet, if it has one.
    pub(crate) fn begun(&self, origin: Instant) -> Moment {
        match self.policy.quiet {
            Some(_) => self.policy_time(origin),
            None => Moment::ZERO,
        }
    }

    /// A target asked for quiet with an answer that no race has seen.
    #[cold]
    pub(crate) fn pushed_back(&self, pushback: Pushback) {
        if self.policy.quiet.is_some() {
            let now = self.time.clock().now();
            self.policy.pushed_back(pushback, self.policy_time(now));
        }
    }

    #[inline]
    pub(crate) fn counts_abandoned(&self) -> Option<&Arc<Abandoned>> {
        self.abandoned.as_ref()
    }

    #[inline]
    pub(crate) fn span_mode(&self) -> SpanMode {
        self.span
    }

    #[inline]
    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    /// Whether a call may take the fast path: nobody watches it, and a loser needs no more than to
    /// be dropped.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }
}

impl fmt::Debug for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge")
            .field("policy", &self.policy)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// A value written in a program: wrong ones are a mistake in that program.
#[track_caller]
fn literal<V>(value: Result<V, InvalidOption>) -> V {
    match value {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
