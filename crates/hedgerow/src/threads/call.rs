//! One blocking call before it runs: what the policy does not say.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Delay;
use tokio_util::sync::CancellationToken;

use super::park::{Parker, WallClock};
use super::place::{NextSeat, Threads, Usher};
use super::work::BlockingWork;
use crate::attempt::{Attempt, AttemptCounter};
use crate::call::HedgedCall;
use crate::drive::{SharedRules, SpawnedAttempt, Work};
use crate::failure::{Cancelled, Failure};
use crate::hedge::Hedge;
use crate::properties::Properties;
use crate::report::Report;
use crate::rules::{
    CancelWith, Defaults, DelayWith, Discarded, ExhaustedBy, Handle, NextAction, NextActionBy,
    NextHedge, OnDiscard, OnHedge, Rejection, Rules,
};

/// One hedged call that will block: [`run`](BlockingCall::run) it for the result, or
/// [`settle`](BlockingCall::settle) it for a report.
///
/// The setters are those of [`HedgedCall`], and mean the same. Predicates and hooks run on the
/// caller's thread while the call lasts; `on_discard` also on the threads of attempts that outlive
/// it, never two at a time. That is why all of them are `Send` and `'static`.
#[derive(Clone, Debug)]
#[must_use = "a prepared call does nothing until it is run"]
pub struct BlockingCall<'a, W, R> {
    call: HedgedCall<&'a Hedge, W, R>,
    threads: Arc<dyn Threads>,
}

