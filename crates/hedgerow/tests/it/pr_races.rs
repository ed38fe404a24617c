//! PR-76 and PR-77 on many threads. Nothing here depends on how long anything takes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use hedgerow::{
    Attempt, CancellationToken, Decision, Delay, Discarded, End, Hedge, Losers, ManualClock,
};
use tokio::sync::Barrier;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::ledger::{Draw, Gauge, Ledger};
use crate::support::{Answer, lock, ms};

/// Runs a call so many times on each of four tasks.
async fn on_four_tasks<F>(times: usize, call: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let calls: Vec<_> = (0..times).map(|_| call()).collect();
            tokio::spawn(async {
                for call in calls {
                    call.await;
                }
            })
        })
        .collect();
    for task in tasks {
        let ended = timeout(Duration::from_secs(60), task).await;
        ended.expect("a call hangs").unwrap();
    }
}

/// The two attempts of a call are released together; one result comes back.
async fn two_at_once(hedge: Hedge, spawned: bool, discards: Arc<AtomicUsize>) {
    let told = Arc::<Ledger>::default();
    let hedge = hedge.observer(Arc::clone(&told) as Arc<_>);
    let (barrier, release) = (Arc::new(Barrier::new(3)), CancellationToken::new());
    let released = release.clone();
    let both_wait = Arc::clone(&barrier);
    let work = move |attempt: Attempt| {
        let (barrier, released) = (Arc::clone(&barrier), released.clone());
        async move {
            // A task of its own each, or both in one: then somebody else lets go of both.
            barrier.wait().await;
            if !spawned {
                released.cancelled().await;
            }
            Ok::<_, u16>(attempt.hedge_number())
        }
    };
    tokio::spawn(async move {
        both_wait.wait().await;
        release.cancel();
    });
    let call = hedge.call(work).on_discard(move |lost: Discarded<u8, u16>| {
        assert_eq!(lost.outcome, Ok(lost.hedge_number), "its own");
        discards.fetch_add(1, Ordering::Relaxed);
    });
    let answer = if spawned { call.spawned().await } else { call.await };
    let winner = answer.unwrap();
    let tallies = lock(&told.0);
    let [tally] = tallies.values().collect::<Vec<_>>()[..] else { panic!("one call") };
    assert_eq!(tally.over, [Decision::Accepted(winner)]);
    assert_eq!((tally.started, tally.decided), (2, 1));
    assert_eq!(tally.ended(End::Won), 1);
    let lost = tally.ended(End::Cancelled) + tally.ended(End::Discarded);
    assert_eq!(lost, 1, "the other lost, once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_76_two_attempts_that_end_together_give_one_result() {
    let hedge = Hedge::default().delay(Delay::Immediately);
    let joins = Losers::Join { grace: None };
    for (losers, spawned, times) in
        [(Losers::Drop, false, 5_000), (Losers::Drop, true, 12_500), (joins, true, 7_500)]
    {
        let discards = Arc::<AtomicUsize>::default();
        let hedge = hedge.clone().losers(losers);
        on_four_tasks(times, || two_at_once(hedge.clone(), spawned, Arc::clone(&discards))).await;
        let discards = discards.load(Ordering::Relaxed);
        if losers == joins {
            assert_eq!(discards, 4 * times, "every loser ended, and was discarded once");
        } else {
            assert!(discards <= 4 * times);
        }
    }
}

/// What a hedge that takes 5 ms to set up came to.
#[derive(Default)]
struct Setup {
    bodies: AtomicUsize,
    alive: Arc<AtomicI64>,
}

/// The primary answers after `primary` ms; the hedge is due at 100 and takes 5 to set up.
async fn while_setting_up(clock: ManualClock, primary: u64, setup: Arc<Setup>) -> Answer {
    let hedge = Hedge::after(ms(100)).clock(Arc::new(clock.clone()));
    let (clock, hook) = (&clock, clock.clone());
    let setup = &setup;
    let work = async |attempt: Attempt| {
        let _alive = Gauge::up(&setup.alive);
        if attempt.hedge_number() == 0 {
            clock.sleep(ms(primary)).await;
            return Ok("a");
        }
        setup.bodies.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    };
    let call = hedge.call(work).on_hedge_async(|_| {
        let (alive, sleep) = (Gauge::up(&setup.alive), hook.sleep(ms(5)));
        async move {
            let _alive = alive;
            sleep.await;
        }
    });
    call.await
}

#[test]
fn pr_77_a_hedge_that_is_being_set_up_when_the_answer_comes() {
    for primary in 99..=106 {
        let (clock, setup) = (ManualClock::new(), Arc::<Setup>::default());
        let call = while_setting_up(clock.clone(), primary, Arc::clone(&setup));
        let mut call = Box::pin(call);
        let mut elapsed = 0;
        while crate::support::poll_once(call.as_mut()).is_pending() {
            assert!(elapsed < primary, "the answer is there");
            clock.advance(ms(1));
            elapsed += 1;
        }
        assert_eq!(elapsed, primary);
        let bodies = setup.bodies.load(Ordering::SeqCst);
        assert_eq!(bodies, usize::from(primary > 105), "{primary}");
        assert_eq!(setup.alive.load(Ordering::SeqCst), 0, "{primary}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_77_the_same_while_time_goes_on_in_another_thread() {
    for round in 0..10_000 {
        let primary = 99 + Draw(round).below(8);
        let (clock, setup) = (ManualClock::new(), Arc::<Setup>::default());
        let call = while_setting_up(clock.clone(), primary, Arc::clone(&setup));
        let call = tokio::spawn(call);
        clock.advance(ms(95));
        while !call.is_finished() {
            clock.advance(ms(1));
            yield_now().await;
        }
        assert_eq!(call.await.unwrap(), Ok("a"));
        assert_eq!(setup.alive.load(Ordering::SeqCst), 0);
        assert!(setup.bodies.load(Ordering::SeqCst) <= 1);
    }
}
