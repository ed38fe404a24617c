//! Waiting for the rate limiter.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use hedgerow::pipeline::RateLimiter;
use hedgerow::testing::ManualExecutor;
use hedgerow::{CancellationToken, Clock};
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep, timeout};

use crate::p_rate::{Limited, limited, now, on_a_clock};
use crate::p_told::{Polled, refusal};
use crate::stage::{self, Came, Stage};
use crate::support::{Answer, act, lock, ms, ok, poll_once};

/// 1,000 calls at once: when each was let through, in milliseconds; a third is dropped after so
/// many milliseconds as this says.
async fn let_through(pipeline: &Limited, dropped: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
    let (start, admitted) = (Instant::now(), Mutex::new(vec![]));
    let calls = (0..1_000).map(|nth| {
        let call = pipeline.execute(|_| async {
            lock(&admitted).push(u64::try_from(start.elapsed().as_millis()).unwrap());
            Answer::Ok("a")
        });
        let dropped = dropped(nth);
        async move {
            match dropped {
                Some(after) => timeout(ms(after), call.into_future()).await.is_ok(),
                None => call.await.is_ok(),
            }
        }
    });
    let survived = join_all(calls).await.into_iter().filter(|survived| *survived).count();
    let admitted = admitted.into_inner().unwrap();
    assert_eq!(survived, admitted.len(), "each permit was used");
    admitted
}

#[tokio::test(start_paused = true)]
async fn pr_41_waiting_lets_nobody_through_for_free() {
    let limiter = RateLimiter::per(100, ms(1_000)).max_wait(ms(20_000));
    let (pipeline, control) = (limited(&limiter), limiter.control());
    let admitted = let_through(&pipeline, |_| None).await;
    let expected: Vec<_> = (0..1_000_u64).map(|nth| 10 * (nth + 1).saturating_sub(100)).collect();
    assert_eq!(admitted, expected, "100 at once, then one each 10 ms");
    assert_eq!(control.queued(), 0);
    assert_eq!(now_waits(&pipeline).await, ms(10), "nothing is left over, and nothing is owed");
}

#[tokio::test(start_paused = true)]
async fn pr_41_who_gives_up_leaves_its_permit_to_others() {
    let limiter = RateLimiter::per(100, ms(1_000)).max_wait(ms(20_000));
    let (pipeline, control) = (limited(&limiter), limiter.control());
    // Those that are let through at once are none of them.
    let dropped = |nth| (nth >= 100 && nth % 3 == 0).then_some(1 + 7 * (nth % 11));
    let admitted = let_through(&pipeline, dropped).await;
    let count = u64::try_from(admitted.len()).unwrap();
    assert!((700..=710).contains(&count), "{count}");
    let expected: Vec<_> = (0..count).map(|nth| 10 * (nth + 1).saturating_sub(100)).collect();
    assert_eq!(admitted, expected, "no permit went to nobody");
    assert_eq!(control.queued(), 0);
    assert_eq!(now_waits(&pipeline).await, ms(10));
}

/// How long the next call has to wait.
async fn now_waits(pipeline: &Limited) -> Duration {
    let start = Instant::now();
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    start.elapsed()
}