/// What [`BlockingCall::next_action`] was given, with its closures made into [`BlockingWork`].
pub type NextWork<T, E> =
    Box<dyn FnMut(&NextHedge<'_>) -> Result<NextAction<BlockingWork<T, E>, T, E>, E> + Send>;

impl<'a, W, R> BlockingCall<'a, W, R> {
    pub(super) fn new(call: HedgedCall<&'a Hedge, W, R>, threads: Arc<dyn Threads>) -> Self {
        Self { call, threads }
    }

    fn map<S>(
        self,
        set: impl FnOnce(HedgedCall<&'a Hedge, W, R>) -> HedgedCall<&'a Hedge, W, S>,
    ) -> BlockingCall<'a, W, S> {
        BlockingCall { call: set(self.call), threads: self.threads }
    }

    /// See [`HedgedCall::idempotent`].
    pub fn idempotent(self, idempotent: bool) -> Self {
        self.map(|call| call.idempotent(idempotent))
    }

    /// See [`HedgedCall::deadline`]. It does not end the call: work that blocks reads it with
    /// [`Attempt::deadline`] and waits no longer.
    pub fn deadline(self, after: Duration) -> Self {
        self.map(|call| call.deadline(after))
    }

    /// See [`HedgedCall::properties`].
    pub fn properties(self, properties: &Properties) -> Self {
        self.map(|call| call.properties(properties))
    }

    /// See [`HedgedCall::counter`].
    pub fn counter(self, counter: &AttemptCounter) -> Self {
        self.map(|call| call.counter(counter))
    }

    /// Ends the call when `token` fires, from whatever thread. The attempts are told to stop,
    /// unless losers are detached, and run on until they listen. See [`HedgedCall::cancel_on`].
    #[expect(clippy::type_complexity, reason = "a function pointer that makes the error")]
    pub fn cancel_on<E: From<Cancelled>>(
        self,
        token: &CancellationToken,
    ) -> BlockingCall<'a, W, CancelWith<R, fn() -> E>> {
        self.map(|call| call.cancel_on(token))
    }

    /// See [`HedgedCall::cancel_on_or`].
    pub fn cancel_on_or<E, H>(
        self,
        token: &CancellationToken,
        error: H,
    ) -> BlockingCall<'a, W, CancelWith<R, H>>
    where
        H: FnMut() -> E,
    {
        self.map(|call| call.cancel_on_or(token, error))
    }

    /// Tells each hedge just before it starts. See [`HedgedCall::on_hedge`].
    pub fn on_hedge<H>(self, hook: H) -> BlockingCall<'a, W, OnHedge<R, H>>
    where
        H: FnMut(&NextHedge<'_>),
    {
        self.map(|call| call.on_hedge(hook))
    }

    /// See [`HedgedCall::delay_with`].
    pub fn delay_with<H>(self, delay: H) -> BlockingCall<'a, W, DelayWith<R, H>>
    where
        H: FnMut(&NextHedge<'_>) -> Delay,
    {
        self.map(|call| call.delay_with(delay))
    }
}

impl<'a, W> BlockingCall<'a, W, Defaults> {
    /// Judges outcomes by these rules; see [`HedgedCall::rules`]. A future that they give as
    /// [`NextAction::Run`] is polled on the thread of its attempt, without a runtime.
    pub fn rules<S>(self, rules: S) -> BlockingCall<'a, W, S> {
        self.map(|call| call.rules(rules))
    }
}

impl<'a, W, R, Fut> BlockingCall<'a, W, R>
where
    W: FnMut(Attempt) -> Fut,
    Fut: Work,
{
    /// See [`HedgedCall::handle`].
    pub fn handle<H>(self, handle: H) -> BlockingCall<'a, W, Handle<R, H>>
    where
        H: FnMut(&Result<Fut::Value, Fut::Error>) -> bool,
    {
        self.map(|call| call.handle(handle))
    }

    /// See [`HedgedCall::rejection`].
    pub fn rejection<H>(self, is_rejection: H) -> BlockingCall<'a, W, Rejection<R, H>>
    where
        H: FnMut(&Fut::Error) -> bool,
    {
        self.map(|call| call.rejection(is_rejection))
    }

    /// See [`HedgedCall::exhausted`].
    pub fn exhausted<H>(self, choose: H) -> BlockingCall<'a, W, ExhaustedBy<R, H>>
    where
        H: FnMut(&[Failure<Fut::Value, Fut::Error>]) -> u8,
    {
        self.map(|call| call.exhausted(choose))
    }

    /// See [`HedgedCall::on_discard`].
    pub fn on_discard<H>(self, discard: H) -> BlockingCall<'a, W, OnDiscard<R, H>>
    where
        H: FnMut(Discarded<Fut::Value, Fut::Error>),
    {
        self.map(|call| call.on_discard(discard))
    }

    /// What a hedge does instead of the same work: [`NextAction::Run`] holds a closure, which runs
    /// on the hedge's thread. See [`HedgedCall::next_action`].
    ///
    /// ```
    /// use hedgerow::{Hedge, NextAction};
    ///
    /// let answer = Hedge::default()
    ///     .blocking()
    ///     .prepare(|_| Err("the nearest server is down"))
    ///     .next_action(|_| Ok(NextAction::Run(|| Ok("from the other region"))))
    ///     .run();
    /// assert_eq!(answer, Ok("from the other region"));
    /// ```
    #[expect(clippy::type_complexity, reason = "a closure of ours around the caller's")]
    pub fn next_action<A, H>(
        self,
        mut next: H,
    ) -> BlockingCall<'a, W, NextActionBy<R, NextWork<Fut::Value, Fut::Error>>>
    where
        H: FnMut(&NextHedge<'_>) -> Result<NextAction<A, Fut::Value, Fut::Error>, Fut::Error>
            + Send
            + 'static,
        A: FnOnce() -> Result<Fut::Value, Fut::Error> + Send + 'static,
    {
        let next: NextWork<Fut::Value, Fut::Error> =
            Box::new(move |hedge| Ok(next(hedge)?.map(BlockingWork::new)));
        self.map(|call| call.with(|rules| NextActionBy(rules, next)))
    }
}

impl<W, R, Fut> BlockingCall<'_, W, R>
where
    W: FnMut(Attempt) -> Fut,
    Fut: Work + Send + 'static,
    Fut::Value: Send + 'static,
    Fut::Error: Send + 'static,
    R: Rules<Fut::Value, Fut::Error> + Send + 'static,
    R::Action: Send + 'static,
{
    /// Runs the call, and blocks until it is over.
    ///
    /// # Errors
    ///
    /// As [`Blocking::call`](super::Blocking::call).
    ///
    /// # Panics
    ///
    /// As [`Blocking::call`](super::Blocking::call).
    pub fn run(self) -> Result<Fut::Value, Fut::Error> {
        let (parker, call) = self.placed();
        parker.block_on(call.into_future())
    }

    /// Runs the call, and returns a full report instead of the bare result.
    ///
    /// # Panics
    ///
    /// As [`Blocking::call`](super::Blocking::call).
    pub fn settle(self) -> Report<Fut::Value, Fut::Error> {
        let (parker, call) = self.placed();
        parker.block_on(call.settle().into_future())
    }

    /// The call as the race takes it: every attempt is a task, and every task has a thread. And
    /// where to wait for it.
    #[expect(clippy::type_complexity, reason = "the type of a spawned call")]
    pub(crate) fn placed(
        self,
    ) -> (
        Arc<Parker>,
        HedgedCall<Hedge, impl FnMut(Attempt) -> SpawnedAttempt<Fut, R>, SharedRules<R>>,
    ) {
        let parker = Arc::new(Parker::default());
        let HedgedCall { policy, work, rules, extras } = self.call;
        let mut policy = policy.clone();
        if policy.time().has_timer() {
            policy = policy.clock(Arc::new(WallClock(Arc::clone(&parker))));
        }
        let next = NextSeat::on(self.threads);
        let usher = Usher(Arc::downgrade(&next));
        let call = HedgedCall { policy, work, rules, extras };
        let call = call.extra(|extras| extras.room = Some(next));
        (parker, call.spawned_on(Arc::new(usher)))
    }
}
