//! `Hedge::strategy`: the rows T that a call alone can meet and no scenario shows.

use std::cell::RefCell;

use hedgerow::{Attempt, CancellationToken, Exhausted, Hedge, NextAction, RejectedHedge};
use tokio::time::{sleep, timeout};

use crate::h_generator::Next;
use crate::support::{Answer, Notes, both, err, ms, never, ok, work};

/// The preset, with a delay that suits a test.
fn strategy(delay: u64) -> Hedge {
    Hedge::strategy().delay(ms(delay))
}

#[tokio::test(start_paused = true)]
async fn t01_the_primary_starts_at_once_and_is_number_0() {
    let (notes, numbers) = (Notes::new(), RefCell::new(vec![]));
    let work = async |attempt: Attempt| {
        numbers.borrow_mut().push((attempt.number(), notes.at()));
        Answer::Ok("a")
    };
    assert_eq!(strategy(150).call(work).await, Ok("a"));
    assert_eq!(*numbers.borrow(), [(0, 0)]);
}

/// A loser that would take long to stop is dropped: nobody waits.
#[tokio::test(start_paused = true)]
async fn t06_the_return_does_not_wait_for_losers() {
    for hedge in both(strategy(150)) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(60_000, "deaf"), ok(100, "b")]));
        assert_eq!(call.tokens().await, Ok("b"));
        assert_eq!(notes.at(), 250);
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Status(u16),
    Aborted,
    Rejected,
    Io,
}

/// The source's default: everything but 4xx (408 and 429 do count), aborts and rejections.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what a predicate is given")]
fn transient(outcome: &Result<(), Fault>) -> bool {
    match outcome {
        Ok(()) | Err(Fault::Aborted | Fault::Rejected) => false,
        Err(Fault::Status(status)) => !(400..500).contains(status) || [408, 429].contains(status),
        Err(Fault::Io) => true,
    }
}

