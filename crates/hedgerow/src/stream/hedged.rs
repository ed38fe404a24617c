//! The stream of the attempt that was first.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream, TryStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that has committed: what was read before, in order, then the rest of it.
///
/// What a call of [`Hedge::stream`](crate::Hedge::stream) resolves to. After its end, or the error
/// of its token, it stays at its end. Dropping it drops the stream inside.
pub struct HedgedStream<S: TryStream> {
    kept: VecDeque<S::Ok>,
    committed: Option<S::Ok>,
    /// Absent once the token has ended it.
    stream: Option<S>,
    ended: bool,
    until: Option<Until<S::Error>>,
}

/// What ends a committed stream early, and with which error.
pub(super) struct Until<E> {
    fired: Pin<Box<WaitForCancellationFutureOwned>>,
    error: fn() -> E,
}

impl<E> Until<E> {
    pub(super) fn new(token: CancellationToken, error: fn() -> E) -> Self {
        Self { fired: Box::pin(token.cancelled_owned()), error }
    }
}

// Nothing is pinned in place: the stream itself is `Unpin` where it is polled.
impl<S: TryStream> Unpin for HedgedStream<S> {}

impl<S: TryStream> HedgedStream<S> {
    /// `committed` is the item that decided; `None` if the stream has ended.
    pub(super) fn new(
        kept: VecDeque<S::Ok>,
        committed: Option<S::Ok>,
        stream: S,
        until: Option<Until<S::Error>>,
    ) -> Self {
        let ended = committed.is_none();
        Self { kept, committed, stream: Some(stream), ended, until }
    }

    /// The item that decided, until it is read. `None` if the stream ended before any did.
    pub fn committed(&self) -> Option<&S::Ok> {
        self.committed.as_ref()
    }

    /// The items that came before the commit, the one that decided included, as far as they have
    /// not been read yet.
    pub fn kept(&self) -> impl Iterator<Item = &S::Ok> {
        self.kept.iter().chain(&self.committed)
    }

    /// The stream inside, which has handed out what is [`kept`](HedgedStream::kept) already;
    /// `None` if its token has ended it.
    pub fn get_ref(&self) -> Option<&S> {
        self.stream.as_ref()
    }

    /// The same, to be changed. Items that are read from it do not come through here.
    pub fn get_mut(&mut self) -> Option<&mut S> {
        self.stream.as_mut()
    }

    /// How many items are waiting here.
    fn waiting(&self) -> usize {
        self.kept.len() + usize::from(self.committed.is_some())
    }

    /// Nothing more will come.
    fn is_over(&self) -> bool {
        self.ended && self.waiting() == 0
    }

    /// If the token has fired: drops everything, and makes the last item.
    fn poll_until(&mut self, cx: &mut Context<'_>) -> Option<S::Error> {
        if self.is_over() {
            return None;
        }
        let until = self.until.as_mut()?;
        let error = until.fired.as_mut().poll(cx).is_ready().then_some(until.error)?;
        self.ended = true;
        self.until = None;
        drop((std::mem::take(&mut self.kept), self.committed.take(), self.stream.take()));
        Some(error())
    }
}

impl<S: TryStream + Unpin> Stream for HedgedStream<S> {
    type Item = Result<S::Ok, S::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(error) = this.poll_until(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(item) = this.kept.pop_front().or_else(|| this.committed.take()) {
            return Poll::Ready(Some(Ok(item)));
        }
        let Some(stream) = this.stream.as_mut().filter(|_| !this.ended) else {
            return Poll::Ready(None);
        };
        let next = ready!(Pin::new(stream).try_poll_next(cx));
        this.ended = next.is_none();
        Poll::Ready(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let waiting = self.waiting();
        let rest = self.stream.as_ref().filter(|_| !self.ended);
        let (least, most) = rest.map_or((0, Some(0)), Stream::size_hint);
        let least = least.saturating_add(waiting);
        let most = most.and_then(|most| most.checked_add(waiting));
        if self.until.is_some() && !self.is_over() {
            // All there may be is the error that ends it.
            (least.min(1), most.map(|most| most.max(1)))
        } else {
            (least, most)
        }
    }
}

impl<S: TryStream + Unpin> FusedStream for HedgedStream<S> {
    fn is_terminated(&self) -> bool {
        self.is_over()
    }
}

impl<S: TryStream> fmt::Debug for HedgedStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgedStream")
            .field("kept", &self.waiting())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
