//! The concurrency limiter: what goes wrong elsewhere.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use hedgerow::pipeline::{ConcurrencyLimiter, Pipeline};
use hedgerow::{Attempt, Hedge, ManualClock, RejectedHedge};
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep, timeout};

use crate::p_concurrency::{Limited, limited, run};
use crate::p_told::{Gauge, Polled, exhaust_budget, refusal};
use crate::support::{Answer, act, caught, ms, never, ok, panics, poll_once, work};

#[tokio::test(start_paused = true)]
async fn pr_17_a_waiter_that_gave_up_does_not_take_a_slot_with_it() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(12).max_wait(ms(50));
    let (pipeline, control) = (limited(&limiter), limiter.control());
    for round in 0..100 {
        let start = Instant::now();
        let dropped = async |after| {
            sleep(ms(10)).await;
            timeout(ms(after), run(&pipeline, ok(0, "never"))).await.unwrap_err();
        };
        let queue = join_all((0..8).map(|_| times_out(&pipeline, start)));
        let by_hand = join_all((0..4).map(|nth| dropped(10 * nth)));
        let (held, queue, _) = tokio::join!(run(&pipeline, ok(200, "held")), queue, by_hand);
        assert_eq!(held, Ok("held"));
        assert_eq!(queue, [("waited too long", ms(60)); 8]);
        assert_eq!((control.in_flight(), control.queued()), (0, 0), "round {round}");
        let mut next = pin!(run(&pipeline, ok(0, "next")));
        assert_eq!(poll_once(next.as_mut()), Poll::Ready(Ok("next")), "round {round}");
    }
}

