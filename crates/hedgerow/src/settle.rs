//! A call that resolves to a report.

use std::borrow::Borrow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio_util::sync::CancellationToken;

use crate::attempt::Attempt;
use crate::call::HedgedCall;
use crate::drive::{Hedged, Work};
use crate::hedge::Hedge;
use crate::report::Report;
use crate::rules::Rules;

impl<P, F, R, Fut> HedgedCall<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// Resolves to a full report instead of the bare result.
    pub fn settle(self) -> Settle<P, F, R> {
        Settle(self.extra(|extras| extras.settle = true))
    }
}

/// A hedged call that resolves to a [`Report`]. Made by
/// [`HedgedCall::settle`](HedgedCall::settle).
#[derive(Debug, Clone)]
#[must_use = "a hedged call does nothing until it is awaited"]
pub struct Settle<P, F, R>(HedgedCall<P, F, R>);

impl<P, F, R> Settle<P, F, R> {
    /// Ends the call when `token` fires; the report then has no result. A stream that has committed
    /// goes on: there is no error to end it with.
    pub fn cancel_on(self, token: &CancellationToken) -> Self {
        Self(self.0.watch(token))
    }
}

impl<P, F, R, Fut> IntoFuture for Settle<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    type Output = Report<Fut::Value, Fut::Error>;
    type IntoFuture = Settled<P, F, Fut, R>;

    fn into_future(self) -> Self::IntoFuture {
        Settled { call: self.0.start() }
    }
}

pin_project! {
    /// The future of a hedged call that resolves to a [`Report`].
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Settled<P, F, Fut, R>
    where
        P: Borrow<Hedge>,
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        #[pin]
        call: Hedged<P, F, Fut, R>,
    }
}

impl<P, F, Fut, R> Future for Settled<P, F, Fut, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    type Output = Report<Fut::Value, Fut::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().call.poll_ending(cx).map(Report::new)
    }
}
