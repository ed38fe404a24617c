//! The calls that are counted.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use counts::allocator::{Counted, Counting};
use counts::operation::{HedgeWins, Operation, Outcome, PendingOnce, Ready};
use hedgerow::Hedge;

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
    /// The same by the ring.
    HedgedOnRing,
}

impl Kind {
    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let [bare, ready] = [Self::Bare, Self::Ready];
        let [pending, hedged] = [Self::Pending, Self::Hedged];
        [bare, ready, pending, Self::PendingOnRing, hedged, Self::HedgedOnRing]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ready => "ready",
            Self::Pending => "pending",
            Self::PendingOnRing => "pending-ring",
            Self::Hedged => "hedged",
            Self::HedgedOnRing => "hedged-ring",
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
            Self::HedgedOnRing => "one hedge starts and wins, ring",
        }
    }

    /// Makes calls one after the other, in a task that takes turns, and counts what the last
    /// `calls` of them allocate.
    pub async fn count(self, calls: u64) -> Counted {
        let [far, near] = [FAR, NEAR].map(|delay| Hedge::after(delay).max_hedges(1));
        match self {
            Self::Bare => count(calls, |request| Ready.start(request)).await,
            Self::Ready => count_hedged(calls, &far, Ready).await,
            Self::Pending => count_hedged(calls, &far, PendingOnce).await,
            Self::PendingOnRing => count_hedged(calls, &far.ring_timer(), PendingOnce).await,
            Self::Hedged => count_hedged(calls, &near, hedge_wins(calls)).await,
            Self::HedgedOnRing => count_hedged(calls, &near.ring_timer(), hedge_wins(calls)).await,
        }
    }
}

fn hedge_wins(calls: u64) -> HedgeWins {
    HedgeWins::new(usize::try_from(WARM_UP + calls).expect("memory has room for them"))
}

async fn count_hedged<O: Operation>(calls: u64, hedge: &Hedge, operation: O) -> Counted {
    let operation = &operation;
    let call = |request| hedge.call(move |_| operation.start(request));
    count(calls, |request| call(request).into_future()).await
}

/// Warms up, so that the runtime and the library have what they keep, then counts.
async fn count<A: Future<Output = Outcome>>(calls: u64, call: impl Fn(u64) -> A) -> Counted {
    repeat(0..WARM_UP, &call).await;
    let counting = Counting::start();
    repeat(WARM_UP..WARM_UP + calls, &call).await;
    counting.so_far()
}

async fn repeat<A: Future<Output = Outcome>>(requests: Range<u64>, call: impl Fn(u64) -> A) {
    for request in requests {
        // No operation fails.
        drop(black_box(call(request).await));
    }
}
