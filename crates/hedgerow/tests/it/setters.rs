//! What happens when something is said twice: hooks add up, everything else is replaced.

use std::cell::RefCell;

use hedgerow::{Delay, Discarded, Failure, Hedge, Judged, NextAction, NextHedge, Rules, hedged};
use hedgerow::{NoAction, NoHook};
use tokio::time::sleep;

use crate::h_generator::Next;
use crate::support::{Answer, Notes, both, err, ms, never, ok, work};

#[tokio::test(start_paused = true)]
async fn hooks_add_up_in_the_order_in_which_they_are_set() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [never(), ok(20, "b")]))
            .on_hedge(|_| notes.note("first"))
            .on_hedge_async(|_| async {
                sleep(ms(5)).await;
                notes.note("second");
            })
            .on_hedge(|_| notes.note("third, which waits for nothing"))
            .on_hedge_async(|_| async {
                sleep(ms(5)).await;
                notes.note("fourth");
            });
        assert_eq!(call.await, Ok("b"));
        let expected = [
            "A0 starts @0",
            "first @50",
            "third, which waits for nothing @50",
            "second @55",
            "fourth @60",
            "A1 starts @60",
            "A1 ends @80",
            "A0 dropped @80",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn every_other_setter_replaces_what_an_earlier_one_said() {
    for hedge in both(Hedge::default()) {
        let (notes, discarded) = (Notes::new(), RefCell::new(vec![]));
        let call = hedge
            .call(work(&notes, [err(10, "p"), err(10, "q")]))
            .handle(|_: &Answer| panic!("replaced"))
            .handle(Answer::is_err)
            .rejection(|_: &&str| panic!("replaced"))
            .rejection(|_: &&str| false)
            .exhausted(|_: &[Failure<&str, &str>]| panic!("replaced"))
            .exhausted(|_: &[Failure<&str, &str>]| 1)
            .next_action(|_| -> Next { panic!("replaced") })
            .next_action(|_| -> Next { Ok(NextAction::Repeat) })
            .delay_with(|_| panic!("replaced"))
            .delay_with(|_| Delay::OnFailure)
            .on_discard(|_: Discarded<&str, &str>| panic!("replaced"))
            .on_discard(|lost: Discarded<_, _>| discarded.borrow_mut().push(lost.outcome));
        assert_eq!(call.await, Err("q"));
        assert_eq!(*discarded.borrow(), [Err("p")]);
    }
}

/// Rules of a client's own: everything is handled, and the hedge fails at once.
struct Own;

impl Rules<&'static str, &'static str> for Own {
    type Action = NoAction<&'static str, &'static str>;
    type Hook = NoHook;

    fn handle(&mut self, _: Judged<'_, &'static str, &'static str>) -> bool {
        true
    }

    fn exhausted(&mut self, _: &[Failure<&'static str, &'static str>]) -> Option<u8> {
        Some(1)
    }

    fn next_action(&mut self, _: &NextHedge<'_>) -> Next {
        Ok(NextAction::Answer(Err("own")))
    }
}

#[tokio::test(start_paused = true)]
async fn setters_refine_the_rules_they_follow() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [ok(100, "a")])).rules(Own);
        assert_eq!(call.await, Err("own"));
        let call = hedge.call(work(&notes, [ok(100, "a")])).rules(Own);
        assert_eq!(call.exhausted(|_: &[Failure<_, _>]| 0).await, Ok("a"));
        let call = hedge.call(work(&notes, [ok(100, "a")])).rules(Own);
        assert_eq!(call.handle(Answer::is_err).await, Ok("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_owns_its_policy_changes_it() {
    let notes = Notes::new();
    let call = hedged(work(&notes, [never(), never(), ok(20, "c")]))
        .after(ms(10))
        .after(ms(50))
        .max_hedges(1)
        .policy(|hedge| hedge.max_hedges(2));
    assert_eq!(call.await, Ok("c"));
    assert_eq!(notes.at(), 120);
}
