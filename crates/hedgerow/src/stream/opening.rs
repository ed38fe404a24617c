//! The future of an attempt that opens a stream.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::TryStream;
use pin_project_lite::pin_project;
use tokio_util::sync::CancellationToken;

use super::AnyItem;
use super::hedged::{HedgedStream, Until};

/// How many items that say nothing an attempt keeps, unless it is told.
const KEPT: usize = 64;

/// How many items an attempt reads before it lets the rest of the call run: its timer, the others.
const READ_IN_ONE_TURN: usize = 32;

pin_project! {
    /// An attempt that opens a stream and reads it until an item commits; resolves to the
    /// [`HedgedStream`] it then is.
    ///
    /// [`Hedge::stream`](crate::Hedge::stream) makes one of each attempt. Make one by hand where a
    /// [`next_action`](crate::HedgedCall::next_action) opens another stream instead.
    #[must_use = "futures do nothing unless polled"]
    pub struct Opening<Fut, S, C = fn(&<S as TryStream>::Ok) -> bool>
    where
        S: TryStream,
    {
        #[pin]
        stage: Stage<Fut, S>,
        decides: C,
        most: usize,
        kept: VecDeque<S::Ok>,
        until: Option<(CancellationToken, fn() -> S::Error)>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwned]
    enum Stage<Fut, S> {
        Connecting { #[pin] work: Fut },
        Reading { stream: S },
        Over,
    }
}

impl<Fut, S: TryStream> Opening<Fut, S, AnyItem<S>> {
    /// Opens the stream that `work` resolves to; the first item commits.
    pub fn new(work: Fut) -> Self {
        let stage = Stage::Connecting { work };
        Self { stage, decides: |_| true, most: KEPT, kept: VecDeque::new(), until: None }
    }
}

impl<Fut, S: TryStream, C> Opening<Fut, S, C> {
    /// Which items commit; as [`HedgedCall::commit_when`](crate::HedgedCall::commit_when).
    pub fn commit_when<D>(self, decides: D) -> Opening<Fut, S, D>
    where
        D: FnMut(&S::Ok) -> bool,
    {
        let Self { stage, decides: _, most, kept, until } = self;
        Opening { stage, decides, most, kept, until }
    }

    /// How many items that say nothing are kept; as
    /// [`HedgedCall::commit_within`](crate::HedgedCall::commit_within).
    pub fn commit_within(mut self, items: usize) -> Self {
        self.most = items;
        self
    }

    /// Ends the committed stream with this error when `token` fires. The opening does not look at
    /// the token: the call does.
    pub fn cancel_on_or(mut self, token: &CancellationToken, error: fn() -> S::Error) -> Self {
        self.until = Some((token.clone(), error));
        self
    }

    /// The stream is as it will be for its consumer: this item decided, or it ended without one.
    fn commit(self: Pin<&mut Self>, committed: Option<S::Ok>) -> HedgedStream<S> {
        let this = self.project();
        let StageOwned::Reading { stream } = this.stage.project_replace(Stage::Over) else {
            unreachable!("it was read just now");
        };
        let until = this.until.take().map(|(token, error)| Until::new(token, error));
        HedgedStream::new(std::mem::take(this.kept), committed, stream, until)
    }
}

impl<Fut, S, C> Future for Opening<Fut, S, C>
where
    Fut: Future<Output = Result<S, S::Error>>,
    S: TryStream + Unpin,
    C: FnMut(&S::Ok) -> bool,
{
    type Output = Result<HedgedStream<S>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        if let StageProj::Connecting { work } = this.stage.as_mut().project() {
            let stream = ready!(work.poll(cx))?;
            this.stage.set(Stage::Reading { stream });
        }
        for _ in 0..READ_IN_ONE_TURN {
            let this = self.as_mut().project();
            let StageProj::Reading { stream } = this.stage.project() else {
                panic!("`Opening` polled after completion");
            };
            match ready!(Pin::new(stream).try_poll_next(cx)?) {
                Some(item) if this.kept.len() < *this.most && !(this.decides)(&item) => {
                    this.kept.push_back(item);
                }
                last => return Poll::Ready(Ok(self.commit(last))),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<Fut, S: TryStream, C> fmt::Debug for Opening<Fut, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Connecting { .. } => "connecting",
            Stage::Reading { .. } => "reading",
            Stage::Over => "over",
        };
        f.debug_struct("Opening")
            .field("stage", &stage)
            .field("kept", &self.kept.len())
            .finish_non_exhaustive()
    }
}
