//! Calls on executors that are not tokio's. These tests also run where Hedgerow is built without
//! tokio's timer: `cargo test -p hedgerow --no-default-features --test ring`.
//!
//! The ring waits in real time, so these wait, too, for a few milliseconds. None depends on how
//! long it takes, but that nothing is early.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::future::{IntoFuture, pending};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::{LocalPool, block_on};
use futures_util::task::LocalSpawnExt;
use hedgerow::{Attempt, Hedge, Losers, Spawner, Task, hedged};

type Answer = Result<u8, &'static str>;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Fails, rather than waits for ever, when nobody wakes a call.
fn patiently<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, end) = channel();
    let thread = thread::spawn(move || sender.send(test()));
    match end.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("a call was never woken"),
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
    }
}

/// The primary never answers; hedges answer with their number.
async fn hedges_answer(attempt: Attempt) -> Answer {
    match attempt.hedge_number() {
        0 => pending().await,
        number => Ok(number),
    }
}

/// The same policy with the default timer, and with the ring where that is another.
fn both(hedge: Hedge) -> [Hedge; 2] {
    [hedge.clone(), hedge.ring_timer()]
}

#[test]
fn a_call_needs_no_runtime() {
    for hedge in both(Hedge::after(ms(2))) {
        let start = Instant::now();
        let answer = patiently(move || block_on(hedge.call(hedges_answer).into_future()));
        assert_eq!(answer, Ok(1));
        assert!(start.elapsed() >= ms(2), "never early");
    }
}

#[test]
fn a_call_with_a_policy_of_its_own_needs_no_runtime() {
    let call = || hedged(hedges_answer).after(ms(2)).into_future();
    assert_eq!(patiently(move || block_on(call())), Ok(1));
}

#[test]
fn later_hedges_and_graces_are_waited_for_by_the_ring_too() {
    for hedge in both(Hedge::after(ms(2)).max_hedges(3)) {
        let hedge = hedge.losers(Losers::Join { grace: Some(ms(3)) });
        let start = Instant::now();
        let report = patiently(move || {
            let third = async |attempt: Attempt| match attempt.hedge_number() {
                3 => Answer::Ok(3),
                _ => pending().await,
            };
            block_on(hedge.call(third).settle().into_future())
        });
        assert_eq!(report.winner(), Some(3));
        assert!(start.elapsed() >= ms(9), "three delays and a grace: never early");
    }
}

#[test]
fn work_that_cannot_cross_threads_runs_on_one_thread() {
    for hedge in both(Hedge::after(ms(2))) {
        let order = patiently(move || {
            let (order, mut pool) = (Rc::new(RefCell::new(vec![])), LocalPool::new());
            for _ in 0..3 {
                let (order, hedge) = (Rc::clone(&order), hedge.clone());
                let task = async move {
                    let work = async |attempt: Attempt| {
                        order.borrow_mut().push(attempt.hedge_number());
                        hedges_answer(attempt).await.map(Rc::new)
                    };
                    assert_eq!(hedge.call(work).await.as_deref(), Ok(&1));
                };
                pool.spawner().spawn_local(task).unwrap();
            }
            pool.run();
            order.take()
        });
        assert_eq!(order.len(), 6);
        assert_eq!(order[..3], [0, 0, 0]);
    }
}

/// Gives each task a thread.
#[derive(Debug)]
struct OnThreads;

impl Spawner for OnThreads {
    fn spawn(&self, task: Task) {
        thread::spawn(|| block_on(task));
    }
}

#[test]
fn attempts_can_be_tasks_of_any_executor() {
    for hedge in both(Hedge::after(ms(2))) {
        let answer = patiently(move || {
            let call = hedge.call(hedges_answer).spawned_on(Arc::new(OnThreads));
            block_on(call.into_future())
        });
        assert_eq!(answer, Ok(1));
    }
}

#[test]
fn delays_in_any_order_each_end_in_time() {
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            move || {
                for call in 0..12u64 {
                    let delay = ms(1 + (call * 7 + thread * 5) % 12);
                    let hedge = Hedge::after(delay).ring_timer();
                    let start = Instant::now();
                    let answer = block_on(hedge.call(hedges_answer).into_future());
                    assert_eq!(answer, Ok(1));
                    assert!(start.elapsed() >= delay, "never early");
                }
            }
        })
        .map(|calls| thread::spawn(move || patiently(calls)))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