#[tokio::test(start_paused = true)]
async fn t11_the_predicate_of_a_retry_serves_here_too() {
    for (fault, hedged) in [
        (Fault::Status(503), true),
        (Fault::Status(408), true),
        (Fault::Status(429), true),
        (Fault::Status(404), false),
        (Fault::Aborted, false),
        (Fault::Rejected, false),
        (Fault::Io, true),
    ] {
        for hedge in both(strategy(150)) {
            let work = async |attempt: Attempt| match attempt.hedge_number() {
                0 => Err(fault),
                _ => Ok(()),
            };
            let outcome = hedge.call(work).handle(transient).await;
            assert_eq!(outcome.is_ok(), hedged, "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn t12_values_cause_no_hedge_unless_the_predicate_says_so() {
    for hedge in both(strategy(150)) {
        let notes = Notes::new();
        let script = [ok(10, "bad"), ok(10, "b")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("bad"));
        let call = hedge.call(work(&notes, script));
        assert_eq!(call.handle(crate::support::transient).await, Ok("b"));
    }
}

#[tokio::test(start_paused = true)]
async fn t13_t17_one_hedge_after_two_seconds_is_the_default() {
    for hedge in [Hedge::strategy(), Hedge::default()].into_iter().flat_map(both) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [never(), err(5_000, "q"), ok(0, "c")]));
        assert!(timeout(ms(60_000), call).await.is_err());
        let expected = ["A0 starts @0", "A1 starts @2000", "A1 ends @7000", "A0 dropped @60000"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn t28_repeating_is_the_original_work() {
    for hedge in both(strategy(50)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [never(), ok(20, "b")]))
            .next_action(|_| -> Next { Ok(NextAction::Repeat) });
        assert_eq!(call.await, Ok("b"));
        assert_eq!(notes.count("A1 starts @50"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn t34_work_that_is_not_idempotent_never_runs_side_by_side() {
    let notes = Notes::new();
    let hedge = strategy(50).max_hedges(2);
    let call = hedge.call(work(&notes, [ok(500, "a"), ok(0, "b")]));
    assert_eq!(call.idempotent(false).await, Ok("a"));
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 ends @500"]);
}

#[tokio::test(start_paused = true)]
async fn t35_only_a_handled_rejection_is_followed_by_another_attempt() {
    for (hedge_rejections, primary, expected) in [
        (false, err(10, "down"), Err("down")),
        (true, err(10, "down"), Err("down")),
        (false, err(10, "full"), Err("full")),
        (true, err(10, "full"), Ok("b")),
    ] {
        let notes = Notes::new();
        let hedge = strategy(50).max_hedges(2);
        let hedge = hedge.hedge_rejections(hedge_rejections);
        let call = hedge
            .call(work(&notes, [primary, ok(30, "b")]))
            .rejection(|error| *error == "full")
            .idempotent(false);
        assert_eq!(call.await, expected);
        let started = usize::from(expected.is_ok());
        assert_eq!(notes.count("A1 starts @10"), started);
    }
}

#[tokio::test(start_paused = true)]
async fn t36_with_the_defaults_it_runs_exactly_once() {
    for primary in [ok(3_000, "a"), ok(0, "a"), err(10, "p"), err(3_000, "full")] {
        let notes = Notes::new();
        let hedge = Hedge::strategy().max_hedges(10);
        let call = hedge
            .call(work(&notes, [primary, ok(0, "b")]))
            .rejection(|error| *error == "full")
            .idempotent(false);
        assert_ne!(call.await, Ok("b"));
        assert_eq!(notes.count("A0 starts"), 1);
        assert_eq!(notes.count("A1"), 0);
    }
}

/// Whoever repeats the call takes a rejection for work that never started.
#[tokio::test(start_paused = true)]
async fn t36_a_rejection_does_not_stand_for_an_attempt_that_ran() {
    for exhausted in [Exhausted::Primary, Exhausted::First, Exhausted::Last] {
        for idempotent in [true, false] {
            let hedge = strategy(50).max_hedges(2).hedge_rejections(true).exhausted(exhausted);
            let hedge = hedge.rejected_hedge(RejectedHedge::Hedge);
            let script = [err(10, "full"), err(10, "full"), err(10, "x")];
            let call = hedge.call(work(&Notes::new(), script));
            let call = call.rejection(|error| *error == "full").idempotent(idempotent);
            let chosen = if exhausted == Exhausted::Last { "x" } else { "full" };
            let expected = if idempotent { chosen } else { "x" };
            assert_eq!(call.await, Err(expected), "{exhausted:?}");
        }
    }
}

/// An error that hedging could not make: it has no conversions.
#[derive(Debug, PartialEq)]
struct Opaque(u32);

#[tokio::test(start_paused = true)]
async fn t39_the_error_is_the_callers_own() {
    let work = async |attempt: Attempt| Err::<(), _>(Opaque(attempt.number()));
    let failed: Result<(), Opaque> = Hedge::strategy().call(work).await;
    assert_eq!(failed, Err(Opaque(0)));
}

#[tokio::test(start_paused = true)]
async fn t45_a_timeout_outside_bounds_the_call_and_one_inside_each_attempt() {
    for hedge in both(strategy(50).max_hedges(2)) {
        let notes = Notes::new();
        assert!(timeout(ms(120), hedge.call(work(&notes, []))).await.is_err());
        let expected = [
            "A0 starts @0",
            "A1 starts @50",
            "A2 starts @100",
            "A0 dropped @120",
            "A1 dropped @120",
            "A2 dropped @120",
        ];
        assert_eq!(notes.lines(), expected);
    }
    for hedge in both(strategy(500)) {
        let notes = Notes::new();
        let work = async |attempt: Attempt| {
            let takes = [1_000, 30][usize::from(attempt.hedge_number())];
            let bounded = timeout(ms(100), sleep(ms(takes))).await;
            bounded.map(|()| notes.at()).map_err(|_| "timed out")
        };
        assert_eq!(hedge.call(work).await, Ok(130));
    }
}

#[tokio::test(start_paused = true)]
async fn t51_a_timeout_outside_fires_the_tokens_of_the_attempts() {
    let tokens = RefCell::new(Vec::<CancellationToken>::new());
    let hedge = strategy(50);
    let call = hedge.call(|attempt: Attempt| {
        tokens.borrow_mut().extend(attempt.token());
        std::future::pending::<Answer>()
    });
    assert!(timeout(ms(120), call.tokens()).await.is_err());
    let tokens = tokens.into_inner();
    assert_eq!(tokens.len(), 2);
    assert!(tokens.iter().all(CancellationToken::is_cancelled));
}

#[tokio::test(start_paused = true)]
async fn d32_a_rejected_hedge_ends_a_strategy_and_only_launching_elsewhere() {
    for (hedge, expected) in [
        (strategy(50), Err("full")),
        (Hedge::after(ms(50)), Ok("a")),
        (Hedge::structured(ms(50), 2), Ok("a")),
    ] {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [ok(300, "a"), err(0, "full")]))
            .rejection(|error| *error == "full");
        assert_eq!(call.await, expected);
    }
}
