//! The engine rules that no scenario shows alone: E3, E5, E6, E7, E14, the join of E12, deadlines.

use std::cell::RefCell;

use hedgerow::{Attempt, Delay, Discarded, FailureStart, Gate, Hedge, Losers, RejectedHedge};
use tokio::time::{sleep, timeout};

use crate::support::{Answer, Events, Notes, both, err, ms, never, ok, panics, work};

#[tokio::test(start_paused = true)]
async fn e03_attempts_of_one_moment_are_taken_in_launch_order() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let script = [err(100, "p"), ok(50, "b"), never()];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("b"));
        let lines = notes.lines();
        let taken = [&lines[lines.len() - 2], &lines[lines.len() - 1]];
        assert_eq!(taken, ["A0 ends @100", "A1 ends @100"], "and nothing starts");
    }
}

#[tokio::test(start_paused = true)]
async fn e03_a_panic_behind_an_accepted_outcome_is_not_looked_at() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(100, "a"), panics(50, "boom")]));
        assert_eq!(call.await, Ok("a"));
        assert_eq!(notes.count("A1 dropped @100"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn e05_e07_a_failure_that_starts_nothing_leaves_the_schedule_alone() {
    for hedge in both(Hedge::after(ms(50)).failure_start(FailureStart::Wait)) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [err(10, "p"), ok(20, "b")]));
        assert_eq!(call.await, Ok("b"));
        let expected = ["A0 starts @0", "A0 ends @10", "A1 starts @50", "A1 ends @70"];
        assert_eq!(notes.lines(), expected, "the timer runs although nothing else does");
    }
    for hedge in both(Hedge::default().delay(Delay::OnFailure)) {
        let notes = Notes::new();
        let hedge = hedge.failure_start(FailureStart::Wait);
        let call = hedge.call(work(&notes, [err(10, "p"), ok(20, "b")]));
        assert_eq!(call.await, Err("p"), "nothing can start any more");
        assert_eq!(notes.at(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn e05_when_idle_a_failure_waits_for_the_last_that_runs() {
    let hedge = Hedge::default().delay([Delay::Immediately, Delay::OnFailure]).max_hedges(2);
    for hedge in both(hedge.failure_start(FailureStart::LaunchWhenIdle)) {
        let notes = Notes::new();
        let script = [err(10, "p"), err(30, "q"), ok(20, "c")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("c"));
        assert_eq!(notes.count("A2 starts @30"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn e06_an_attempt_that_is_accepted_at_once_is_the_last_to_start() {
    let hedge = Hedge::default().delay(Delay::Immediately).max_hedges(3);
    for hedge in both(hedge) {
        let notes = Notes::new();
        let script = [never(), ok(0, "b"), ok(0, "c"), ok(0, "d")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("b"));
        let expected = ["A0 starts @0", "A1 starts @0", "A1 ends @0", "A0 dropped @0"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn e07_a_start_for_any_reason_moves_the_timer() {
    for hedge in both(Hedge::after(ms(100)).max_hedges(3)) {
        let notes = Notes::new();
        let script = [never(), err(60, "q"), never(), ok(10, "d")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("d"));
        assert_eq!(notes.count("A1 starts @100"), 1, "by delay");
        assert_eq!(notes.count("A2 starts @160"), 1, "by failure");
        assert_eq!(notes.count("A3 starts @260"), 1, "not at 200");
    }
}

/// Joins; a loser ends in the very tick of the decision, without heeding its token.
#[tokio::test(start_paused = true)]
async fn e12_a_loser_that_ends_in_the_tick_of_the_decision_is_joined() {
    for spawned in [false, true] {
        for grace in [None, Some(ms(1_000))] {
            let (notes, events) = (Notes::new(), Events::default());
            let hedge =
                Hedge::after(ms(50)).losers(Losers::Join { grace }).observer(events.observer());
            let discards = notes.clone();
            let call = hedge.call(work(&notes, [ok(100, "a"), ok(50, "b")])).on_discard(
                move |lost: Discarded<_, &str>| {
                    discards.note(format_args!("discards {:?}", lost.outcome));
                },
            );
            let answer = if spawned {
                timeout(ms(10_000), call.spawned()).await
            } else {
                timeout(ms(10_000), call).await
            };
            assert_eq!(answer, Ok(Ok("a")), "it does not hang");
            assert_eq!(notes.at(), 100);
            assert_eq!(notes.count("discards Ok(\"b\") @100"), 1);
            assert_eq!(events.count("end(1,discarded,50)@100"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn e14_a_rejected_hedge_never_decides_while_another_attempt_runs() {
    for (primary, expected) in [(ok(300, "a"), Ok("a")), (err(300, "p"), Err("p"))] {
        for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
            let notes = Notes::new();
            let call = hedge
                .call(work(&notes, [primary, err(0, "full"), ok(0, "c")]))
                .rejection(|error| *error == "full");
            assert_eq!(call.await, expected);
            assert_eq!(notes.at(), 300);
            assert_eq!(notes.count("A2"), 0, "nothing more starts");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn e14_a_rejected_hedge_that_runs_alone_exhausts_the_call() {
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).max_hedges(2));
    let call = hedge
        .call(work(&notes, [err(10, "p"), err(5, "full"), ok(0, "c")]))
        .rejection(|error| *error == "full");
    let report = call.settle().await;
    assert_eq!(report.result(), Some(&Err("p")), "the primary's failure stands");
    assert_eq!(report.not_hedged(), Some((Gate::Rejected, ms(15).into())));
    let others: Vec<_> = report.failures().iter().map(ToString::to_string).collect();
    assert_eq!(others, ["attempt 1: full"]);
}

#[tokio::test(start_paused = true)]
async fn e14_a_rejected_primary_is_judged_by_the_predicate_alone() {
    let policies = [RejectedHedge::Stop, RejectedHedge::Decide, RejectedHedge::Hedge];
    for rejected_hedge in policies {
        for hedge in both(Hedge::after(ms(50)).rejected_hedge(rejected_hedge)) {
            let notes = Notes::new();
            let script = [err(0, "full"), ok(20, "b")];
            let call = hedge.call(work(&notes, script)).rejection(|error| *error == "full");
            assert_eq!(call.await, Err("full"));
            let call = hedge
                .call(work(&notes, script))
                .rejection(|error| *error == "full")
                .handle(Answer::is_err);
            assert_eq!(call.await, Ok("b"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_hedge_starts_at_or_after_the_deadline() {
    for (deadline, primary, hedges, denied) in [
        (51, ok(200, "a"), 1, None),
        (50, ok(200, "a"), 0, Some(50)),
        (30, ok(200, "a"), 0, Some(50)),
        (30, err(20, "p"), 1, None),
        (30, err(40, "p"), 0, Some(40)),
    ] {
        let notes = Notes::new();
        let hedge = Hedge::after(ms(50));
        let call = hedge.call(work(&notes, [primary, ok(500, "b")])).deadline(ms(deadline));
        let report = call.settle().await;
        assert_eq!(report.hedges_started(), hedges, "{deadline}");
        let gate = denied.map(|at| (Gate::Deadline, ms(at).into()));
        assert_eq!(report.not_hedged(), gate, "{deadline}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_end_the_call() {
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)));
    let call = hedge.call(work(&notes, [ok(200, "a")])).deadline(ms(100));
    assert_eq!(call.await, Ok("a"));
    assert_eq!(notes.at(), 200);
}

/// A hedge that fails while the primary is being dropped, and so on: everything ends with the call
/// even if attempts make calls of their own.
#[tokio::test(start_paused = true)]
async fn a32_calls_inside_attempts_multiply_and_end_together() {
    let (notes, started) = (Notes::new(), RefCell::new(vec![]));
    let (outer, inner) = (Hedge::after(ms(50)), Hedge::after(ms(20)));
    let work = async |attempt: Attempt| {
        let outer = attempt.hedge_number();
        let work = async |attempt: Attempt| {
            let number = (outer, attempt.hedge_number());
            started.borrow_mut().push(number);
            let _guard = notes.guard(format!("{number:?}"));
            if number != (1, 1) {
                std::future::pending::<()>().await;
            }
            sleep(ms(30)).await;
            Answer::Ok("inner")
        };
        inner.call(work).await
    };
    assert_eq!(outer.call(work).await, Ok("inner"));
    assert_eq!(*started.borrow(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!(notes.at(), 100);
    assert_eq!(notes.lines().len(), 4, "all four are gone: {:?}", notes.lines());
}
