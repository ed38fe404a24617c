//! One call before it is awaited: what the policy does not say.

mod outcomes;

use std::borrow::Borrow;
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Delay;

use crate::attempt::{Attempt, AttemptCounter};
use crate::drive::{Hedged, SharedRules, SpawnedAttempt, Spawner, Work};
use crate::extras::Extras;
use crate::hedge::Hedge;
use crate::properties::Properties;
use crate::rules::{Defaults, DelayWith, NextHedge, OnHedge, OnHedgeAsync, Rules};

/// One hedged call: await it for the result, or [`settle`](HedgedCall::settle) it for a report.
///
/// Attempts run inside the caller's task: nothing is spawned, nothing needs to be `'static` or
/// `Send`, and dropping the call drops every attempt. A call that is answered by its primary, with
/// none of the setters below, allocates nothing.
#[derive(Clone, Debug)]
#[must_use = "a hedged call does nothing until it is awaited"]
pub struct HedgedCall<P, F, R> {
    pub(crate) policy: P,
    pub(crate) work: F,
    pub(crate) rules: R,
    pub(crate) extras: Option<Box<Extras>>,
}

/// Makes calls.
impl Hedge {
    /// Hedges a piece of work.
    ///
    /// `work` makes the future of one attempt. It is called once for the primary and once for
    /// each hedge, so it must be safe to run concurrently with itself, and should be idempotent.
    /// Nothing happens until the call is awaited; see [`HedgedCall`] for what else can be said
    /// before that.
    ///
    /// Work that looks at what its caller has is best written as an async closure:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # async fn send(_body: &str, _attempt: u32) -> Result<u16, String> { Ok(204) }
    /// let hedge = hedgerow::Hedge::default();
    /// let body = String::from("ping");
    /// let status = hedge.call(async |attempt| send(&body, attempt.number()).await).await;
    /// assert_eq!(status, Ok(204));
    /// # }
    /// ```
    ///
    /// Tests of one's own need no waiting: under tokio's paused time
    /// (`#[tokio::test(start_paused = true)]`) hedges start at exact virtual times.
    pub fn call<F, Fut>(&self, work: F) -> HedgedCall<&Self, F, Defaults>
    where
        F: FnMut(Attempt) -> Fut,
    {
        HedgedCall::new(self, work)
    }
}

/// Hedges one piece of work, with a policy made for it on the spot.
///
/// The same as [`Hedge::call`] on a policy that nobody keeps; a policy that is used again is
/// cheaper, and only a kept one can have a budget.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::hedged;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # async fn load_profile(_user: u32, _attempt: u32) -> Result<&'static str, String> { Ok("ada") }
/// # let user_id = 7;
/// let profile = hedged(|attempt| load_profile(user_id, attempt.number()))
///     .after(Duration::from_millis(50))
///     .max_hedges(2)
///     .await;
/// assert_eq!(profile, Ok("ada"));
/// # }
/// ```
pub fn hedged<F, Fut>(work: F) -> HedgedCall<Hedge, F, Defaults>
where
    F: FnMut(Attempt) -> Fut,
{
    HedgedCall::new(Hedge::default(), work)
}

impl<P, F, R: Default> HedgedCall<P, F, R> {
    pub(crate) fn new(policy: P, work: F) -> Self {
        Self { policy, work, rules: R::default(), extras: None }
    }
}

/// What the call carries, how it runs.
impl<P, F, R> HedgedCall<P, F, R> {
    pub(crate) fn extra(mut self, set: impl FnOnce(&mut Extras)) -> Self {
        set(self.extras.get_or_insert_default());
        self
    }

    /// Whether the work may run more than once (default: yes). If not, no attempt starts while
    /// another may be in flight, and only a rejection that is handled is followed by another
    /// attempt (T34-T36).
    pub fn idempotent(self, idempotent: bool) -> Self {
        self.extra(|extras| extras.idempotent = idempotent)
    }

    /// When the caller stops waiting, counted from the start of the call. No hedge starts at or
    /// after it, and attempts can read it; it does not end the call, a timeout around it does.
    pub fn deadline(self, after: Duration) -> Self {
        self.extra(|extras| extras.deadline = Some(after))
    }

    /// Gives each attempt a token of its own; see [`Attempt::token`].
    pub fn tokens(self) -> Self {
        self.extra(|extras| extras.tracked = true)
    }

    /// Gives each attempt a copy of these properties and merges the winner's back.
    pub fn properties(self, properties: &Properties) -> Self {
        self.extra(|extras| extras.properties = Some(properties.clone()))
    }

