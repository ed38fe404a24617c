//! H45: outcomes that nobody will see go to `on_discard`, each once, before the result is
//! returned.

use std::cell::RefCell;

use hedgerow::{Discarded, Exhausted, Hedge};

use crate::support::{Answer, Notes, both, caught, err, ms, never, ok, transient, work};

#[tokio::test(start_paused = true)]
async fn h45_handled_values_are_discarded_before_the_result_is_returned() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [ok(10, "bad 0"), ok(10, "bad 1"), ok(10, "c")]))
            .handle(transient)
            .on_discard(|lost: Discarded<_, &str>| {
                notes.note(format_args!("discards {} {:?}", lost.hedge_number, lost.outcome));
            });
        let answer = call.await;
        notes.note("the caller has it");
        assert_eq!(answer, Ok("c"));
        let expected = [
            "A0 starts @0",
            "A0 ends @10",
            "A1 starts @10",
            "A1 ends @20",
            "A2 starts @20",
            "A2 ends @30",
            "discards 0 Ok(\"bad 0\") @30",
            "discards 1 Ok(\"bad 1\") @30",
            "the caller has it @30",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h45_what_is_returned_is_not_discarded() {
    for (exhausted, returned, discarded) in [
        (Exhausted::Primary, Err("p"), [(1, Err("q"))]),
        (Exhausted::First, Err("q"), [(0, Err("p"))]),
        (Exhausted::Last, Err("p"), [(1, Err("q"))]),
    ] {
        for hedge in both(Hedge::after(ms(50)).exhausted(exhausted)) {
            let (notes, seen) = (Notes::new(), RefCell::new(vec![]));
            let call = hedge.call(work(&notes, [err(100, "p"), err(10, "q")])).on_discard(
                |lost: Discarded<_, _>| {
                    seen.borrow_mut().push((lost.hedge_number, lost.outcome));
                },
            );
            let answer: Answer = call.await;
            assert_eq!(answer, returned);
            assert_eq!(*seen.borrow(), discarded);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h45_a_report_keeps_the_failures_instead() {
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).max_hedges(2));
    let call = hedge
        .call(work(&notes, [ok(10, "bad"), err(10, "q"), ok(10, "c")]))
        .handle(transient)
        .on_discard(|_: Discarded<_, _>| panic!("the report shows them"));
    let report = call.settle().await;
    let kept: Vec<_> = report.failures().iter().map(|failure| failure.outcome().copied()).collect();
    assert_eq!(kept, [Some(Ok("bad")), Some(Err("q"))]);
}

#[tokio::test(start_paused = true)]
async fn a20_a_loser_that_is_dropped_has_no_outcome_to_discard() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [never(), ok(20, "b")]))
            .on_discard(|_: Discarded<_, _>| panic!("there is nothing"));
        assert_eq!(call.await, Ok("b"));
    }
}

#[tokio::test(start_paused = true)]
async fn a21_a_discard_hook_that_panics_is_still_given_the_others() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let (notes, seen) = (Notes::new(), RefCell::new(vec![]));
        let call = hedge.call(work(&notes, [err(10, "p"), err(10, "q"), ok(10, "c")])).on_discard(
            |lost: Discarded<&str, &str>| {
                seen.borrow_mut().push(lost.hedge_number);
                panic!("discard {}", lost.hedge_number);
            },
        );
        assert_eq!(caught(call).await, Err("discard 0".to_owned()));
        // The winner's value, too: with the panic on its way nobody will see it.
        assert_eq!(*seen.borrow(), [0, 1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a21_a_panic_elsewhere_does_not_lose_retained_failures() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let (notes, seen) = (Notes::new(), RefCell::new(vec![]));
        let call = hedge
            .call(work(&notes, [err(10, "p"), crate::support::panics(10, "boom")]))
            .on_discard(|lost: Discarded<&str, &str>| {
                seen.borrow_mut().push(lost.hedge_number);
            });
        assert_eq!(caught(call).await, Err("boom".to_owned()));
        assert_eq!(*seen.borrow(), [0]);
    }
}
