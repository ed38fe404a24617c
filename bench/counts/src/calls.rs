//! The calls that are counted.

use std::future::{poll_fn, ready};
use std::hint::black_box;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use counts::allocator::{Counted, Counting};
use counts::operation::{HedgeWins, Operation, Outcome, PendingOnce, Ready};
use futures_core::Stream;
use hedgerow::Hedge;
use hedgerow::pipeline::{Builder, CircuitBreaker, Pipeline, Retry};

/// Never over within a call.
const FAR: Duration = Duration::from_secs(5);
/// Soon over, so that every call hedges.
const NEAR: Duration = Duration::from_millis(1);

/// Calls made before counting starts.
const WARM_UP: u64 = 50;

/// A kind of call that the command line can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Answers at the first poll, without Hedgerow.
    Bare,
    /// Answers at the first poll.
    Ready,
    /// Pending once: the hedge's timer is armed and disarmed.
    Pending,
    /// The same by the ring.
    PendingOnRing,
    /// The primary hangs; one hedge starts and wins.
    Hedged,
    /// A stream whose first item is pending once.
    Stream,
    /// A stream: the primary hangs, the hedge has an item.
    HedgedStream,
    /// The same by the ring.
    HedgedOnRing,
    /// Answers at the first poll, in a pipeline of timeout, retry, breaker and hedge.
    PipelineReady,
    /// The same by the ring.
    PipelineReadyOnRing,
    /// Pending once, in the same pipeline.
    PipelinePending,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Bare,
        Self::Ready,
        Self::Pending,
        Self::PendingOnRing,
        Self::Hedged,
        Self::Stream,
        Self::HedgedStream,
        Self::HedgedOnRing,
        Self::PipelineReady,
        Self::PipelineReadyOnRing,
        Self::PipelinePending,
    ];

    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ready => "ready",
            Self::Pending => "pending",
            Self::PendingOnRing => "pending-ring",
            Self::Hedged => "hedged",
            Self::Stream => "stream",
            Self::HedgedStream => "hedged-stream",
            Self::HedgedOnRing => "hedged-ring",
            Self::PipelineReady => "pipeline-ready",
            Self::PipelineReadyOnRing => "pipeline-ready-ring",
            Self::PipelinePending => "pipeline-pending",
        }
    }

    /// What it is, for a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Bare => "bare call, ready",
            Self::Ready => "ready at the first poll",
            Self::Pending => "pending once",
            Self::PendingOnRing => "pending once, ring",
            Self::Hedged => "one hedge starts and wins",
            Self::Stream => "stream, pending once",
            Self::HedgedStream => "stream, one hedge starts and wins",
            Self::HedgedOnRing => "one hedge starts and wins, ring",
            Self::PipelineReady => "pipeline, ready at the first poll",
            Self::PipelineReadyOnRing => "pipeline, ready at the first poll, ring",
            Self::PipelinePending => "pipeline, pending once",
        }
    }

    /// Makes calls one after the other, in a task that takes turns, and counts what the last
    /// `calls` of them allocate.
    pub async fn count(self, calls: u64) -> Counted {
        let [far, near] = [FAR, NEAR].map(|delay| Hedge::after(delay).max_hedges(1));
        let builder = Pipeline::builder;
        match self {
            Self::Bare => count(calls, |request| Ready.start(request)).await,
            Self::Ready => count_hedged(calls, &far, Ready).await,
            Self::Pending => count_hedged(calls, &far, PendingOnce).await,
            Self::PendingOnRing => count_hedged(calls, &far.ring_timer(), PendingOnce).await,
            Self::Hedged => count_hedged(calls, &near, hedge_wins(calls)).await,
            Self::HedgedOnRing => count_hedged(calls, &near.ring_timer(), hedge_wins(calls)).await,
            Self::Stream => count_streams(calls, &far, PendingOnce).await,
            Self::HedgedStream => count_streams(calls, &near, hedge_wins(calls)).await,
            Self::PipelineReady => count_executed(calls, builder(), far, Ready).await,
            Self::PipelineReadyOnRing => {
                count_executed(calls, builder().ring_timer(), far, Ready).await
            }
            Self::PipelinePending => count_executed(calls, builder(), far, PendingOnce).await,
        }
    }
}

/// An operation whose first attempts hang, for so many calls and those that warm up.
fn hedge_wins(calls: u64) -> HedgeWins {
    HedgeWins::new(usize::try_from(WARM_UP + calls).expect("memory has room for them"))
}

async fn count_hedged<O: Operation>(calls: u64, hedge: &Hedge, operation: O) -> Counted {
    let operation = &operation;
    let call = |request| hedge.call(move |_| operation.start(request));
    count(calls, |request| call(request).into_future()).await
}

/// A timeout around two retries, around a circuit breaker, around the hedge.
async fn count_executed<O: Operation>(
    calls: u64,
    builder: Builder<()>,
    hedge: Hedge,
    operation: O,
) -> Counted {
    let pipeline = builder
        .timeout(FAR)
        .retry(Retry::constant().max_retries(2))
        .circuit_breaker(CircuitBreaker::default())
        .hedge(hedge)
        .build()
        .expect("valid settings");
    let operation = &operation;
    let execute = |request| pipeline.execute(move |_| operation.start(request)).into_future();
    count(calls, execute).await
}

/// Opens a stream whose only item is the outcome of the operation, and reads it.
async fn count_streams<O>(calls: u64, hedge: &Hedge, operation: O) -> Counted
where
    O: Operation<Attempt: Unpin>,
{
    let operation = &operation;
    let call = async |request| {
        let open = |_| ready(Ok(OneItem(Some(operation.start(request)))));
        let mut stream = hedge.stream(open).await?;
        let next = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await;
        next.expect("it has an item")
    };
    count(calls, call).await
}

/// A stream of one outcome.
struct OneItem<A>(Option<A>);

impl<A: Future<Output = Outcome> + Unpin> Stream for OneItem<A> {
    type Item = Outcome;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let Some(attempt) = &mut self.0 else { return Poll::Ready(None) };
        let outcome = ready!(Pin::new(attempt).poll(cx));
        self.0 = None;
        Poll::Ready(Some(outcome))
    }
}

/// Warms up, so that the runtime and the library have what they keep, then counts.
async fn count<A: Future>(calls: u64, call: impl Fn(u64) -> A) -> Counted {
    repeat(0..WARM_UP, &call).await;
    let counting = Counting::start();
    repeat(WARM_UP..WARM_UP + calls, &call).await;
    counting.so_far()
}

async fn repeat<A: Future>(requests: Range<u64>, call: impl Fn(u64) -> A) {
    for request in requests {
        // No operation fails.
        drop(black_box(call(request).await));
    }
}