    /// Numbers the attempts of this call together with those of every call that shares `counter`.
    pub fn counter(self, counter: &AttemptCounter) -> Self {
        self.extra(|extras| extras.counter = Some(counter.clone()))
    }
}

/// A client's own rules.
impl<P, F> HedgedCall<P, F, Defaults> {
    /// Judges outcomes by these rules. Said first: the setters below refine them.
    pub fn rules<S>(self, rules: S) -> HedgedCall<P, F, S> {
        self.with(|_| rules)
    }
}

/// What outcomes mean. Hooks add up, in the order in which they are set; every other setter replaces
/// what an earlier one of the same name said.
impl<P, F, R> HedgedCall<P, F, R> {
    pub(crate) fn with<S>(self, wrap: impl FnOnce(R) -> S) -> HedgedCall<P, F, S> {
        let Self { policy, work, rules, extras } = self;
        HedgedCall { policy, work, rules: wrap(rules), extras }
    }

    pub(crate) fn with_work<G>(self, wrap: impl FnOnce(F) -> G) -> HedgedCall<P, G, R> {
        let Self { policy, work, rules, extras } = self;
        HedgedCall { policy, work: wrap(work), rules, extras }
    }

    /// Tells each hedge just before it starts.
    pub fn on_hedge<H>(self, hook: H) -> HedgedCall<P, F, OnHedge<R, H>>
    where
        H: FnMut(&NextHedge<'_>),
    {
        self.with(|rules| OnHedge(rules, hook))
    }

    /// Awaits this before each hedge starts. If another attempt decides the call meanwhile, the
    /// hook is dropped and the hedge does not start.
    pub fn on_hedge_async<H, K>(self, hook: H) -> HedgedCall<P, F, OnHedgeAsync<R, H>>
    where
        H: FnMut(&NextHedge<'_>) -> K,
        K: Future<Output = ()>,
    {
        self.with(|rules| OnHedgeAsync(rules, hook))
    }

    /// The delay before each hedge, asked right after the previous attempt started.
    pub fn delay_with<H>(self, delay: H) -> HedgedCall<P, F, DelayWith<R, H>>
    where
        H: FnMut(&NextHedge<'_>) -> Delay,
    {
        self.with(|rules| DelayWith(rules, delay))
    }
}

/// The policy, for calls that own theirs.
impl<F, R> HedgedCall<Hedge, F, R> {
    /// How long to wait for an answer before the next attempt starts.
    pub fn after(self, delay: Duration) -> Self {
        self.policy(|hedge| hedge.delay(delay))
    }

    /// How many attempts beyond the primary may start: 0 to 10.
    ///
    /// # Panics
    ///
    /// If `hedges` is more than 10.
    pub fn max_hedges(self, hedges: u32) -> Self {
        self.policy(|hedge| hedge.max_hedges(hedges))
    }

    /// Changes the policy in any other way.
    pub fn policy(mut self, change: impl FnOnce(Hedge) -> Hedge) -> Self {
        self.policy = change(self.policy);
        self
    }
}

impl<P, F, R, Fut> HedgedCall<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// Runs every attempt as a task of its own on an executor of one's own; see
    /// [`spawned`](HedgedCall::spawned), which is this on tokio's runtime.
    pub fn spawned_on(
        self,
        spawner: Arc<dyn Spawner>,
    ) -> HedgedCall<P, impl FnMut(Attempt) -> SpawnedAttempt<Fut, R>, SharedRules<R>>
    where
        Fut: Send + 'static,
        Fut::Value: Send + 'static,
        Fut::Error: Send + 'static,
        R: Send + 'static,
        R::Action: Send + 'static,
    {
        let Self { policy, work, rules, extras } = self.extra(|extras| {
            extras.spawned = true;
            extras.tracked = true;
        });
        let rules = SharedRules::new(rules, spawner, policy.borrow());
        let call = HedgedCall { policy, work, rules, extras };
        let shared = call.rules.clone();
        call.with_work(|mut work| {
            move |attempt: Attempt| {
                SpawnedAttempt::new(work(attempt.clone()), attempt, shared.clone())
            }
        })
    }
}

impl<P, F, R, Fut> HedgedCall<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    #[inline]
    pub(crate) fn start(self) -> Hedged<P, F, Fut, R> {
        let Self { policy, work, rules, extras } = self;
        Hedged::new(policy, work, rules, extras)
    }
}

impl<P, F, R, Fut> IntoFuture for HedgedCall<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    type Output = Result<Fut::Value, Fut::Error>;
    type IntoFuture = Hedged<P, F, Fut, R>;

    /// # Panics
    ///
    /// If the policy detaches its losers and the call is not [`spawned`](HedgedCall::spawned).
    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        self.start()
    }
}
