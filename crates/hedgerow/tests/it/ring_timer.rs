//! The ring timer inside tokio's runtimes: real time, which no runtime has to drive, and virtual
//! time where tokio's is. Nothing here depends on how long real time takes, but that no hedge is
//! early.

use std::cell::RefCell;
use std::future::{Future, IntoFuture, pending};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hedgerow::{Attempt, Delay, Hedge, Losers};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::support::{Answer, Events, Notes, both, err, ms, never, ok, poll_once, work};

fn on_ring(delay: u64) -> Hedge {
    Hedge::after(ms(delay)).ring_timer()
}

/// The primary never answers, hedges do.
async fn hedges_answer(attempt: Attempt) -> Answer {
    if attempt.hedge_number() == 0 { pending().await } else { Ok("hedge") }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives one future on this thread, without a runtime. Fails rather than waits for ever.
fn drive<F: Future>(future: F) -> F::Output {
    let patience = Instant::now() + Duration::from_secs(60);
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(Instant::now() < patience, "nobody woke it");
        std::thread::park_timeout(Duration::from_secs(61));
    }
}

#[test]
fn hedges_start_on_every_kind_of_runtime() {
    let several = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for runtime in [current_thread(), several] {
        let start = Instant::now();
        let call = async { on_ring(2).call(hedges_answer).await };
        assert_eq!(runtime.block_on(call), Ok("hedge"));
        let task = runtime.spawn(async { on_ring(2).call(hedges_answer).spawned().await });
        assert_eq!(runtime.block_on(task).unwrap(), Ok("hedge"));
        assert!(start.elapsed() >= ms(4), "never early");
    }
}

#[test]
fn a_runtime_needs_no_timer_of_its_own() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let call = async { on_ring(2).max_hedges(2).call(hedges_answer).settle().await };
    assert_eq!(runtime.block_on(call).winner(), Some(1));
}

#[test]
fn a_local_set_runs_calls_that_cannot_cross_threads() {
    let (tasks, order) = (LocalSet::new(), Rc::new(RefCell::new(vec![])));
    let hedge = on_ring(2);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let (order, hedge) = (Rc::clone(&order), hedge.clone());
            tasks.spawn_local(async move {
                let work = async |attempt: Attempt| {
                    order.borrow_mut().push(attempt.hedge_number());
                    hedges_answer(attempt).await.map(Rc::new)
                };
                hedge.call(work).await.map(|answer| *answer)
            })
        })
        .collect();
    tasks.block_on(&current_thread(), async {
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok("hedge"));
        }
    });
    assert_eq!(order.borrow()[..3], [0, 0, 0]);
    assert_eq!(order.borrow().len(), 6);
}

#[test]
fn a_call_is_woken_though_its_runtime_is_not_driven_or_has_ended() {
    for ends in [false, true] {
        let mut runtime = Some(current_thread());
        let hedge = on_ring(5);
        let mut call = Box::pin(hedge.call(hedges_answer).into_future());
        let entered = runtime.as_ref().unwrap().enter();
        assert!(poll_once(call.as_mut()).is_pending());
        drop(entered);
        if ends {
            runtime = None;
        }
        assert_eq!(drive(call), Ok("hedge"));
        drop(runtime);
    }
}

#[test]
fn one_policy_serves_runtimes_that_come_and_go() {
    let hedge = on_ring(1);
    for _ in 0..3 {
        let runtime = current_thread();
        assert_eq!(runtime.block_on(async { hedge.call(hedges_answer).await }), Ok("hedge"));
    }
    assert_eq!(drive(hedge.call(hedges_answer).into_future()), Ok("hedge"));
}

#[test]
fn a_call_that_moves_to_another_thread_is_woken_there() {
    let mut call = Box::pin(on_ring_owned().into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    let (sender, answers) = channel();
    std::thread::spawn(move || sender.send(drive(call)));
    assert_eq!(answers.recv_timeout(Duration::from_secs(60)).unwrap(), Ok("hedge"));
}

fn on_ring_owned() -> impl IntoFuture<IntoFuture: Send, Output = Answer> {
    hedgerow::hedged(hedges_answer).policy(|_| on_ring(5))
}

#[test]
fn a_policy_takes_the_timer_that_was_said_last() {
    let clock = hedgerow::ManualClock::new();
    let manual = on_ring(5).clock(Arc::new(clock.clone()));
    let mut call = Box::pin(manual.call(hedges_answer).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!(clock.sleepers(), 1);
    drop(call);

    let ring = manual.ring_timer();
    let mut call = Box::pin(ring.call(hedges_answer).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!(clock.sleepers(), 0);
    assert_eq!(drive(call), Ok("hedge"));
}

/// Whatever a policy does in tokio's paused time, it does the same with the ring.
#[tokio::test(start_paused = true)]
async fn in_virtual_time_a_ring_policy_waits_by_tokios_clock() {
    let joins = Losers::Join { grace: Some(ms(15)) };
    let list = vec![Delay::After(ms(30)), Delay::Immediately, Delay::After(ms(20))];
    let policies = [
        Hedge::after(ms(50)).max_hedges(2),
        Hedge::default().delay(list).max_hedges(3),
        Hedge::structured(ms(20), 3).losers(joins),
        Hedge::default().delay(Delay::OnFailure).max_hedges(2),
    ];
    let scripts = [
        [never(), never(), ok(20, "c"), ok(5, "d")],
        [err(10, "p"), ok(300, "b"), ok(20, "c"), never()],
        [ok(200, "a"), err(1, "q"), err(5, "r"), err(7, "s")],
    ];
    for hedge in policies.into_iter().flat_map(both) {
        for script in scripts {
            let mut seen = vec![];
            for hedge in [hedge.clone(), hedge.clone().ring_timer()] {
                let notes = Notes::new();
                // Some calls never end.
                let answer = timeout(ms(1_000), hedge.call(work(&notes, script))).await;
                let answer = answer.ok();
                seen.push((answer, notes.lines(), notes.at()));
            }
            assert_eq!(seen[0], seen[1], "{hedge:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observed_ring_call_tells_virtual_times() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = on_ring(50).observer(events.observer());
    assert_eq!(hedge.call(work(&notes, [never(), ok(20, "b")])).await, Ok("b"));
    assert_eq!(events.count("hedge(1,delay)@50"), 1, "{:?}", events.text());
    assert_eq!(events.count("over(accepted)@70"), 1, "{:?}", events.text());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_moved_and_goes_on_is_found_too() {
    let hour = Duration::from_secs(3_600);
    tokio::time::advance(hour).await;
    tokio::time::resume();
    let hedge = Hedge::after(hour).ring_timer();
    let mut call = Box::pin(hedge.call(hedges_answer).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    tokio::time::pause();
    tokio::time::advance(hour + ms(2)).await;
    assert_eq!(poll_once(call.as_mut()), Poll::Ready(Ok("hedge")));
}
