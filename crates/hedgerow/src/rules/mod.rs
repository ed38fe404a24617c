//! The typed part of a hedged call: what its outcomes mean.

mod setters;

use std::convert::Infallible;
use std::future::{Future, Ready};
use std::marker::PhantomData;

use hedgerow_core::{Delay, Origin, OutcomeKind, Pushback, Verdict};

use crate::attempt::Attempt;
use crate::failure::Failure;

pub(crate) use setters::{
    CancelWith, DelayWith, ExhaustedBy, Handle, NextActionBy, OnDiscard, OnHedge, OnHedgeAsync,
    PushbackBy, Rejection,
};

/// What the outcomes of a call mean and what goes with it, where `T` and `E` are known.
///
/// Every method has a default, which is what a call without rules does. The setters of
/// [`HedgedCall`](crate::HedgedCall) make rules from closures; implement the trait to keep rules
/// with a client and use them for many calls. A panic in any method drops every attempt and
/// reaches the caller.
///
/// ```
/// use hedgerow::{Defaults, Hedge, Judged, NoAction, NoHook, Rules};
///
/// /// Only the server's own failures are worth another attempt.
/// struct ServerErrors;
///
/// impl Rules<u16, String> for ServerErrors {
///     type Action = NoAction<u16, String>;
///     type Hook = NoHook;
///
///     fn handle(&mut self, judged: Judged<'_, u16, String>) -> bool {
///         judged.outcome().as_ref().map_or(true, |status| *status >= 500)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let status = Hedge::default().call(|_| async { Ok(204) }).rules(ServerErrors).await;
/// assert_eq!(status, Ok(204));
/// # }
/// ```
pub trait Rules<T, E> {
    /// The future of [`NextAction::Run`]; [`NoAction`] if there is none.
    type Action: Future<Output = Result<T, E>>;
    /// The future of an asynchronous hook; [`NoHook`] if there is none.
    type Hook: Future<Output = ()>;

    /// Whether an outcome is worth another attempt. Every other outcome decides the call.
    ///
    /// By default an error is, unless it is a rejection and the policy does not hedge rejections;
    /// a value is not.
    #[inline]
    fn handle(&mut self, judged: Judged<'_, T, E>) -> bool {
        judged.default_verdict()
    }

    /// Whether an error says that the work never started: an open breaker, a full limiter. By
    /// default no error does.
    #[inline]
    fn is_rejection(&mut self, _error: &E) -> bool {
        false
    }

    /// What the target asked for beside its answer: no hedge before a time, or none at all. `None`,
    /// the default, is nothing. Asked of every outcome that counts, handled or accepted, right
    /// after [`handle`](Rules::handle).
    #[inline]
    fn pushback(&mut self, _judged: Judged<'_, T, E>) -> Option<Pushback> {
        None
    }

    /// Which failure to return when all attempts failed, by its
    /// [`hedge_number`](Failure::hedge_number); `None`, or a number that is not among them, leaves
    /// it to the policy's `exhausted`. Failures come in completion order.
    fn exhausted(&mut self, _failures: &[Failure<T, E>]) -> Option<u8> {
        None
    }

    /// What a hedge that is about to start is to do. Never asked for the primary.
    ///
    /// # Errors
    ///
    /// An error ends the call with it, and every attempt is dropped. To make it the outcome of
    /// this one attempt instead, return [`NextAction::Answer`].
    fn next_action(&mut self, _next: &NextHedge<'_>) -> Result<NextAction<Self::Action, T, E>, E> {
        Ok(NextAction::Repeat)
    }

    /// Told before a hedge starts. A future is awaited first: if another attempt decides the call
    /// meanwhile, it is dropped and the hedge does not start.
    fn on_hedge(&mut self, _next: &NextHedge<'_>) -> Option<Self::Hook> {
        None
    }

    /// The delay before the next hedge; `None` is the policy's. Asked once per hedge, right after
    /// the previous attempt started, and never after the last one.
    fn delay(&mut self, _next: &NextHedge<'_>) -> Option<Delay> {
        None
    }

    /// Given every outcome that nobody will see, exactly once each: failures that are not
    /// returned, and whatever a loser still returned after the decision. (If other rules panic while
    /// they look at an outcome, that outcome goes with the panic.)
    fn on_discard(&mut self, _discarded: Discarded<T, E>) {}

