//! One call before it is awaited: what the policy does not say.

use std::borrow::Borrow;
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Delay;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, AttemptCounter};
use crate::drive::{Hedged, SharedRules, SpawnedAttempt, Spawner, Work};
use crate::extras::Extras;
use crate::failure::{Cancelled, Failure};
use crate::hedge::Hedge;
use crate::properties::Properties;
use crate::rules::{
    CancelWith, Defaults, DelayWith, Discarded, ExhaustedBy, Handle, NextAction, NextActionBy,
    NextHedge, OnDiscard, OnHedge, OnHedgeAsync, Rejection, Rules,
};

/// One hedged call: await it for the result, or [`settle`](HedgedCall::settle) it for a report.
///
/// Attempts run inside the caller's task: nothing is spawned, nothing needs to be `'static` or
/// `Send`, and dropping the call drops every attempt. A call that is answered by its primary, with
/// none of the setters below, allocates nothing.
#[derive(Clone, Debug)]
#[must_use = "a hedged call does nothing until it is awaited"]
pub struct HedgedCall<P, F, R> {
    policy: P,
    work: F,
    rules: R,
    extras: Option<Box<Extras>>,
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

/// How the call is cancelled, what it carries, how it runs.
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

    /// Ends the call when `token` fires: all attempts are told to stop and the result is
    /// [`Cancelled`], as an error of the caller's own type. A call that is cancelled before it
    /// starts runs nothing. An outcome accepted at the same moment wins over the token.
    ///
    /// Where `E` cannot be made from [`Cancelled`], use
    /// [`cancel_on_or`](HedgedCall::cancel_on_or), or [`settle`](HedgedCall::settle) first and use
    /// [`Settle::cancel_on`](crate::Settle::cancel_on).
    #[expect(clippy::type_complexity, reason = "a function pointer that makes the error")]
    pub fn cancel_on<E: From<Cancelled>>(
        self,
        token: &CancellationToken,
    ) -> HedgedCall<P, F, CancelWith<R, fn() -> E>> {
        let error: fn() -> E = || E::from(Cancelled);
        self.watch(token).with(|rules| CancelWith(rules, error))
    }

    /// The same as [`cancel_on`](HedgedCall::cancel_on), for an error type that cannot be made from
    /// [`Cancelled`]: `error` makes it.
    ///
    /// ```
    /// use hedgerow::{CancellationToken, hedged};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let token = CancellationToken::new();
    /// token.cancel();
    /// let answer = hedged(|_| async { Ok::<u32, String>(1) })
    ///     .cancel_on_or(&token, || "nobody waits any more".to_owned())
    ///     .await;
    /// assert_eq!(answer, Err("nobody waits any more".to_owned()));
    /// # }
    /// ```
    pub fn cancel_on_or<E, H>(
        self,
        token: &CancellationToken,
        error: H,
    ) -> HedgedCall<P, F, CancelWith<R, H>>
    where
        H: FnMut() -> E,
    {
        self.watch(token).with(|rules| CancelWith(rules, error))
    }

    pub(crate) fn watch(self, token: &CancellationToken) -> Self {
        self.extra(|extras| extras.token = Some(token.clone()))
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
    fn with<S>(self, wrap: impl FnOnce(R) -> S) -> HedgedCall<P, F, S> {
        let Self { policy, work, rules, extras } = self;
        HedgedCall { policy, work, rules: wrap(rules), extras }
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

/// What outcomes mean, where their types matter.
impl<P, F, R, Fut> HedgedCall<P, F, R>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
{
    /// Which outcomes are worth another attempt; all others decide the call. Values may be, too: a
    /// response with status 503, say. Default: every error that is not a rejection.
    ///
    /// ```
    /// use hedgerow::hedged;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let status = hedged(|attempt| async move {
    ///     Ok::<_, String>(if attempt.hedge_number() == 0 { 503 } else { 200 })
    /// })
    /// .handle(|outcome| !matches!(outcome, Ok(status) if *status < 500))
    /// .await;
    /// assert_eq!(status, Ok(200));
    /// # }
    /// ```
    pub fn handle<H>(self, handle: H) -> HedgedCall<P, F, Handle<R, H>>
    where
        H: FnMut(&Result<Fut::Value, Fut::Error>) -> bool,
    {
        self.with(|rules| Handle(rules, handle))
    }

    /// Which errors say that the work never started. Default: none.
    pub fn rejection<H>(self, is_rejection: H) -> HedgedCall<P, F, Rejection<R, H>>
    where
        H: FnMut(&Fut::Error) -> bool,
    {
        self.with(|rules| Rejection(rules, is_rejection))
    }

    /// Chooses the failure to return when all attempts failed, by its hedge number, from the
    /// failures in completion order.
    pub fn exhausted<H>(self, choose: H) -> HedgedCall<P, F, ExhaustedBy<R, H>>
    where
        H: FnMut(&[Failure<Fut::Value, Fut::Error>]) -> u8,
    {
        self.with(|rules| ExhaustedBy(rules, choose))
    }

    /// What a hedge does instead of the same work; see [`NextAction`]. An `Err` ends the call.
    pub fn next_action<A, H>(self, next: H) -> HedgedCall<P, F, NextActionBy<R, H>>
    where
        H: FnMut(&NextHedge<'_>) -> Result<NextAction<A, Fut::Value, Fut::Error>, Fut::Error>,
        A: Future<Output = Result<Fut::Value, Fut::Error>>,
    {
        self.with(|rules| NextActionBy(rules, next))
    }

    /// Given every outcome that nobody will see, exactly once each; see [`Rules::on_discard`].
    pub fn on_discard<H>(self, discard: H) -> HedgedCall<P, F, OnDiscard<R, H>>
    where
        H: FnMut(Discarded<Fut::Value, Fut::Error>),
    {
        self.with(|rules| OnDiscard(rules, discard))
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
        let call = self.extra(|extras| {
            extras.spawned = true;
            extras.tracked = true;
        });
        let Self { policy, mut work, rules, extras } = call;
        let rules = SharedRules::new(rules, spawner, policy.borrow().policy().losers);
        let shared = rules.clone();
        let work = move |attempt: Attempt| {
            SpawnedAttempt::new(work(attempt.clone()), attempt, shared.clone())
        };
        HedgedCall { policy, work, rules, extras }
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
