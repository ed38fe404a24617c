//! PR-34: random calls on many threads, each of whose attempts ends exactly once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use hedgerow::telemetry::Metrics;
use hedgerow::{Attempt, Discarded, End, Hedge, Losers};
use tokio::task::yield_now;

use crate::ledger::{Draw, Gauge, Ledger, Tally, drained};
use crate::support::{lock, ms};
use crate::telemetry::Recorded;

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Succeed,
    Fail,
    Panic,
    Never,
}

/// One attempt: gives way so many times, then does it.
async fn scripted(gauge: Gauge, yields: u64, does: Does) -> Result<u8, u16> {
    let _gauge = gauge;
    for _ in 0..yields {
        yield_now().await;
    }
    match does {
        Does::Succeed => Ok(1),
        Does::Fail => Err(503),
        // Without a message on the terminal.
        Does::Panic => std::panic::resume_unwind(Box::new("boom")),
        Does::Never => std::future::pending().await,
    }
}

fn policy(draw: &mut Draw) -> Hedge {
    draw.policy(&[Losers::Drop, Losers::Join { grace: Some(ms(0)) }, Losers::Detach])
}

/// Polls a call so many times and drops it, if it has not ended by then. Says whether it ended.
async fn patience(call: impl Future, mut polls: u64) -> bool {
    let mut call = pin!(call);
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(false);
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        call.as_mut().poll(cx).map(|_| true)
    })
    .await
}

/// One random call: how it is made, and what its attempts do.
async fn random_call(seed: u64, ledger: Arc<Ledger>, metrics: Arc<Metrics>, alive: Arc<AtomicI64>) {
    let mut draw = Draw(seed);
    draw.below(2); // seeds that are close together draw alike at first
    draw.below(2);
    let hedge = policy(&mut draw).observer(ledger).observer(metrics);
    let detach = hedge.policy().losers == Losers::Detach;
    let does = [Does::Succeed, Does::Fail, Does::Fail, Does::Panic, Does::Never];
    let does = if detach { &does[..4] } else { &does };
    let script: Vec<_> = (0..4).map(|_| (draw.below(6), draw.pick(does))).collect();
    let polls = draw.below(24);
    let spawned = detach || draw.below(2) == 0;
    // The rules live as long as anything of the call does.
    let held = Gauge::up(&alive);
    let work = move |attempt: Attempt| {
        let (yields, does) = script[usize::from(attempt.hedge_number())];
        scripted(Gauge::up(&alive), yields, does)
    };
    let call = hedge
        .call(work)
        .on_discard(move |_: Discarded<u8, u16>| assert!(held.0.load(Ordering::SeqCst) > 0));
    if spawned {
        patience(call.spawned().into_future(), polls).await;
    } else {
        patience(call.into_future(), polls).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_34_every_started_attempt_ends_exactly_once() {
    const CALLS: u64 = 10_000;
    let (ledger, alive) = (Arc::<Ledger>::default(), Arc::<AtomicI64>::default());
    let recorded = Recorded::default();
    let metrics = recorded.metrics("random", &Hedge::default());
    let calls: Vec<_> = (0..CALLS)
        .map(|seed| {
            let (ledger, metrics) = (Arc::clone(&ledger), Arc::clone(&metrics));
            tokio::spawn(random_call(seed, ledger, metrics, Arc::clone(&alive)))
        })
        .collect();
    let mut panics = 0;
    for call in calls {
        panics += usize::from(call.await.is_err());
    }
    drained(&alive).await;
    let tallies = lock(&ledger.0);
    assert_eq!(tallies.len() as u64, CALLS, "each call was told of");
    tallies.values().for_each(Tally::check);
    let told = tallies.values().filter(|tally| tally.panicked()).count();
    assert_eq!(panics, told, "the panics that reached a caller");
    for how in [End::Won, End::Failed, End::Panicked, End::Cancelled, End::Discarded] {
        let occurs = tallies.values().map(|tally| tally.ended(how)).sum::<usize>();
        assert!(occurs > 100, "{how:?} occurs {occurs} times");
        let counted = recorded.sum("hedgerow.attempts", &[("outcome", how.name())]);
        assert_eq!(counted, occurs as u64, "{how:?}");
    }
    assert_eq!(recorded.sum("hedgerow.calls", &[]), CALLS);
    assert_eq!(recorded.gauge("hedgerow.attempts.running"), Some(0.0));
}