/// The same on eight threads: a clock that they share moves on when the first in line waits for it.
#[test]
fn pr_41_on_threads() {
    const TASKS: usize = 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).build().unwrap();
    for drops in [false, true] {
        let limiter = RateLimiter::per(100, ms(1_000)).max_wait(ms(20_000));
        let control = limiter.control();
        let (pipeline, clock) = on_a_clock(&limiter);
        let (start, over) = (clock.now(), Arc::new(AtomicUsize::new(0)));
        let (admitted, barrier) = (Arc::new(Mutex::new(vec![])), Arc::new(Barrier::new(TASKS)));
        for nth in 0..TASKS {
            let (pipeline, clock) = (pipeline.clone(), clock.clone());
            let (admitted, barrier) = (Arc::clone(&admitted), Arc::clone(&barrier));
            let over = Arc::clone(&over);
            let most = if drops && nth % 3 == 0 { nth % 2 + 1 } else { usize::MAX };
            runtime.spawn(async move {
                barrier.wait().await;
                let call = pipeline.execute(|_| async {
                    lock(&admitted).push(clock.now() - start);
                    Answer::Ok("a")
                });
                let outcome = Polled::at_most(most, call.into_future()).await;
                over.fetch_add(1, Ordering::SeqCst);
                assert!(outcome.is_none_or(|outcome| outcome.is_ok()));
            });
        }
        while over.load(Ordering::SeqCst) < TASKS {
            // Only the first in line waits for less than the 20 s that each is ready to.
            match clock.next_deadline() {
                Some(next) if next <= ms(10) => clock.advance(next),
                _ => std::thread::yield_now(),
            }
        }
        let mut admitted = lock(&admitted).clone();
        assert!(admitted.len() >= if drops { 666 } else { TASKS }, "{}", admitted.len());
        admitted.sort_unstable();
        for (before, at) in admitted.into_iter().enumerate() {
            let due = ms(10) * u32::try_from((before + 1).saturating_sub(100)).unwrap();
            // The clock may go on between the permit and the note.
            assert!(at >= due && at <= ms(10_000), "100 at once, then one each 10 ms: {before}");
        }
        assert!(clock.now() - start <= ms(10_000), "no permit went to nobody");
        assert_eq!(control.queued(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_wait_is_counted_anew_after_each_wake_up() {
    let limiter = RateLimiter::per(1, ms(100)).max_wait(ms(250));
    let pipeline = limited(&limiter);
    let start = Instant::now();
    let call = |after| {
        let pipeline = &pipeline;
        async move {
            sleep(ms(after)).await;
            let outcome = pipeline.execute(|_| act(ok(0, "a"))).await;
            (outcome.map_err(|error| error.rejected().unwrap().retry_after()), start.elapsed())
        }
    };
    let outcomes = join_all([call(0), call(10), call(20), call(30), call(160)]).await;
    let expected = [
        (Ok("a"), ms(0)),
        (Ok("a"), ms(100)),
        (Ok("a"), ms(200)),
        // The first in line from 200 on, with 80 left of its 250: in vain.
        (Err(Some(ms(100))), ms(200)),
        (Ok("a"), ms(300)),
    ];
    assert_eq!(outcomes, expected);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_cannot_come_in_time() {
    let limiter = RateLimiter::per(1, ms(1_000)).max_wait(ms(999));
    let pipeline = limited(&limiter);
    let start = Instant::now();
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    let refused = pipeline.execute(|_| act(ok(0, "a"))).await.unwrap_err();
    assert_eq!(refused.rejected().unwrap().retry_after(), Some(ms(1_000)));
    assert_eq!(start.elapsed(), ms(0));
    sleep(ms(1)).await;
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    assert_eq!(start.elapsed(), ms(1_000), "999 ms is just enough");
}

#[tokio::test(start_paused = true)]
async fn who_is_not_first_in_time_is_refused_at_its_own_time() {
    let limiter = RateLimiter::per(1, ms(100)).max_wait(ms(100));
    let (pipeline, control, start) = (limited(&limiter), limiter.control(), Instant::now());
    let patient = limited(&limiter.clone().max_wait(ms(1_000)));
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    // The first stays in line, behind it others with less time.
    let mut first = pin!(patient.execute(|_| act(ok(0, "a"))).into_future());
    assert!(poll_once(first.as_mut()).is_pending());
    let hurried = limited(&limiter.max_wait(ms(30)));
    let refused = hurried.execute(|_| act(ok(0, "a"))).await;
    assert_eq!((refusal(&refused), start.elapsed()), ("waited too long", ms(30)));
    assert_eq!(control.queued(), 1);
    assert_eq!(first.await, Ok("a"));
    assert_eq!((control.queued(), start.elapsed()), (0, ms(100)));
}

/// Waiting or not, nobody goes before those who wait.
#[test]
fn nobody_overtakes() {
    let limiter = RateLimiter::per(1, ms(100)).max_wait(ms(500));
    let (pipeline, clock) = on_a_clock(&limiter);
    assert_eq!(now(&pipeline), Ok(()));
    let mut waiter = pin!(pipeline.execute(|_| act(ok(0, "a"))).into_future());
    assert!(poll_once(waiter.as_mut()).is_pending());
    clock.advance(ms(100));
    let hurried = limited(&limiter.clone().max_wait(Duration::ZERO));
    assert_eq!(now(&hurried), Err(None), "there is a permit, but it is spoken for");
    assert_eq!(poll_once(waiter.as_mut()), Poll::Ready(Ok("a")));
    assert_eq!(now(&hurried), Err(Some(ms(100))));
}

#[test]
fn who_waits_takes_nothing_wherever_it_is_dropped() {
    let run = |(): &(), polls, late| {
        let limiter = RateLimiter::per(1, ms(10)).max_wait(ms(25));
        let (pipeline, clock) = on_a_clock(&limiter);
        let (executor, cancel) = (ManualExecutor::new(), CancellationToken::new());
        let mut stage = Stage { clock: clock.clone(), executor, cancel, cancel_in: None };
        let started = Arc::new(AtomicUsize::new(0));
        let calls = {
            let (pipeline, started) = (pipeline.clone(), Arc::clone(&started));
            async move {
                let call = || {
                    pipeline.execute(|_| async {
                        started.fetch_add(1, Ordering::SeqCst);
                        Answer::Ok("a")
                    })
                };
                join_all((0..4).map(|_| call().into_future())).await
            }
        };
        let began = clock.now();
        let came = stage.drive(calls, polls, late);
        let due = 1 + usize::try_from((clock.now() - began).as_millis() / 10).unwrap();
        let waits = limiter.control().queued();
        let left = started.load(Ordering::SeqCst).max(due) - started.load(Ordering::SeqCst);
        (came, waits, left, burst_now(&pipeline))
    };
    let points = stage::every_point(
        &(),
        run,
        |(), (came, waits, left, burst)| {
            assert_eq!(*waits, 0);
            assert_eq!(*burst, (*left).min(1), "exactly the permits of those who started are gone");
            if let Came::Ended(outcomes) = came {
                assert_eq!(outcomes[..3], [Ok("a"), Ok("a"), Ok("a")]);
                assert!(outcomes[3].is_err());
            }
        },
        |(came, ..)| matches!(came, Came::Dropped),
    );
    assert!(points >= 3, "{points}");
}

/// As many as are let through without a wait.
fn burst_now(pipeline: &Limited) -> usize {
    let starts = |_: &usize| {
        let call = pipeline.execute(|_| async { Answer::Ok("a") });
        poll_once(pin!(call.into_future())).is_ready()
    };
    (0..1_000).take_while(starts).count()
}
