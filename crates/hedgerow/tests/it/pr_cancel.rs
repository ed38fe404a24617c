//! PR-10 and PR-11: losers are dropped when a winner is chosen, and everything is when the call is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hedgerow::{Attempt, AttemptCounter, Hedge};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};

use crate::support::{Answer, Events, Notes, both, ms};

#[tokio::test(start_paused = true)]
async fn pr_10_a_loser_does_nothing_after_the_result() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, beats) = (Notes::new(), Arc::new(AtomicUsize::new(0)));
        let work = |attempt: Attempt| {
            let (number, beats) = (attempt.hedge_number(), Arc::clone(&beats));
            notes.clone().attempt(number, async move {
                if number == 1 {
                    sleep(ms(20)).await;
                    return Answer::Ok("b");
                }
                let mut every = interval(ms(10));
                loop {
                    every.tick().await;
                    beats.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        assert_eq!(hedge.call(work).await, Ok("b"));
        assert_eq!(notes.at(), 70);
        assert_eq!(notes.count("A0 dropped @70"), 1);
        let beaten = beats.load(Ordering::Relaxed);
        assert!((7..=8).contains(&beaten), "0, 10, ... 60 and maybe 70");
        sleep(ms(10_000)).await;
        assert_eq!(beats.load(Ordering::Relaxed), beaten);
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0);
    }
}

/// A retry of three with a back-off of 100 ms around a hedged call, inside a bulkhead of one.
async fn outer(slot: &Semaphore, hedge: &Hedge, notes: &Notes, attempt_lasts: Option<u64>) {
    let _held = slot.acquire().await.unwrap();
    let counter = AttemptCounter::new();
    for _ in 0..3 {
        let work = |attempt: Attempt| {
            let number = u8::try_from(attempt.number()).unwrap();
            notes.clone().attempt(number, async move {
                match attempt_lasts {
                    Some(lasts) => sleep(ms(lasts)).await,
                    None => std::future::pending().await,
                }
                Answer::Err("down")
            })
        };
        let failed = hedge.call(work).counter(&counter).await;
        assert_eq!(failed, Err("down"));
        notes.note("backs off");
        sleep(ms(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pr_11_a_dropped_call_stops_everything_inside_it() {
    let (notes, events, slot) = (Notes::new(), Events::default(), Semaphore::new(1));
    let hedge = Hedge::after(ms(50)).max_hedges(2).observer(events.observer());
    let dropped = timeout(ms(80), outer(&slot, &hedge, &notes, None)).await;
    assert!(dropped.is_err());
    assert_eq!(slot.available_permits(), 1);
    let expected = ["A0 starts @0", "A1 starts @50", "A0 dropped @80", "A1 dropped @80"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("over"), 1);
    assert_eq!(events.count("over(cancelled)@80"), 1);
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("over"), 1);
}

#[tokio::test(start_paused = true)]
async fn pr_11_dropped_between_two_tries() {
    let (notes, events, slot) = (Notes::new(), Events::default(), Semaphore::new(1));
    let hedge = Hedge::after(ms(50)).max_hedges(1).observer(events.observer());
    let dropped = timeout(ms(80), outer(&slot, &hedge, &notes, Some(20))).await;
    assert!(dropped.is_err());
    assert_eq!(slot.available_permits(), 1);
    let expected = ["A0 starts @0", "A0 ends @20", "A1 starts @20", "A1 ends @40", "backs off @40"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("over(exhausted)@40"), 1);
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("over"), 1);
}
