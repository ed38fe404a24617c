//! What the outcomes of a call mean: setters that know the types of its work.

use std::future::Future;

use hedgerow_core::Pushback;

use super::HedgedCall;
use crate::attempt::Attempt;
use crate::drive::Work;
use crate::failure::Failure;
use crate::rules::{
    Discarded, ExhaustedBy, Handle, NextAction, NextActionBy, NextHedge, OnDiscard, PushbackBy,
    Rejection,
};

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

    /// Which outcomes say that their target wants fewer requests; see [`Pushback`]. Until then, or
    /// for the rest of the call, no hedge starts: one that is due or that a failure has earned
    /// waits, if that takes ten minutes at most and the deadline lets it, and is refused otherwise
    /// (gate `pushback`). Later calls of a
    /// policy that is [`quiet_after_pushback`](crate::Hedge::quiet_after_pushback) keep quiet,
    /// too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow::{Hedge, Pushback};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// struct Unavailable { retry_after: Option<Duration> }
    ///
    /// let hedge = Hedge::default().quiet_after_pushback(true);
    /// let answer: Result<&str, Unavailable> = hedge
    ///     .call(|attempt| async move {
    ///         match attempt.hedge_number() {
    ///             0 => Err(Unavailable { retry_after: Some(Duration::from_millis(5)) }),
    ///             _ => Ok("5 ms later"),
    ///         }
    ///     })
    ///     .pushback(|outcome| match outcome {
    ///         Err(Unavailable { retry_after }) => Some(retry_after.map_or(Pushback::Stop, Pushback::For)),
    ///         Ok(_) => None,
    ///     })
    ///     .await;
    /// assert!(answer.is_ok());
    /// # }
    /// ```
    pub fn pushback<H>(self, pushback: H) -> HedgedCall<P, F, PushbackBy<R, H>>
    where
        H: FnMut(&Result<Fut::Value, Fut::Error>) -> Option<Pushback>,
    {
        self.with(|rules| PushbackBy(rules, pushback))
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
    ///
    /// ```
    /// use hedgerow::{NextAction, hedged};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # async fn ask(region: &str) -> Result<String, String> {
    /// #     if region == "near" { Err("down".to_owned()) } else { Ok(region.to_owned()) }
    /// # }
    /// let answer = hedged(|_| ask("near"))
    ///     .max_hedges(2)
    ///     .next_action(|next| match next.hedge_number() {
    ///         1 => Ok(NextAction::Run(ask("far"))),
    ///         _ => Ok(NextAction::Stop),
    ///     })
    ///     .await;
    /// assert_eq!(answer, Ok("far".to_owned()));
    /// # }
    /// ```
    ///
    /// A closure that never says `Run` has to name the future that it does not have:
    /// `NextAction::<NoAction<_, _>, _, _>::Repeat`.
    pub fn next_action<A, H>(self, next: H) -> HedgedCall<P, F, NextActionBy<R, H>>
    where
        H: FnMut(&NextHedge<'_>) -> Result<NextAction<A, Fut::Value, Fut::Error>, Fut::Error>,
        A: Future<Output = Result<Fut::Value, Fut::Error>>,
    {
        self.with(|rules| NextActionBy(rules, next))
    }

    /// Given every outcome that nobody will see, exactly once each; see
    /// [`Rules::on_discard`](crate::Rules::on_discard).
    pub fn on_discard<H>(self, discard: H) -> HedgedCall<P, F, OnDiscard<R, H>>
    where
        H: FnMut(Discarded<Fut::Value, Fut::Error>),
    {
        self.with(|rules| OnDiscard(rules, discard))
    }
}
