//! H38: a call that its caller drops; and the tokens that attempts keep.

use std::cell::RefCell;

use hedgerow::{Attempt, CancellationToken, Cancelled, Discarded, Hedge, Losers};
use tokio::time::{sleep, timeout};

use crate::support::{
    Answer, Notes, Scripted, act, both, caught, err, ms, never, ok, panics, told, work,
};

/// Work that keeps the token of each attempt.
fn keeping<const N: usize>(
    tokens: &RefCell<Vec<CancellationToken>>,
    script: [crate::support::Act; N],
) -> impl FnMut(Attempt) -> Scripted {
    move |attempt| {
        tokens.borrow_mut().extend(attempt.token());
        Box::pin(act(script[usize::from(attempt.hedge_number())]))
    }
}

fn fired(tokens: &RefCell<Vec<CancellationToken>>) -> Vec<bool> {
    let tokens = tokens.borrow();
    tokens.iter().map(CancellationToken::is_cancelled).collect()
}

#[tokio::test(start_paused = true)]
async fn h38_a_dropped_call_drops_its_attempts() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, []))
            .on_discard(|_: Discarded<_, _>| panic!("there is no outcome"));
        assert!(timeout(ms(70), call).await.is_err());
        let expected = ["A0 starts @0", "A1 starts @50", "A0 dropped @70", "A1 dropped @70"];
        assert_eq!(notes.lines(), expected);
        sleep(ms(10_000)).await;
        assert_eq!(notes.lines(), expected, "nothing happens afterwards");
    }
}

#[tokio::test(start_paused = true)]
async fn h38_the_tasks_of_a_spawned_call_stop_with_it() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50));
    let call = hedge.call(work(&notes, [])).spawned();
    assert!(timeout(ms(70), call).await.is_err());
    tokio::task::yield_now().await;
    assert_eq!(notes.lines()[2..], ["A0 dropped @70", "A1 dropped @70"]);

    let notes = Notes::new();
    let call = hedge.call(work(&notes, [never(), ok(20, "b")])).spawned();
    assert_eq!(call.await, Ok("b"));
    tokio::task::yield_now().await;
    assert_eq!(notes.lines()[2..], ["A1 ends @70", "A0 dropped @70"]);
}

#[tokio::test(start_paused = true)]
async fn h38_a_dropped_call_fires_the_tokens() {
    let (hedge, tokens) = (Hedge::after(ms(50)), RefCell::default());
    let call = hedge.call(keeping(&tokens, [never(), never()])).tokens();
    assert!(timeout(ms(70), call).await.is_err());
    assert_eq!(fired(&tokens), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn h38_failures_of_a_dropped_call_are_discarded_once() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let (notes, discarded) = (Notes::new(), RefCell::new(vec![]));
        let call = hedge.call(work(&notes, [err(10, "p"), err(10, "q"), never()])).on_discard(
            |lost: Discarded<_, _>| {
                discarded.borrow_mut().push((lost.hedge_number, lost.outcome));
            },
        );
        assert!(timeout(ms(70), call).await.is_err());
        assert_eq!(*discarded.borrow(), [(0, Err("p")), (1, Err("q"))]);
    }
}

#[tokio::test(start_paused = true)]
async fn t20_the_winners_token_stays_live() {
    for losers in [Losers::Drop, Losers::Join { grace: None }] {
        let hedge = Hedge::after(ms(50)).losers(losers);
        let tokens = RefCell::<Vec<CancellationToken>>::default();
        let work = |attempt: Attempt| {
            tokens.borrow_mut().extend(attempt.token());
            async move {
                if attempt.hedge_number() == 1 {
                    sleep(ms(20)).await;
                    return Answer::Ok("b");
                }
                told(&attempt).await;
                std::future::ready(Err("told to stop")).await
            }
        };
        assert_eq!(hedge.call(work).tokens().await, Ok("b"));
        assert_eq!(fired(&tokens), [true, false], "{losers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn t40_a_panic_fires_the_tokens() {
    let (hedge, tokens) = (Hedge::after(ms(50)), RefCell::default());
    let call = hedge.call(keeping(&tokens, [never(), panics(20, "boom")])).tokens();
    assert_eq!(caught(call).await, Err("boom".to_owned()));
    assert_eq!(fired(&tokens), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn t18_each_attempt_has_a_token_of_its_own_that_follows_the_callers() {
    let (hedge, tokens, cancel) =
        (Hedge::after(ms(50)), RefCell::default(), CancellationToken::new());
    let call = hedge.call(keeping(&tokens, [never(), never()])).settle().cancel_on(&cancel);
    let cancels = async {
        sleep(ms(70)).await;
        assert_eq!(fired(&tokens), [false, false]);
        tokens.borrow()[1].cancel();
        assert_eq!(fired(&tokens), [false, true], "one token each");
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(async { call.await }, cancels);
    assert!(report.result().is_none());
    assert_eq!(fired(&tokens), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn t18_a_call_that_keeps_no_tokens_drops_its_attempts_all_the_same() {
    let (hedge, tokens) = (Hedge::after(ms(50)), RefCell::default());
    let call = hedge.call(keeping(&tokens, [never(), ok(20, "b")]));
    assert_eq!(call.await, Ok("b"));
    assert_eq!(tokens.borrow().len(), 0);
}

#[derive(Debug, PartialEq)]
enum Own {
    Cancelled,
}

impl From<Cancelled> for Own {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

#[tokio::test(start_paused = true)]
async fn t19_a_cancelled_call_returns_the_callers_own_error() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, cancel) = (Notes::new(), CancellationToken::new());
        let work = |attempt: Attempt| {
            let pending = std::future::pending::<Result<u32, Own>>();
            notes.clone().attempt(attempt.hedge_number(), pending)
        };
        let call = hedge.call(work).cancel_on(&cancel);
        let cancels = async {
            sleep(ms(70)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(async { call.await }, cancels);
        assert_eq!(result, Err(Own::Cancelled));
        assert_eq!(notes.at(), 70);
        assert_eq!(notes.count("A0 dropped @70"), 1);
        assert_eq!(notes.count("A1 dropped @70"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn e01_a_call_that_is_cancelled_already_starts_nothing() {
    for hedge in both(Hedge::after(ms(50))) {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let work = async |_| -> Result<u32, Own> { panic!("nothing starts") };
        let result = hedge.call(work).cancel_on(&cancel).await;
        assert_eq!(result, Err(Own::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn a16_an_outcome_of_the_same_moment_wins_over_the_token() {
    for (answer, expected) in [(ok(100, "a"), Some(Ok("a"))), (err(100, "p"), None)] {
        let (notes, cancel) = (Notes::new(), CancellationToken::new());
        let hedge = Hedge::after(ms(500));
        let call = hedge.call(work(&notes, [answer, ok(0, "b")])).settle().cancel_on(&cancel);
        let mut call = Box::pin(call.into_future());
        assert!(crate::support::poll_once(call.as_mut()).is_pending());
        tokio::time::advance(ms(100)).await;
        cancel.cancel();
        let report = call.await;
        assert_eq!(report.result().copied(), expected);
        assert_eq!(notes.lines(), ["A0 starts @0", "A0 ends @100"]);
    }
}
