//! The policy that people keep: `Hedge`.

mod keyed;
mod setters;
mod succession;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hedgerow_core::latency::{Explanation, Keys, Learner, Learning};
use hedgerow_core::{
    Delay, Exhausted, ExtraLoad, FailureStart, InvalidOption, Losers, MaxHedges, Moment, Panics,
    Policy, Pushback, RejectedHedge,
};

use crate::abandoned::Abandoned;
use crate::clock::Time;
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
    /// What the budget was made from, if it is one's own.
    load: Option<ExtraLoad>,
    /// Derived from the rest, as is the next one.
    path: Path,
    /// Somebody wants to know how calls end that never have more than their primary.
    told: bool,
    /// What the time of the learner and of the quiet is counted from: [`BEFORE`] the first moment
    /// that either was told.
    epoch: Option<Arc<OnceLock<Instant>>>,
    /// What is learned apart; there if anything is learned.
    keys: Option<Arc<Keys>>,
    /// Counts the attempts that outlive their calls, if they are bounded.
    abandoned: Option<Arc<Abandoned>>,
}

/// The way of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// Nobody watches it, and a loser needs no more than to be dropped.
    Plain,
    /// The same, but somebody counts how it ends.
    Counted,
    /// Through the engine from the start.
    Tracked,
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
        self.bounded(load).derived()
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
            load: None,
            path: Path::Tracked,
            told: false,
            epoch,
            keys,
            abandoned,
        }
        .derived()
    }

    fn derived(mut self) -> Self {
        let plain = matches!(self.policy.losers, Losers::Drop)
            && matches!(self.policy.panics, Panics::Propagate)
            && self.time.has_timer();
        self.path = match &self.policy.observer {
            _ if !plain => Path::Tracked,
            None => Path::Plain,
            Some(observer) if observer.wants_all() => Path::Tracked,
            Some(_) => Path::Counted,
        };
        self.told = self.policy.learner.is_some() || self.path == Path::Counted;
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

    /// Whether somebody wants to know how a call ends that never has more than its primary.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.told
    }

    /// Which way a call may take that wants nothing special.
    #[inline]
    pub(crate) fn path(&self) -> Path {
        self.path
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
