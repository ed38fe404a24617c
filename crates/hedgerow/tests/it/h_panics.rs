//! H1 to H7: panics in attempts, predicates, hooks and delay functions.

use hedgerow::{Delay, End, Exhausted, Hedge, Origin, Panics};

use crate::support::{Answer, Notes, both, caught, err, ms, never, ok, panics, work};

#[tokio::test(start_paused = true)]
async fn h01_an_attempt_panics_and_no_hedge_starts() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let result = caught(hedge.call(work(&notes, [panics(10, "boom"), never()]))).await;
        assert_eq!(result, Err("boom".to_owned()));
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 panics @10"]);
        assert_eq!(notes.at(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn h02_an_attempt_panics_and_the_others_are_dropped_first() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let work = work(&notes, [ok(500, "a"), panics(10, "boom")]);
        assert_eq!(caught(hedge.call(work)).await, Err("boom".to_owned()));
        notes.note("the caller has it");
        let expected = [
            "A0 starts @0",
            "A1 starts @50",
            "A1 panics @60",
            "A0 dropped @60",
            "the caller has it @60",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h03_a_panic_can_be_a_failure() {
    let hedge = Hedge::after(ms(50)).panics(Panics::AsFailure);
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [panics(10, "boom"), ok(20, "b")]));
    let report = call.settle().await;
    assert_eq!(notes.at(), 30);
    assert_eq!(report.result(), Some(&Ok("b")));
    assert_eq!(report.returned_attempt(), Some(1));
    let [failure] = report.failures() else { panic!("one failure: {:?}", report.failures()) };
    assert_eq!(failure.hedge_number(), 0);
    assert_eq!(failure.at(), ms(10).into());
    assert_eq!(failure.outcome(), None);
    assert_eq!(failure.to_string(), "attempt 0: it panicked");
    let [primary, hedge] = report.attempts() else {
        panic!("two attempts: {:?}", report.attempts())
    };
    assert_eq!(primary.ended, Some((ms(10).into(), End::Panicked)));
    assert_eq!((hedge.started, hedge.origin), (ms(10).into(), Origin::Failure));
}

#[tokio::test(start_paused = true)]
async fn h04_the_panic_that_stands_for_all_failures_reaches_the_caller() {
    for (exhausted, expected) in [
        (Exhausted::Primary, "the primary's"),
        (Exhausted::First, "the hedge's"),
        (Exhausted::Last, "the primary's"),
    ] {
        let hedge = Hedge::after(ms(50)).panics(Panics::AsFailure).exhausted(exhausted);
        let notes = Notes::new();
        let script = [panics(100, "the primary's"), panics(10, "the hedge's")];
        let result = caught(hedge.call(work(&notes, script))).await;
        assert_eq!(result, Err(expected.to_owned()), "{exhausted:?}");
        assert_eq!(notes.at(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn h04_a_panic_that_does_not_stand_for_all_failures_stays_hidden() {
    let hedge = Hedge::after(ms(50)).panics(Panics::AsFailure);
    let notes = Notes::new();
    let result = caught(hedge.call(work(&notes, [err(100, "p"), panics(10, "boom")]))).await;
    assert_eq!(result, Ok(Err("p")));
    assert_eq!(notes.at(), 100);
}

#[tokio::test(start_paused = true)]
async fn h05_a_predicate_panics() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [err(60, "p"), never()]))
            .handle(|_: &Answer| panic!("predicate"));
        assert_eq!(caught(call).await, Err("predicate".to_owned()));
        let expected = ["A0 starts @0", "A1 starts @50", "A0 ends @60", "A1 dropped @60"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h06_a_hook_panics() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call =
            hedge.call(work(&notes, [ok(500, "a"), ok(0, "b")])).on_hedge(|_| panic!("hook"));
        assert_eq!(caught(call).await, Err("hook".to_owned()));
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @50"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h06_an_asynchronous_hook_panics() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(500, "a"), ok(0, "b")])).on_hedge_async(|_| async {
            tokio::time::sleep(ms(7)).await;
            panic!("hook")
        });
        assert_eq!(caught(call).await, Err("hook".to_owned()));
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @57"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h07_a_delay_function_panics() {
    for hedge in both(Hedge::default()) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [ok(500, "a"), ok(0, "b")]))
            .delay_with(|_| -> Delay { panic!("delay") });
        assert_eq!(caught(call).await, Err("delay".to_owned()));
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @0"]);
    }
}

#[tokio::test(start_paused = true)]
async fn t41_a_generator_panics_and_the_token_is_given_back() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50)).budget(notes.budget());
    let call = hedge
        .call(work(&notes, [ok(500, "a"), ok(0, "b")]))
        .next_action(|_| -> crate::h_generator::Next { panic!("generator") });
    assert_eq!(caught(call).await, Err("generator".to_owned()));
    let expected =
        ["A0 starts @0", "takes a token @50", "gives the token back @50", "A0 dropped @50"];
    assert_eq!(notes.lines(), expected);
}
