//! H36 and H37: asynchronous hooks.

use std::sync::Arc;

use hedgerow::testing::Tokens;
use hedgerow::{CancellationToken, Hedge, NextHedge};
use tokio::time::{sleep, timeout};

use crate::support::{Events, Notes, both, err, ms, never, ok, work};

/// A hook that takes this long, noted like an attempt.
fn hook(notes: &Notes, takes: u64) -> impl FnMut(&NextHedge<'_>) -> HookFuture {
    let notes = notes.clone();
    move |next| {
        let (notes, number) = (notes.clone(), next.hedge_number());
        Box::pin(async move {
            let guard = notes.guard(format!("hook {number}"));
            notes.note(format_args!("hook {number} starts"));
            sleep(ms(takes)).await;
            notes.note(format_args!("hook {number} ends"));
            std::mem::forget(guard);
        })
    }
}

type HookFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test(start_paused = true)]
async fn h36_a_pending_hook_is_dropped_when_the_primary_answers() {
    let (notes, events, tokens) = (Notes::new(), Events::default(), Arc::new(Tokens::new(1)));
    let budget = Arc::clone(&tokens);
    let hedge = Hedge::after(ms(50)).observer(events.observer()).budget(budget);
    let call =
        hedge.call(work(&notes, [ok(80, "a"), ok(0, "b")])).on_hedge_async(hook(&notes, 100));
    assert_eq!(call.await, Ok("a"));
    let expected = ["A0 starts @0", "hook 1 starts @50", "A0 ends @80", "hook 1 dropped @80"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("hedge"), 0);
    assert_eq!(tokens.left(), 1, "the token is given back");
}

#[tokio::test(start_paused = true)]
async fn h36_on_the_tick_of_the_answer_too() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call =
            hedge.call(work(&notes, [ok(80, "a"), ok(0, "b")])).on_hedge_async(hook(&notes, 30));
        assert_eq!(call.await, Ok("a"));
        assert_eq!(notes.at(), 80);
        assert_eq!(notes.count("A1"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn h37_a_hook_is_awaited_before_its_hedge_starts() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call =
            hedge.call(work(&notes, [ok(500, "a"), ok(20, "b")])).on_hedge_async(hook(&notes, 10));
        assert_eq!(call.await, Ok("b"));
        let expected = [
            "A0 starts @0",
            "hook 1 starts @50",
            "hook 1 ends @60",
            "A1 starts @60",
            "A1 ends @80",
            "A0 dropped @80",
        ];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h37_the_next_delay_counts_from_the_start_that_the_hook_put_off() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [never(), never(), ok(20, "c")]))
            .on_hedge_async(hook(&notes, 10));
        assert_eq!(call.await, Ok("c"));
        assert_eq!(notes.count("A1 starts @60"), 1);
        assert_eq!(notes.count("hook 2 starts @110"), 1);
        assert_eq!(notes.count("A2 starts @120"), 1);
        assert_eq!(notes.at(), 140);
    }
}

#[tokio::test(start_paused = true)]
async fn h37_a_failure_during_a_hook_earns_a_start_of_its_own() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [err(55, "p"), never(), ok(20, "c")]))
            .on_hedge_async(hook(&notes, 10));
        assert_eq!(call.await, Ok("c"));
        assert_eq!(notes.count("A1 starts @60"), 1);
        assert_eq!(notes.count("hook 2 starts @60"), 1);
        assert_eq!(notes.at(), 90);
    }
}

#[tokio::test(start_paused = true)]
async fn h36_a_pending_hook_is_dropped_when_the_caller_cancels_or_drops() {
    for dropped in [false, true] {
        let (notes, tokens) = (Notes::new(), Arc::new(Tokens::new(1)));
        let budget = Arc::clone(&tokens);
        let (hedge, token) = (Hedge::after(ms(50)).budget(budget), CancellationToken::new());
        let call = hedge
            .call(work(&notes, [never(), ok(0, "b")]))
            .on_hedge_async(hook(&notes, 100))
            .settle()
            .cancel_on(&token);
        if dropped {
            assert!(timeout(ms(70), call).await.is_err());
        } else {
            let cancels = async {
                sleep(ms(70)).await;
                token.cancel();
            };
            let (report, ()) = tokio::join!(async { call.await }, cancels);
            assert!(report.result().is_none());
        }
        assert_eq!(notes.count("hook 1 dropped @70"), 1);
        assert_eq!(notes.count("A0 dropped @70"), 1);
        assert_eq!(notes.count("A1"), 0);
        assert_eq!(tokens.left(), 1);
    }
}
