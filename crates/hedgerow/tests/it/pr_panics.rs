//! PR-71: a panic in the factory of an attempt, at its first poll, at a later one, and in its
//! destructor.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hedgerow::testing::Tokens;
use hedgerow::{Attempt, Hedge, Panics};
use tokio::time::sleep;

use crate::support::{Answer, Events, Notes, both, caught, ms};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Where {
    Factory,
    FirstPoll,
    LaterPoll,
}

/// A gauge that counts one for as long as it lives.
struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The attempt `culprit` panics; the other answers `b` 10 ms after its start.
fn panicking(place: Where, culprit: u8, alive: &Arc<AtomicUsize>) -> impl FnMut(Attempt) -> Work {
    let alive = Arc::clone(alive);
    move |attempt| {
        let gauge = Gauge::new(&alive);
        let panics = attempt.hedge_number() == culprit;
        assert!(!(panics && place == Where::Factory), "boom");
        Box::pin(async move {
            let _gauge = gauge;
            assert!(!(panics && place == Where::FirstPoll), "boom");
            sleep(ms(10)).await;
            assert!(!(panics && place == Where::LaterPoll), "boom");
            if attempt.hedge_number() == 0 {
                std::future::pending::<()>().await;
            }
            Ok("b")
        })
    }
}

const PLACES: [Where; 3] = [Where::Factory, Where::FirstPoll, Where::LaterPoll];

#[tokio::test(start_paused = true)]
async fn pr_71_a_panic_reaches_the_caller_and_leaves_nothing_behind() {
    for _ in 0..100 {
        for place in PLACES {
            for culprit in [0, 1] {
                let alive = Arc::new(AtomicUsize::new(0));
                for hedge in both(Hedge::after(ms(50))) {
                    let tokens = Arc::new(Tokens::new(1));
                    let hedge = hedge.budget(Arc::clone(&tokens) as Arc<_>);
                    let panicked = caught(hedge.call(panicking(place, culprit, &alive))).await;
                    assert_eq!(panicked, Err("boom".to_owned()), "{place:?} of A{culprit}");
                    assert_eq!(alive.load(Ordering::Relaxed), 0, "{place:?} of A{culprit}");
                    let answer = hedge.call(async |_| Answer::Ok("a")).await;
                    assert_eq!(answer, Ok("a"), "ordinary calls work");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_71_a_panic_can_count_as_a_failed_attempt() {
    for _ in 0..100 {
        for (place, at) in PLACES.into_iter().zip([10, 10, 20]) {
            let (notes, events) = (Notes::new(), Events::default());
            let alive = Arc::new(AtomicUsize::new(0));
            let hedge = Hedge::after(ms(50)).panics(Panics::AsFailure).observer(events.observer());
            let answer = caught(hedge.call(panicking(place, 0, &alive))).await;
            assert_eq!(answer, Ok(Ok("b")), "{place:?}");
            assert_eq!(notes.at(), at, "{place:?}");
            assert_eq!(alive.load(Ordering::Relaxed), 0);
            assert_eq!(events.count("end(0,panicked"), 1);
            assert_eq!(events.count("hedge(1,failure)"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_71_a_hedges_factory_that_panics_counts_as_its_failure() {
    let (notes, alive) = (Notes::new(), Arc::new(AtomicUsize::new(0)));
    let hedge = Hedge::after(ms(50)).panics(Panics::AsFailure).max_hedges(2);
    let call = hedge.call(panicking(Where::Factory, 1, &alive));
    let report = caught(call.settle()).await.unwrap();
    assert_eq!(report.result(), Some(&Ok("b")));
    assert_eq!(report.winner(), Some(2));
    assert_eq!(report.failures()[0].hedge_number(), 1);
    assert_eq!(notes.at(), 60);
}

/// Panics when it is dropped, unless a panic is under way already.
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "dropped");
    }
}

/// The hedge answers; the losers' destructors panic where `armed` says so.
async fn drops(hedge: &Hedge, armed: [bool; 2]) -> (Result<Answer, String>, usize) {
    let alive = Arc::new(AtomicUsize::new(0));
    let work = |attempt: Attempt| {
        let number = usize::from(attempt.hedge_number());
        let bomb = Bomb(armed.get(number).copied().unwrap_or_default());
        let gauge = Gauge::new(&alive);
        async move {
            let _held = (gauge, bomb);
            if number < 2 {
                std::future::pending::<()>().await;
            }
            sleep(ms(20)).await;
            Ok("c")
        }
    };
    let result = caught(hedge.call(work)).await;
    (result, alive.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn pr_71_a_destructor_that_panics_does_not_keep_the_others_alive() {
    let events = Events::default();
    for hedge in [
        Hedge::after(ms(50)).max_hedges(2),
        Hedge::after(ms(50)).max_hedges(2).observer(events.observer()),
    ] {
        for armed in [[true, false], [false, true], [true, true]] {
            let (result, alive) = drops(&hedge, armed).await;
            assert_eq!(result, Err("dropped".to_owned()), "{armed:?}");
            assert_eq!(alive, 0, "{armed:?}");
        }
        let (result, alive) = drops(&hedge, [false, false]).await;
        assert_eq!((result, alive), (Ok(Ok("c")), 0), "ordinary calls work");
    }
    assert_eq!(events.count("over"), 4, "each call is over once");
    assert_eq!(events.count("end("), 12, "each attempt ends once");
}

#[tokio::test(start_paused = true)]
async fn pr_71_a_spawned_attempt_that_panics() {
    for place in PLACES {
        let alive = Arc::new(AtomicUsize::new(0));
        let hedge = Hedge::after(ms(50));
        let call = hedge.call(panicking(place, 0, &alive)).spawned();
        assert_eq!(caught(call).await, Err("boom".to_owned()), "{place:?}");
        let hedge = hedge.panics(Panics::AsFailure);
        let call = hedge.call(panicking(place, 0, &alive)).spawned();
        assert_eq!(caught(call).await, Ok(Ok("b")), "{place:?}");
        tokio::task::yield_now().await;
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}
