//! H34 and H35, and the end events of each way to end: what an observer is told.

use std::sync::Arc;

use hedgerow::testing::Tokens;
use hedgerow::{CancellationToken, Hedge, RejectedHedge};
use tokio::time::{sleep, timeout};

use crate::support::{Events, Notes, caught, err, ms, never, ok, panics, work};

#[tokio::test(start_paused = true)]
async fn h34_when_everything_fails_each_attempt_has_an_event() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).max_hedges(3).observer(events.observer());
    let script = [err(200, "p"), err(10, "q"), err(10, "r"), err(10, "s")];
    assert_eq!(hedge.call(work(&notes, script)).await, Err("p"));
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@50",
        "end(1,failed,10)@60",
        "hedge(2,failure)@60",
        "end(2,failed,10)@70",
        "hedge(3,failure)@70",
        "end(3,failed,10)@80",
        "end(0,failed,200)@200",
        "exhausted(0)@200",
        "over(exhausted)@200",
    ];
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn h35_a_cancelled_loser_has_an_event() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(150)).observer(events.observer());
    let script = [ok(400, "a"), ok(100, "b")];
    assert_eq!(hedge.call(work(&notes, script)).await, Ok("b"));
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@150",
        "end(1,won,100)@250",
        "win(1)@250",
        "stop(0)@250",
        "end(0,cancelled,250)@250",
        "over(accepted)@250",
    ];
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn e14_a_rejected_hedge_has_an_event_and_ends_launching() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50))
        .max_hedges(2)
        .rejected_hedge(RejectedHedge::Stop)
        .observer(events.observer());
    let script = [ok(300, "a"), err(0, "full"), ok(0, "c")];
    let call = hedge.call(work(&notes, script)).rejection(|error| *error == "full");
    assert_eq!(call.await, Ok("a"));
    assert_eq!(events.count("end(1,rejected,0)@50"), 1);
    assert_eq!(events.count("hedge"), 1);
}

#[tokio::test(start_paused = true)]
async fn a33_a_refused_hedge_has_an_event_with_its_reason() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50))
        .max_hedges(3)
        .budget(Arc::new(Tokens::new(0)))
        .observer(events.observer());
    let call = hedge.call(work(&notes, [ok(300, "a"), ok(0, "b")]));
    assert_eq!(call.await, Ok("a"));
    assert_eq!(events.count("denied"), 1, "it is not asked again");
    assert_eq!(events.count("denied(1,budget)@50"), 1);
}

#[tokio::test(start_paused = true)]
async fn h02_a_panic_is_the_end_of_its_attempt_and_of_the_call() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).observer(events.observer());
    let call = hedge.call(work(&notes, [never(), panics(10, "boom")]));
    assert_eq!(caught(call).await, Err("boom".to_owned()));
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@50",
        "end(1,panicked,10)@60",
        "stop(0)@60",
        "end(0,cancelled,60)@60",
        "over(aborted)@60",
    ];
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn h38_cancelled_and_dropped_calls_tell_the_same_events() {
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@50",
        "stop(0)@70",
        "stop(1)@70",
        "end(0,cancelled,70)@70",
        "end(1,cancelled,20)@70",
        "over(cancelled)@70",
    ];
    let (notes, events, token) = (Notes::new(), Events::default(), CancellationToken::new());
    let hedge = Hedge::after(ms(50)).observer(events.observer());
    let call = hedge.call(work(&notes, [])).settle().cancel_on(&token);
    let cancels = async {
        sleep(ms(70)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(async { call.await }, cancels);
    assert!(report.result().is_none());
    assert_eq!(events.text(), expected);

    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).observer(events.observer());
    let call = hedge.call(work(&notes, []));
    assert!(timeout(ms(70), call).await.is_err());
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_polled_is_over_without_an_attempt() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).observer(events.observer());
    drop(hedge.call(work(&notes, [])).into_future());
    assert_eq!(events.text(), ["over(cancelled)@0"]);
    assert_eq!(notes.lines(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn calls_have_numbers_of_their_own() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).observer(events.observer());
    for _ in 0..2 {
        assert_eq!(hedge.call(work(&notes, [ok(0, "a")])).await, Ok("a"));
    }
    let calls: Vec<u64> = events.all().iter().map(|event| event.call).collect();
    let (first, second) = calls.split_at(4);
    assert_eq!(first, [first[0]; 4]);
    assert_eq!(second, [second[0]; 4]);
    assert_ne!(first[0], second[0]);
}
