//! How a caller takes a call back: by a token.

use tokio_util::sync::CancellationToken;

use crate::call::HedgedCall;
use crate::failure::Cancelled;
use crate::hedge::Hedge;
use crate::rules::CancelWith;

/// The policy of a call that is over with its answer. That of a stream, which goes on after it, is
/// not one.
pub trait Answering {}

impl Answering for Hedge {}

impl Answering for &Hedge {}

/// How the call is cancelled.
impl<P: Answering, F, R> HedgedCall<P, F, R> {
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
}

impl<P, F, R> HedgedCall<P, F, R> {
    pub(crate) fn watch(self, token: &CancellationToken) -> Self {
        self.extra(|extras| extras.token = Some(token.clone()))
    }
}
