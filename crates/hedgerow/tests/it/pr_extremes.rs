//! PR-74: zero, one nanosecond and the longest duration there is, for every duration.

use std::sync::Arc;
use std::time::Duration;

use hedgerow::{Attempt, Clock, Delay, Hedge, Losers, ManualClock};
use tokio::time::timeout;

use crate::discipline::{Strict, Turns};
use crate::support::{Answer, Events, Notes, act, both, err, ms, never, ok, poll_once, work};

const NANO: Duration = Duration::from_nanos(1);

/// A day: longer than anything here that ends.
const DAY: Duration = Duration::from_secs(86_400);

/// The three ways to say a delay.
fn delays(delay: Duration) -> [Hedge; 3] {
    [
        Hedge::after(delay),
        Hedge::default().delay(vec![Delay::After(delay)]),
        Hedge::default().delay([Delay::After(delay), Delay::OnFailure]),
    ]
}

#[tokio::test(start_paused = true)]
async fn pr_74_a_delay_of_nothing_starts_at_once() {
    for hedge in delays(Duration::ZERO).into_iter().flat_map(both) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [never(), ok(20, "b")]));
        assert_eq!(call.await, Ok("b"));
        assert_eq!(notes.count("A1 starts @0"), 1);
    }
}

/// Tokio's timer counts whole milliseconds, upwards.
#[tokio::test(start_paused = true)]
async fn pr_74_a_delay_of_a_nanosecond_is_the_shortest_that_the_timer_has() {
    for hedge in delays(NANO).into_iter().flat_map(both) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [never(), ok(20, "b")]));
        assert_eq!(call.await, Ok("b"));
        assert_eq!(notes.count("A1 starts @1"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_74_the_longest_delay_is_never() {
    let century = Duration::from_secs(1 << 32);
    let nearly = Duration::MAX.saturating_sub(NANO);
    for delay in [Duration::MAX, nearly, century, century + NANO] {
        for hedge in delays(delay).into_iter().flat_map(both) {
            let (notes, turns) = (Notes::new(), Turns::default());
            let work = |attempt: Attempt| {
                assert_eq!(attempt.hedge_number(), 0, "no hedge starts");
                Strict::new(act(never()), &turns)
            };
            let call = turns.drive(hedge.call(work));
            assert!(timeout(DAY, call).await.is_err());
            assert!(turns.count() <= 2, "nothing spins");
            assert_eq!(notes.at(), 86_400_000);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_74_after_the_longest_delay_a_failure_still_starts_the_next() {
    for hedge in delays(Duration::MAX).into_iter().flat_map(both) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [err(30, "p"), ok(20, "b")]));
        assert_eq!(call.await, Ok("b"));
        assert_eq!(notes.at(), 50);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_74_a_delay_function_may_say_any_of_them() {
    for (delay, start) in [(Duration::ZERO, 0), (NANO, 1), (ms(1), 1)] {
        for hedge in both(Hedge::default()) {
            let notes = Notes::new();
            let call = hedge
                .call(work(&notes, [never(), ok(20, "b")]))
                .delay_with(|_| Delay::After(delay));
            assert_eq!(call.await, Ok("b"));
            assert_eq!(notes.at(), start + 20);
        }
    }
    for hedge in both(Hedge::default()) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [never(), ok(20, "b")]))
            .delay_with(|_| Delay::After(Duration::MAX));
        assert!(timeout(DAY, call).await.is_err());
        assert_eq!(notes.count("A1"), 0);
    }
}

#[test]
fn pr_74_a_manual_clock_is_exact_to_the_nanosecond() {
    let (clock, events) = (ManualClock::new(), Events::default());
    let hedge = Hedge::after(NANO).clock(Arc::new(clock.clone())).observer(events.observer());
    let work = async |_| std::future::pending::<Answer>().await;
    let mut call = Box::pin(hedge.call(work).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!(clock.next_deadline(), Some(NANO));
    assert_eq!(events.count("hedge"), 0);
    clock.advance(NANO);
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!(events.count("hedge"), 1);
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn pr_74_the_longest_delay_arms_no_timer() {
    let clock = ManualClock::new();
    let hedge = Hedge::after(Duration::MAX).clock(Arc::new(clock.clone()));
    let work = async |_| std::future::pending::<Answer>().await;
    let mut call = Box::pin(hedge.call(work).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn pr_74_a_deadline_of_any_length() {
    for (deadline, hedges) in [(Duration::ZERO, 0), (NANO, 0), (Duration::MAX, 1)] {
        for hedge in both(Hedge::after(ms(50))) {
            let notes = Notes::new();
            let start = tokio::time::Instant::now().into_std();
            let mut script = work(&notes, [ok(200, "a"), ok(500, "b")]);
            let call = hedge.call(|attempt| {
                let told = attempt.deadline().map(|at| at.duration_since(start));
                let expected = (deadline < DAY).then_some(deadline);
                assert_eq!(told, expected, "the longest is none");
                script(attempt)
            });
            assert_eq!(call.deadline(deadline).await, Ok("a"));
            assert_eq!(notes.count("A1 starts"), hedges, "{deadline:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_74_a_grace_of_any_length() {
    for (grace, end) in [(Duration::ZERO, 70), (NANO, 71), (Duration::MAX, 500)] {
        let losers = Losers::Join { grace: Some(grace) };
        let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).losers(losers));
        let call = hedge.call(work(&notes, [ok(500, "deaf"), ok(20, "b")]));
        assert_eq!(call.await, Ok("b"));
        assert_eq!(notes.at(), end, "{grace:?}");
    }
}

#[test]
fn pr_74_a_manual_sleep_of_any_length() {
    let clock = ManualClock::new();
    let mut longest = clock.sleep(Duration::MAX);
    assert!(poll_once(longest.as_mut()).is_pending());
    assert_eq!(clock.sleepers(), 0, "nothing can wake it");
    assert!(poll_once(clock.sleep(Duration::ZERO).as_mut()).is_ready());
    let mut nano = clock.sleep(NANO);
    assert!(poll_once(nano.as_mut()).is_pending());
    clock.advance(NANO);
    assert!(poll_once(nano.as_mut()).is_ready());
    assert!(poll_once(clock.sleep_until(clock.now()).as_mut()).is_ready());
}