    /// The error of a call that its caller cancelled through a token. Set by
    /// [`cancel_on`](crate::HedgedCall::cancel_on), together with the token.
    fn cancelled(&mut self) -> Option<E> {
        None
    }
}

/// No rules beyond the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults;

impl<T, E> Rules<T, E> for Defaults {
    type Action = NoAction<T, E>;
    type Hook = NoHook;
}

/// The hook of rules without one.
pub type NoHook = Ready<()>;

/// The action of rules that never run anything else. It cannot be made.
#[derive(Debug)]
pub struct NoAction<T, E>(Infallible, PhantomData<fn() -> Result<T, E>>);

impl<T, E> Future for NoAction<T, E> {
    type Output = Result<T, E>;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        match self.0 {}
    }
}

/// What a hedge does.
#[derive(Debug)]
#[non_exhaustive]
pub enum NextAction<A, T, E> {
    /// The same work again.
    Repeat,
    /// This instead: another region, another endpoint.
    Run(A),
    /// Nothing, with this outcome at once.
    Answer(Result<T, E>),
    /// The hedge does not start and nothing else will; running attempts go on.
    Stop,
}

impl<A, T, E> NextAction<A, T, E> {
    /// The same with another way to run it.
    pub(crate) fn map<B>(self, run: impl FnOnce(A) -> B) -> NextAction<B, T, E> {
        match self {
            Self::Repeat => NextAction::Repeat,
            Self::Run(action) => NextAction::Run(run(action)),
            Self::Answer(outcome) => NextAction::Answer(outcome),
            Self::Stop => NextAction::Stop,
        }
    }
}

/// An outcome that is being judged.
#[derive(Debug)]
pub struct Judged<'a, T, E> {
    outcome: &'a Result<T, E>,
    hedge: u8,
    is_rejection: bool,
    hedge_rejections: bool,
}

impl<T, E> Clone for Judged<'_, T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for Judged<'_, T, E> {}

impl<'a, T, E> Judged<'a, T, E> {
    /// The outcome.
    pub fn outcome(&self) -> &'a Result<T, E> {
        self.outcome
    }

    /// Whose it is: 0 is the primary.
    pub fn hedge_number(&self) -> u8 {
        self.hedge
    }

    /// Whether it says that the work never started.
    pub fn is_rejection(&self) -> bool {
        self.is_rejection
    }

    /// What the default predicate says.
    #[inline]
    pub fn default_verdict(&self) -> bool {
        self.outcome.is_err() && (!self.is_rejection || self.hedge_rejections)
    }
}

/// Judges an outcome by the rules.
#[inline]
pub(crate) fn judge<T, E, R: Rules<T, E>>(
    rules: &mut R,
    hedge: u8,
    outcome: &Result<T, E>,
    hedge_rejections: bool,
) -> Verdict {
    let is_rejection = match outcome {
        Ok(_) => false,
        Err(error) => rules.is_rejection(error),
    };
    let judged = Judged { outcome, hedge, is_rejection, hedge_rejections };
    let handled = rules.handle(judged);
    let kind = if is_rejection { OutcomeKind::Rejected } else { OutcomeKind::Returned };
    Verdict { handled, kind, pushback: rules.pushback(judged) }
}

/// A hedge that may start.
#[derive(Debug)]
pub struct NextHedge<'a> {
    attempt: &'a Attempt,
    origin: Option<Origin>,
}

impl<'a> NextHedge<'a> {
    pub(crate) fn new(attempt: &'a Attempt, origin: Option<Origin>) -> Self {
        Self { attempt, origin }
    }

    /// Its number: 1 is the first hedge.
    pub fn hedge_number(&self) -> u8 {
        self.attempt.hedge_number()
    }

    /// The attempt that it will be. Its properties are copied from the caller's when it starts.
    pub fn attempt(&self) -> &'a Attempt {
        self.attempt
    }

    /// Why it starts; `None` while only its delay is asked for.
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }
}

/// An outcome that nobody will see.
#[derive(Debug)]
#[non_exhaustive]
pub struct Discarded<T, E> {
    /// Whose it was: 0 is the primary.
    pub hedge_number: u8,
    /// The outcome.
    pub outcome: Result<T, E>,
}

impl<T, E> Discarded<T, E> {
    pub(crate) fn new(hedge_number: u8, outcome: Result<T, E>) -> Self {
        Self { hedge_number, outcome }
    }
}
