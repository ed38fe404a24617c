//! H8 to H12: what a hedge does instead of the same work.

use std::cell::RefCell;
use std::sync::Arc;

use hedgerow::testing::Tokens;
use hedgerow::{Gate, Hedge, NextAction, NoAction};

use crate::support::{Answer, Events, Notes, Scripted, act, both, err, ms, ok, work};

/// What a generator answers that runs nothing of its own.
pub(crate) type Next = Result<
    NextAction<NoAction<&'static str, &'static str>, &'static str, &'static str>,
    &'static str,
>;

#[tokio::test(start_paused = true)]
async fn h08_a_generator_error_ends_the_call() {
    let (notes, events, tokens) = (Notes::new(), Events::default(), Arc::new(Tokens::new(1)));
    let budget = Arc::clone(&tokens);
    let hedge = Hedge::after(ms(50)).observer(events.observer()).budget(budget);
    let call = hedge
        .call(work(&notes, [ok(500, "a"), ok(0, "b")]))
        .next_action(|_| -> Next { Err("no region") });
    assert_eq!(call.await, Err("no region"));
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @50"]);
    let expected = ["start(0)@0", "stop(0)@50", "end(0,cancelled,50)@50", "over(aborted)@50"];
    assert_eq!(events.text(), expected);
    assert_eq!(tokens.left(), 1, "no hedge started, so none is paid for");
}

#[tokio::test(start_paused = true)]
async fn h08_a_generator_error_belongs_to_no_attempt() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call =
            hedge.call(work(&notes, [ok(500, "a")])).next_action(|_| -> Next { Err("no region") });
        let report = call.settle().await;
        assert_eq!(report.result(), Some(&Err("no region")));
        assert_eq!((report.returned_attempt(), report.winner()), (None, None));
        assert_eq!(report.hedges_started(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn h09_a_generator_error_can_be_the_outcome_of_its_attempt() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [ok(500, "a"), ok(0, "never asked"), ok(20, "c")]))
            .next_action(|next| -> Next {
                Ok(match next.hedge_number() {
                    1 => NextAction::Answer(Err("no region")),
                    _ => NextAction::Repeat,
                })
            });
        let report = call.settle().await;
        assert_eq!(report.result(), Some(&Ok("c")));
        let failures: Vec<_> = report.failures().iter().map(ToString::to_string).collect();
        assert_eq!(failures, ["attempt 1: no region"]);
        assert_eq!(report.failures()[0].at(), ms(50).into());
        let expected = ["A0 starts @0", "A2 starts @50", "A2 ends @70", "A0 dropped @70"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h10_a_generator_stops_and_is_not_asked_again() {
    let events = Events::default();
    let hedge = Hedge::after(ms(50)).max_hedges(3).observer(events.observer());
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [ok(200, "a"), ok(0, "b")])).next_action(|next| -> Next {
        notes.note(format_args!("asked {}", next.hedge_number()));
        Ok(NextAction::Stop)
    });
    let report = call.settle().await;
    assert_eq!(report.result(), Some(&Ok("a")));
    assert_eq!(report.not_hedged(), Some((Gate::Stopped, ms(50).into())));
    assert_eq!(notes.lines(), ["A0 starts @0", "asked 1 @50", "A0 ends @200"]);
    assert_eq!(events.count("hedge"), 0);
}

#[tokio::test(start_paused = true)]
async fn h11_a_generator_stops_with_nothing_running() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(3)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [err(10, "p"), ok(0, "b")]))
            .next_action(|_| -> Next { Ok(NextAction::Stop) });
        assert_eq!(call.await, Err("p"));
        assert_eq!(notes.at(), 10);
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 ends @10"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h12_a_generator_is_asked_for_hedges_only() {
    for hedge in both(Hedge::after(ms(10)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [ok(100, "a"), ok(100, "b"), ok(100, "c")]))
            .next_action(|next| -> Next {
                notes.note(format_args!("asked {}", next.hedge_number()));
                Ok(NextAction::Repeat)
            });
        assert_eq!(call.await, Ok("a"));
        let expected = [
            "A0 starts @0",
            "asked 1 @10",
            "A1 starts @10",
            "asked 2 @20",
            "A2 starts @20",
            "A0 ends @100",
            "A1 dropped @100",
            "A2 dropped @100",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn t27_another_action_takes_the_place_of_the_work() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, worked) = (Notes::new(), RefCell::new(vec![]));
        let call = hedge
            .call(|attempt| {
                worked.borrow_mut().push(attempt.hedge_number());
                act(ok(500, "near"))
            })
            .next_action(|next| {
                let region = notes.clone().attempt(next.hedge_number(), act(ok(20, "far")));
                let region: Scripted = Box::pin(region);
                Ok::<_, &str>(NextAction::Run(region))
            });
        let answer: Answer = call.await;
        assert_eq!(answer, Ok("far"));
        assert_eq!(notes.lines(), ["A1 starts @50", "A1 ends @70"]);
        assert_eq!(*worked.borrow(), [0], "the work is not called for the hedge");
    }
}
