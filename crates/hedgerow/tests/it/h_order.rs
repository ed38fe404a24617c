//! H13 and H14: when the delay is asked for, and what happens in which order when a hedge starts.

use hedgerow::{Delay, Hedge, NextAction};

use crate::h_generator::Next;
use crate::support::{Notes, both, err, ms, never, ok, work};

#[tokio::test(start_paused = true)]
async fn h13_the_delay_is_asked_for_once_a_hedge_right_after_the_previous_start() {
    for hedge in both(Hedge::default().max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(500, "a"), err(30, "q"), ok(20, "c")])).delay_with(
            |next| {
                assert_eq!(next.origin(), None, "it is only asked for");
                notes.note(format_args!("asked {}", next.hedge_number()));
                match next.hedge_number() {
                    1 => Delay::After(ms(100)),
                    _ => Delay::OnFailure,
                }
            },
        );
        assert_eq!(call.await, Ok("c"));
        let expected = [
            "A0 starts @0",
            "asked 1 @0",
            "A1 starts @100",
            "asked 2 @100",
            "A1 ends @130",
            "A2 starts @130",
            "A2 ends @150",
            "A0 dropped @150",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h13_the_delay_is_not_asked_for_when_nothing_more_can_start() {
    for hedge in both(Hedge::default().max_hedges(0)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [err(30, "p")]))
            .delay_with(|_| panic!("there is no next hedge"));
        assert_eq!(call.await, Err("p"));
    }
    for hedge in both(Hedge::default()) {
        let notes = Notes::new();
        let call =
            hedge.call(work(&notes, [ok(0, "a")])).delay_with(|_| panic!("the call is decided"));
        assert_eq!(call.await, Ok("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn h13_a_failure_before_the_delay_does_not_ask_twice() {
    for primary in [0, 30] {
        for hedge in both(Hedge::default()) {
            let notes = Notes::new();
            let call =
                hedge.call(work(&notes, [err(primary, "p"), ok(20, "b")])).delay_with(|next| {
                    notes.note(format_args!("asked {}", next.hedge_number()));
                    Delay::After(ms(100))
                });
            assert_eq!(call.await, Ok("b"));
            assert_eq!(notes.count("asked 1 @0"), 1);
            assert_eq!(notes.count("asked"), 1);
            assert_eq!(notes.at(), primary + 20);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h14_a_start_goes_token_generator_hook_event_work() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50)).budget(notes.budget()).observer(notes.observer());
    let mut script = work(&notes, [never(), ok(20, "b")]);
    let call = hedge
        .call(|attempt| {
            notes.note(format_args!("work {}", attempt.hedge_number()));
            script(attempt)
        })
        .next_action(|_| -> Next {
            notes.note("generator");
            Ok(NextAction::Repeat)
        })
        .on_hedge(|_| notes.note("hook"));
    assert_eq!(call.await, Ok("b"));
    let expected = [
        "start(0) @0",
        "work 0 @0",
        "A0 starts @0",
        "takes a token @50",
        "generator @50",
        "hook @50",
        "hedge(1,delay) @50",
        "work 1 @50",
        "A1 starts @50",
        "A1 ends @70",
        "end(1,won,20) @70",
        "win(1) @70",
        "stop(0) @70",
        "end(0,cancelled,70) @70",
        "A0 dropped @70",
        "pays in @70",
        "over(accepted) @70",
    ];
    assert_eq!(notes.lines(), expected);
}
