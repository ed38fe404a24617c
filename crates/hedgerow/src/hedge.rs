//! The policy that people keep: `Hedge`.

mod keyed;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hedgerow_core::latency::{Explanation, Keys, Learner, Learning};
use hedgerow_core::{
    Budget, Delay, Exhausted, ExtraLoad, FailureStart, InvalidOption, Losers, MaxHedges, Moment,
    Observer, Panics, Policy, RatioBudget, RejectedHedge, Schedule,
};

use crate::clock::Clock;

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
    clock: Option<Arc<dyn Clock>>,
    /// Derived from the rest: a call may take the fast path.
    plain: bool,
    family: Option<Arc<Family>>,
}

/// What all learners of a policy share, whatever their key.
struct Family {
    /// What their time is counted from: the first moment that one of them was told.
    epoch: OnceLock<Instant>,
    keys: Keys,
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
    /// [`spawned`](crate::HedgedCall::spawned).
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
        self.policy.learner = Some(Arc::new(Learner::new(learning)));
        let (epoch, keys) = (OnceLock::new(), Keys::new(learning.max_keys));
        self.family = Some(Arc::new(Family { epoch, keys }));
        self.budget(Arc::new(RatioBudget::new(load)))
    }

    /// Why calls are hedged when they are, and why not when they are not; `None` for a policy that
    /// does not learn.
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

    /// Tells every event of every call. An observed call allocates and reads the clock.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.policy.observer = Some(observer);
        self.derived()
    }

    /// Takes the time from this clock instead of tokio's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self.derived()
    }

    /// The options as plain data, as the engine takes them.
    #[inline]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn from_policy(policy: Policy) -> Self {
        Self { policy, clock: None, plain: false, family: None }.derived()
    }

    fn derived(mut self) -> Self {
        self.plain = matches!(self.policy.losers, Losers::Drop)
            && matches!(self.policy.panics, Panics::Propagate)
            && self.policy.observer.is_none()
            && self.clock.is_none();
        self
    }

    /// Lets the learner look at what came, if it is time to.
    pub(crate) fn tick(&self, learner: &Learner, now: Instant) {
        if let Some(family) = &self.family {
            let epoch = *family.epoch.get_or_init(|| now);
            learner.tick(Moment::from(now.saturating_duration_since(epoch)));
        }
    }

    #[inline]
    pub(crate) fn own_clock(&self) -> Option<&Arc<dyn Clock>> {
        self.clock.as_ref()
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
            .field("clock", &self.clock)
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