/// Queues ten milliseconds after the start: why it was refused, and when.
async fn times_out(pipeline: &Limited, start: Instant) -> (&'static str, Duration) {
    sleep(ms(10)).await;
    let refused = run(pipeline, ok(0, "never")).await;
    (refusal(&refused), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn pr_43_no_refusal_while_slots_are_free() {
    for queue in [0, 1] {
        let limiter = ConcurrencyLimiter::new(10_000).max_queue(queue);
        let pipeline = limited(&limiter);
        let rounds = async move {
            exhaust_budget();
            for round in 0..5_000 {
                let call = pipeline.execute(|_| async { Answer::Ok("a") });
                let polled = poll_once(pin!(call.into_future()));
                assert_eq!(polled, Poll::Ready(Ok("a")), "round {round}");
            }
        };
        tokio::spawn(rounds).await.unwrap();
    }
}

#[test]
fn pr_43_on_a_runtime_of_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let pipeline = limited(&ConcurrencyLimiter::new(10_000));
    let rounds = async move {
        let mut refused = 0;
        for _ in 0..5_000 {
            let outcome = pipeline.execute(|_| async { Answer::Ok("a") }).await;
            refused += u32::from(outcome.is_err());
        }
        refused
    };
    let refused = runtime.block_on(async { tokio::spawn(rounds).await });
    assert_eq!(refused.unwrap(), 0);
}

/// A task that has used up its budget cannot see that it was handed a slot: at the end of its wait
/// it looks once more.
#[tokio::test]
async fn pr_43_a_task_without_budget_is_not_refused_a_free_slot() {
    let clock = ManualClock::new();
    let limiter = ConcurrencyLimiter::new(1).max_queue(1).max_wait(ms(50));
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.concurrency_limiter(limiter).build().unwrap();
    let rounds = async move {
        let mut holder = Box::pin(run(&pipeline, never()));
        let mut waiter = Box::pin(run(&pipeline, ok(0, "a")));
        assert!(poll_once(holder.as_mut()).is_pending());
        assert!(poll_once(waiter.as_mut()).is_pending());
        drop(holder);
        clock.advance(ms(50));
        exhaust_budget();
        assert_eq!(poll_once(waiter.as_mut()), Poll::Ready(Ok("a")));
    };
    tokio::spawn(rounds).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn h24_what_a_rejected_hedge_does_is_the_policys_choice() {
    for (rejected, expected, at) in [
        (RejectedHedge::Decide, Err("all slots taken"), 50),
        (RejectedHedge::Stop, Ok("a"), 300),
        (RejectedHedge::Hedge, Ok("a"), 300),
    ] {
        let limiter = ConcurrencyLimiter::new(1);
        let (control, start) = (limiter.control(), Instant::now());
        let hedge = Hedge::after(ms(50)).rejected_hedge(rejected);
        let pipeline =
            Pipeline::builder().hedge(hedge).concurrency_limiter(limiter).build().unwrap();
        let outcome = pipeline.execute(|_| act(ok(300, "a"))).await;
        let outcome = outcome.map_err(|error| error.rejected().map_or("", |it| it.reason()));
        assert_eq!((outcome, start.elapsed()), (expected, ms(at)), "{rejected:?}");
        assert_eq!(control.in_flight(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_61_no_slot_is_held_for_a_hedge_that_may_never_start() {
    let limiter = ConcurrencyLimiter::new(10);
    let (control, gauge, start) = (limiter.control(), Gauge::default(), Instant::now());
    let hedge = Hedge::after(ms(1_000));
    let pipeline = Pipeline::builder().hedge(hedge).concurrency_limiter(limiter).build().unwrap();
    let call = || async {
        let outcome = pipeline.execute(|_| async {
            let _inside = gauge.enter();
            act(ok(50, "a")).await
        });
        (outcome.await, start.elapsed())
    };
    let mut ten = pin!(join_all((0..10).map(|_| call())));
    assert!(poll_once(ten.as_mut()).is_pending());
    assert_eq!((gauge.now(), control.in_flight()), (10, 10), "all in flight at once");
    assert_eq!(ten.await, vec![(Ok("a"), ms(50)); 10]);
    assert_eq!((gauge.now(), control.in_flight()), (0, 0));
    for nth in 1..=1_000 {
        assert_eq!(call().await, (Ok("a"), ms(50 + 50 * nth)));
        assert_eq!(control.in_flight(), 0);
    }
    assert_eq!(gauge.peak(), 10);
}

#[tokio::test(start_paused = true)]
async fn pr_71_a_panic_gives_the_slot_back() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(1);
    let (pipeline, control) = (limited(&limiter), limiter.control());
    let in_factory = |_: Attempt| -> std::future::Ready<Answer> { panic!("factory") };
    for _ in 0..100 {
        assert_eq!(caught(pipeline.execute(in_factory)).await, Err("factory".to_owned()));
        assert_eq!(control.in_flight(), 0);
        for after in [0, 10] {
            let panic = caught(run(&pipeline, panics(after, "work"))).await;
            assert_eq!(panic, Err("work".to_owned()));
            assert_eq!(control.in_flight(), 0);
        }
        // The factory of one that waited.
        let queued = caught(pipeline.execute(in_factory));
        let (held, queued) = tokio::join!(run(&pipeline, ok(5, "a")), queued);
        assert_eq!((held, queued.is_err()), (Ok("a"), true));
        // A drop that panics, of a loser and of a winner.
        let bomb = pipeline.execute(|_| {
            let bomb = Bomb;
            async move {
                let _bomb = bomb;
                act(ok(5, "a")).await
            }
        });
        assert_eq!(caught(bomb).await, Err("drop".to_owned()));
        assert_eq!((control.in_flight(), control.queued()), (0, 0));
        assert_eq!(run(&pipeline, ok(0, "next")).await, Ok("next"));
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "drop");
    }
}

/// A hedge goes on where the primary panics only if the policy isolates panics; here it does not,
/// and the slot is free all the same.
#[tokio::test(start_paused = true)]
async fn pr_71_behind_a_hedge() {
    let limiter = ConcurrencyLimiter::new(1);
    let control = limiter.control();
    let hedge = Hedge::after(ms(50));
    let pipeline = Pipeline::builder().concurrency_limiter(limiter).hedge(hedge).build().unwrap();
    let notes = crate::support::Notes::new();
    for _ in 0..100 {
        let script = work(&notes, [panics(10, "boom"), ok(10, "b")]);
        let outcome = caught(pipeline.execute(|attempt| script.clone()(attempt))).await;
        assert_eq!(outcome, Err("boom".to_owned()));
        assert_eq!(control.in_flight(), 0);
        let answer = pipeline.execute(|_| act(ok(10, "next"))).await;
        assert_eq!(answer, Ok("next"));
    }
}

#[tokio::test(start_paused = true)]
async fn pr_80_who_waits_is_not_polled() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(1).max_wait(Duration::MAX);
    let pipeline = limited(&limiter);
    let holder = pipeline.clone();
    let holder = tokio::spawn(async move { run(&holder, ok(1_000, "held")).await });
    tokio::task::yield_now().await;
    let mut waiter = Polled::new(run(&pipeline, ok(0, "a")));
    assert_eq!((&mut waiter).await, Some(Ok("a")));
    assert_eq!(holder.await.unwrap(), Ok("held"));
    assert_eq!(waiter.polls, 2, "when it queues, and when its turn comes");
}

#[test]
fn pr_80_the_limit_holds_across_clones_and_drops() {
    const TASKS: usize = 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).build().unwrap();
    let limiter = ConcurrencyLimiter::new(5).max_queue(TASKS);
    let (control, gauge) = (limiter.control(), Arc::new(Gauge::default()));
    let (pipelines, barrier) =
        ([limited(&limiter), limited(&limiter)], Arc::new(Barrier::new(TASKS)));
    let mut random = fastrand::Rng::with_seed(80);
    let tasks: Vec<_> = (0..TASKS)
        .map(|nth| {
            let pipeline = pipelines[nth % 2].clone();
            let (gauge, barrier) = (Arc::clone(&gauge), Arc::clone(&barrier));
            let (yields, dropped) = (random.usize(0..4), nth % 4 == 0);
            // Before the first poll, while queued or while running.
            let most = if dropped { random.usize(0..3) } else { usize::MAX };
            runtime.spawn(async move {
                barrier.wait().await;
                let call = pipeline.execute(|_| async {
                    let _inside = gauge.enter();
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                    Answer::Ok("a")
                });
                let mut call = Polled::at_most(most, call.into_future());
                let outcome = (&mut call).await;
                assert!(dropped || outcome == Some(Ok("a")), "{outcome:?}");
                assert!(call.polls <= yields + 3, "{} polls", call.polls);
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!(gauge.peak() <= 5, "{} at a time", gauge.peak());
    assert_eq!(gauge.now(), 0);
    assert_eq!((control.in_flight(), control.queued()), (0, 0), "five slots are free");
}
