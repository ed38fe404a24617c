//! Calls whose answer is a stream: the first item decides.
//!
//! An attempt opens a stream and reads it until an item comes that says something. That item is the
//! attempt's outcome: if it is accepted, the stream it came from is the caller's from then on, with
//! every item that was read so far, and the streams of all other attempts are dropped. Everything
//! before that moment (the *commit*) is hedged like any other call; nothing after it is.
//!
//! ```
//! use futures_util::{StreamExt, stream};
//! use hedgerow::Hedge;
//!
//! #[derive(Clone, PartialEq, Debug)]
//! enum Delta {
//!     KeepAlive,
//!     Text(&'static str),
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), String> {
//! # use Delta::{KeepAlive, Text};
//! # type Answer = stream::Iter<std::vec::IntoIter<Result<Delta, String>>>;
//! # async fn ask(_prompt: &str, attempt: u32) -> Result<Answer, String> {
//! #     if attempt == 0 { std::future::pending().await }
//! #     Ok(stream::iter(vec![Ok(KeepAlive), Ok(Text("to ")), Ok(Text("be"))]))
//! # }
//! let hedge = Hedge::after(std::time::Duration::from_millis(5));
//! let mut answer = hedge
//!     .stream(async |attempt| ask("hamlet", attempt.number()).await)
//!     .commit_when(|delta| *delta != Delta::KeepAlive)
//!     .await?;
//! while let Some(delta) = answer.next().await {
//!     println!("{:?}", delta?);
//! }
//! # Ok(()) }
//! ```
//!
//! # What counts as what
//!
//! | what an attempt does before it commits | means |
//! |---|---|
//! | an item comes that [`commit_when`](HedgedCall::commit_when) does not refuse | its outcome is `Ok`, the stream |
//! | an item comes that says nothing | it is kept, and delivered first if this attempt wins |
//! | [`commit_within`](HedgedCall::commit_within) items are kept and one more comes | that one commits |
//! | it ends | `Ok`, an empty stream (but for what was kept) |
//! | it cannot be opened, or an error comes | its outcome is that `Err`; what was kept goes with it |
//!
//! Outcomes are judged, returned and discarded as those of any call: [`handle`](HedgedCall::handle)
//! sees the committed stream and can look at the item that decided
//! ([`committed`](HedgedStream::committed)); a stream that was refused is returned whole, if in the
//! end it is the one to return, and closed otherwise. An error after the commit is the consumer's:
//! it is handed on, and starts nothing.
//!
//! The error of a call that no attempt opened comes from awaiting it, before there is any stream:
//! that is the moment to choose another status, or another answer. What was learned about such
//! calls is the time to their commits.
//!
//! # Losers
//!
//! A loser's stream is dropped at the decision, with what it had kept: closing it is up to its
//! destructor. `on_discard` is given streams that committed and lost. Where losers are joined they
//! have to listen, as the work of any call does: a stream that does not end when its
//! [token](crate::Attempt::token) fires is waited for until it commits by itself. The winner's token
//! never fires.
//!
//! In a [`spawned`](HedgedCall::spawned) call the tasks end with the commit: the winner's stream
//! moves to the consumer, who reads it where it pleases; losers that are detached run on until they
//! commit, and are discarded then.
//!
//! # Costs
//!
//! Streams must be [`Unpin`], as an opened one moves to its consumer; put others in a [`Box::pin`].
//! A stream that its primary opens, and whose first item commits, costs no allocation beyond those
//! of the work. An attempt that finds many items ready that say nothing lets the others run now and
//! then.

mod hedged;
mod opening;

use std::borrow::Borrow;
use std::future::Future;

use futures_core::TryStream;
use tokio_util::sync::CancellationToken;

use crate::attempt::Attempt;
use crate::call::HedgedCall;
use crate::failure::Cancelled;
use crate::hedge::Hedge;
use crate::rules::{CancelWith, Defaults};

pub use hedged::HedgedStream;
pub use opening::Opening;

/// The policy of a call whose answer is a stream.
#[derive(Clone, Copy, Debug)]
pub struct Streaming<P>(P);

impl<P: Borrow<Hedge>> Borrow<Hedge> for Streaming<P> {
    fn borrow(&self) -> &Hedge {
        self.0.borrow()
    }
}

/// Whether an item decides, where nothing was said about it: any does.
type AnyItem<S> = fn(&<S as TryStream>::Ok) -> bool;

/// Makes calls whose answer is a stream.
impl Hedge {
    /// Hedges the opening of a stream: its first item decides; see [`stream`](crate::stream).
    ///
    /// `open` makes the future of one attempt, which resolves to a stream; one that is a stream
    /// already is opened by `async |_| Ok(stream)`. It is called once for the primary and once for
    /// each hedge. Awaiting the call resolves to a [`HedgedStream`] as soon as an attempt commits.
    #[expect(clippy::type_complexity, reason = "what a call is made of")]
    pub fn stream<F, Fut, S>(
        &self,
        mut open: F,
    ) -> HedgedCall<Streaming<&Self>, impl FnMut(Attempt) -> Opening<Fut, S, AnyItem<S>>, Defaults>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<S, S::Error>>,
        S: TryStream + Unpin,
    {
        HedgedCall::new(Streaming(self), move |attempt| Opening::new(open(attempt)))
    }
}

/// When a stream decides, and how its call is cancelled.
impl<P, F, R, Fut, S, C> HedgedCall<Streaming<P>, F, R>
where
    F: FnMut(Attempt) -> Opening<Fut, S, C>,
    Fut: Future<Output = Result<S, S::Error>>,
    S: TryStream + Unpin,
{
    /// Which items decide. All others say nothing (a keep-alive, an empty delta): they are kept,
    /// and delivered in order once the stream has committed. Default: the first item decides.
    ///
    /// Each attempt has a clone of `decides`, so that one may count. If it panics, its attempt does.
    pub fn commit_when<D>(
        self,
        decides: D,
    ) -> HedgedCall<Streaming<P>, impl FnMut(Attempt) -> Opening<Fut, S, D>, R>
    where
        D: FnMut(&S::Ok) -> bool + Clone,
    {
        self.with_work(|mut work| {
            move |attempt: Attempt| work(attempt).commit_when(decides.clone())
        })
    }

    /// How many items that say nothing each attempt keeps. The one that no longer fits decides,
    /// whatever it says; 0 keeps none, so that the first item decides. Default: 64.
    pub fn commit_within(
        self,
        items: usize,
    ) -> HedgedCall<Streaming<P>, impl FnMut(Attempt) -> Opening<Fut, S, C>, R> {
        self.with_work(|mut work| move |attempt: Attempt| work(attempt).commit_within(items))
    }

    /// Ends the call when `token` fires, and the stream that came of it, too. Before the commit all
    /// attempts are told to stop and the result is [`Cancelled`], as an error of the caller's own
    /// type; after it the winner's stream is dropped and the next item is that error, the last one.
    /// An outcome accepted at the same moment wins over the token; an item does not.
    ///
    /// [`Settle::cancel_on`](crate::Settle::cancel_on) has no error to give, and so ends only what
    /// has not committed.
    #[expect(clippy::type_complexity, reason = "what a call is made of")]
    pub fn cancel_on(
        self,
        token: &CancellationToken,
    ) -> HedgedCall<
        Streaming<P>,
        impl FnMut(Attempt) -> Opening<Fut, S, C> + use<P, F, R, Fut, S, C>,
        CancelWith<R, fn() -> S::Error>,
    >
    where
        S::Error: From<Cancelled>,
    {
        self.cancel_on_or(token, || Cancelled.into())
    }

    /// The same as `cancel_on`, for an error type that cannot be made from [`Cancelled`]: `error`
    /// makes it. A function without captures: it is kept with the stream.
    #[expect(clippy::type_complexity, reason = "what a call is made of")]
    pub fn cancel_on_or(
        self,
        token: &CancellationToken,
        error: fn() -> S::Error,
    ) -> HedgedCall<
        Streaming<P>,
        impl FnMut(Attempt) -> Opening<Fut, S, C> + use<P, F, R, Fut, S, C>,
        CancelWith<R, fn() -> S::Error>,
    > {
        let until = token.clone();
        self.watch(token)
            .with(|rules| CancelWith(rules, error))
            .with_work(|mut work| move |attempt: Attempt| work(attempt).cancel_on_or(&until, error))
    }
}
