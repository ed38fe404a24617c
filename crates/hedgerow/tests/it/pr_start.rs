//! PR-01, 02, 05, 22, 25, 31 and 35: when attempts start and who answers.

use std::sync::Arc;

use hedgerow::testing::Tokens;
use hedgerow::{Delay, Gate, Hedge, NextAction};

use crate::h_generator::Next;
use crate::support::{Events, Notes, both, err, ms, never, ok, transient, work};

#[tokio::test(start_paused = true)]
async fn pr_01_a_failed_attempt_brings_the_next_one_forward() {
    for hedge in both(Hedge::after(ms(500)).max_hedges(2)) {
        let notes = Notes::new();
        let script = [err(20, "p"), ok(30, "b"), ok(0, "c")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("b"));
        let expected = ["A0 starts @0", "A0 ends @20", "A1 starts @20", "A1 ends @50"];
        assert_eq!(notes.lines(), expected);

        let notes = Notes::new();
        let script = [err(20, "p"), never(), ok(10, "c")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("c"));
        assert_eq!(notes.count("A1 starts @20"), 1);
        assert_eq!(notes.count("A2 starts @520"), 1, "a delay after A1's start");
        assert_eq!(notes.at(), 530);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_02_no_delay_starts_all_attempts_together() {
    for delay in [Delay::Immediately, Delay::After(ms(0))] {
        for hedge in both(Hedge::default().delay(delay).max_hedges(2)) {
            let notes = Notes::new();
            let script = [ok(100, "a"), ok(40, "b"), ok(70, "c")];
            assert_eq!(hedge.call(work(&notes, script)).await, Ok("b"));
            let expected = [
                "A0 starts @0",
                "A1 starts @0",
                "A2 starts @0",
                "A1 ends @40",
                "A0 dropped @40",
                "A2 dropped @40",
            ];
            assert_eq!(notes.lines(), expected);
        }
    }
}

/// One target, then no more.
fn one_target(notes: &Notes) -> impl FnMut(&hedgerow::NextHedge<'_>) -> Next {
    let notes = notes.clone();
    move |_| {
        notes.note("asked for a target");
        Ok(NextAction::Stop)
    }
}

#[tokio::test(start_paused = true)]
async fn pr_05_no_waiting_when_nothing_more_can_start() {
    for hedge in both(Hedge::after(ms(1_000)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [err(10, "p")])).next_action(one_target(&notes));
        assert_eq!(call.await, Err("p"));
        assert_eq!(notes.at(), 10);

        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(1_500, "a")])).next_action(one_target(&notes));
        assert_eq!(call.await, Ok("a"));
        let expected = ["A0 starts @0", "asked for a target @1000", "A0 ends @1500"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_22_a_quick_error_does_not_beat_a_later_success() {
    for hedge in both(Hedge::after(ms(100))) {
        let notes = Notes::new();
        let script = [ok(400, "a"), err(10, "q"), ok(0, "c")];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("a"));
        assert_eq!(notes.at(), 400);
        assert_eq!(notes.count("A2"), 0);

        let notes = Notes::new();
        let hedge = hedge.max_hedges(2);
        let script = [ok(400, "a"), err(10, "q"), never()];
        assert_eq!(hedge.call(work(&notes, script)).await, Ok("a"));
        assert_eq!(notes.count("A2 starts @110"), 1);
        assert_eq!(notes.at(), 400);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_22_the_error_shows_in_events_only() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(100)).observer(events.observer());
    let call = hedge.call(work(&notes, [ok(400, "a"), err(10, "q")]));
    assert_eq!(call.await, Ok("a"));
    assert_eq!(events.count("end(1,failed,10)@110"), 1);
}

#[tokio::test(start_paused = true)]
async fn pr_25_a_final_error_ends_the_race_at_once() {
    for hedge in both(Hedge::after(ms(100)).max_hedges(2)) {
        let notes = Notes::new();
        let script = [err(30, "fatal"), ok(0, "b")];
        let call = hedge.call(work(&notes, script)).handle(transient);
        assert_eq!(call.await, Err("fatal"));
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 ends @30"]);

        let notes = Notes::new();
        let script = [never(), err(20, "fatal"), ok(0, "c")];
        let call = hedge.call(work(&notes, script)).handle(transient);
        assert_eq!(call.await, Err("fatal"));
        let expected = ["A0 starts @0", "A1 starts @100", "A1 ends @120", "A0 dropped @120"];
        assert_eq!(notes.lines(), expected);
    }
}

/// What starts, and what comes back, for each kind of outcome of the primary that no rule names.
#[tokio::test(start_paused = true)]
async fn pr_25_the_default_for_every_kind_of_outcome() {
    for (hedge_rejections, primary, starts_another) in [
        (false, ok(10, "value"), false),
        (false, ok(10, "bad value"), false),
        (false, err(10, "some error"), true),
        (false, err(10, "full"), false),
        (true, err(10, "full"), true),
        (true, err(10, "some error"), true),
    ] {
        for hedge in both(Hedge::after(ms(100)).hedge_rejections(hedge_rejections)) {
            let notes = Notes::new();
            let call =
                hedge.call(work(&notes, [primary, ok(0, "b")])).rejection(|error| *error == "full");
            assert_eq!(call.await == Ok("b"), starts_another);
            assert_eq!(notes.count("A1") > 0, starts_another);
            assert_eq!(notes.at(), 10);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_31_exactly_one_event_for_each_hedge_that_starts() {
    let cases = [
        ("both fail", [err(10, "p"), err(10, "q")], ms(100), 9, 1),
        ("quick primary", [ok(5, "a"), never()], ms(100), 9, 0),
        ("no budget", [ok(300, "a"), never()], ms(100), 0, 0),
        ("ready at once", [ok(0, "a"), never()], ms(0), 9, 0),
        ("all at once", [ok(5, "a"), never()], ms(0), 9, 1),
    ];
    for (what, script, delay, tokens, hedges) in cases {
        let notes = Notes::new();
        let hedge =
            Hedge::after(delay).budget(Arc::new(Tokens::new(tokens))).observer(notes.observer());
        let answered = hedge.call(work(&notes, script)).await.is_ok();
        assert_eq!(answered, what != "both fail");
        let lines = notes.lines();
        assert_eq!(notes.count("hedge("), hedges, "{what}");
        assert_eq!(notes.count("A1 starts"), hedges, "{what}");
        let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
        assert_eq!(at("hedge(1").is_some(), hedges == 1);
        if hedges == 1 {
            assert!(at("hedge(1") < at("A1 starts"), "{what}: told before it starts");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_35_an_empty_budget_does_not_hold_up_a_failure() {
    for hedge in both(Hedge::after(ms(1_000)).max_hedges(2)) {
        let notes = Notes::new();
        let hedge = hedge.budget(Arc::new(Tokens::new(0)));
        let call = hedge.call(work(&notes, [err(5, "p"), ok(0, "b")]));
        assert_eq!(call.await, Err("p"));
        assert_eq!(notes.at(), 5);
        assert_eq!(notes.count("A1"), 0);

        let notes = Notes::new();
        let call = hedge.call(work(&notes, [err(5, "p"), ok(0, "b")]));
        let report = call.settle().await;
        assert_eq!(report.not_hedged(), Some((Gate::Budget, ms(5).into())));
        assert_eq!(notes.at(), 5);
    }
}
