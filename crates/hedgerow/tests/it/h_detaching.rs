//! H42 to H44: losers that run on in the background.

use std::sync::{Arc, Mutex};

use hedgerow::testing::ManualExecutor;
use hedgerow::{Attempt, CancellationToken, Discarded, Hedge, Losers, ManualClock};
use tokio::time::{sleep, timeout};

use crate::support::{
    Answer, Events, Notes, Scripted, caught, err, lock, ms, never, ok, panics, poll_once, work,
};

fn detaching() -> Hedge {
    Hedge::after(ms(50)).losers(Losers::Detach)
}

/// Keeps what is discarded, with the moment.
fn keeper(notes: &Notes) -> impl FnMut(Discarded<&'static str, &'static str>) + Send + 'static {
    let notes = notes.clone();
    move |lost| {
        let (number, outcome) = (lost.hedge_number, lost.outcome);
        notes.note(format_args!("discarded {number} {outcome:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn h42_a_detached_loser_ends_and_is_discarded_once() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = detaching().observer(events.observer());
    let call =
        hedge.call(work(&notes, [ok(500, "a"), ok(20, "b")])).on_discard(keeper(&notes)).spawned();
    assert_eq!(call.await, Ok("b"));
    notes.note("the caller has it");
    drop(hedge);
    sleep(ms(1_000)).await;
    let expected = [
        "A0 starts @0",
        "A1 starts @50",
        "A1 ends @70",
        "the caller has it @70",
        "A0 ends @500",
        "discarded 0 Ok(\"a\") @500",
    ];
    assert_eq!(notes.lines(), expected);
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@50",
        "end(1,won,20)@70",
        "win(1)@70",
        "over(accepted)@70",
        "end(0,discarded,500)@500",
    ];
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn h42_a_detached_losers_failure_is_discarded_and_its_panic_forgotten() {
    for (loser, discards) in [(err(500, "late"), 1), (panics(500, "late"), 0)] {
        let (notes, events) = (Notes::new(), Events::default());
        let hedge = detaching().observer(events.observer());
        let call =
            hedge.call(work(&notes, [loser, ok(20, "b")])).on_discard(keeper(&notes)).spawned();
        assert_eq!(call.await, Ok("b"));
        sleep(ms(1_000)).await;
        assert_eq!(notes.count("discarded 0"), discards);
        assert_eq!(events.count("end(0,discarded,500)@500"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn h42_detached_attempts_are_not_told_to_stop() {
    let (notes, tokens) = (Notes::new(), Arc::new(Mutex::new(vec![])));
    let kept = Arc::clone(&tokens);
    let mut script = work(&notes, [ok(500, "a"), ok(20, "b")]);
    let hedge = detaching();
    let call = hedge.call(move |attempt: Attempt| {
        lock(&kept).extend(attempt.token());
        script(attempt)
    });
    assert_eq!(call.spawned().await, Ok("b"));
    sleep(ms(1_000)).await;
    let fired: Vec<_> = lock(&tokens).iter().map(CancellationToken::is_cancelled).collect();
    assert_eq!(fired, [false, false]);
}

#[test]
fn h42_on_an_executor_of_ones_own() {
    let (clock, executor) = (ManualClock::new(), ManualExecutor::new());
    let notes = Notes::on(&clock);
    let hedge = detaching().clock(Arc::new(clock.clone()));
    let ends = [500, 20];
    let sleeps = clock.clone();
    let told = notes.clone();
    let work = move |attempt: Attempt| -> Scripted {
        let number = attempt.hedge_number();
        let wait = sleeps.sleep(ms(ends[usize::from(number)]));
        Box::pin(told.clone().attempt(number, async move {
            wait.await;
            Answer::Ok("value")
        }))
    };
    let call = hedge.call(work).on_discard(keeper(&notes)).spawned_on(Arc::new(executor.clone()));
    let mut call = Box::pin(call.into_future());
    let mut answered = false;
    while notes.at() < 600 {
        executor.run();
        if !answered && poll_once(call.as_mut()).is_ready() {
            notes.note("answered");
            answered = true;
        }
        clock.advance(ms(10));
    }
    let expected = [
        "A0 starts @0",
        "A1 starts @50",
        "A1 ends @70",
        "answered @70",
        "A0 ends @500",
        "discarded 0 Ok(\"value\") @500",
    ];
    assert_eq!(notes.lines(), expected);
    assert_eq!(executor.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn h43_detaching_needs_tasks() {
    let hedge = detaching();
    let refused = caught(async {
        drop(hedge.call(async |_| Answer::Ok("a")).into_future());
    });
    let text = refused.await.unwrap_err();
    assert!(text.starts_with("losers = detach: "), "{text}");
    assert!(text.contains("add `.spawned()` to the call"), "{text}");
    let settled = caught(async {
        drop(hedge.call(async |_| Answer::Ok("a")).settle().into_future());
    });
    assert_eq!(settled.await.unwrap_err(), text);
}

#[tokio::test(start_paused = true)]
async fn h44_a_cancelled_caller_leaves_detached_attempts_running() {
    let (notes, events, token) = (Notes::new(), Events::default(), CancellationToken::new());
    let hedge = detaching().observer(events.observer());
    let call = hedge
        .call(work(&notes, [ok(500, "a"), never()]))
        .on_discard(keeper(&notes))
        .spawned()
        .settle()
        .cancel_on(&token);
    let cancels = async {
        sleep(ms(40)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(async { call.await }, cancels);
    assert!(report.result().is_none());
    assert_eq!(notes.at(), 40);
    sleep(ms(1_000)).await;
    let expected = ["A0 starts @0", "A0 ends @500", "discarded 0 Ok(\"a\") @500"];
    assert_eq!(notes.lines(), expected);
    let expected = ["start(0)@0", "over(cancelled)@40", "end(0,discarded,500)@500"];
    assert_eq!(events.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn h44_a_dropped_call_leaves_detached_attempts_running() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = detaching().observer(events.observer());
    let call =
        hedge.call(work(&notes, [ok(500, "a"), ok(300, "b")])).on_discard(keeper(&notes)).spawned();
    assert!(timeout(ms(70), call).await.is_err());
    sleep(ms(1_000)).await;
    let expected = [
        "A0 starts @0",
        "A1 starts @50",
        "A1 ends @350",
        "discarded 1 Ok(\"b\") @350",
        "A0 ends @500",
        "discarded 0 Ok(\"a\") @500",
    ];
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("over(cancelled)@70"), 1);
    assert_eq!(events.count("end(1,discarded,300)@350"), 1);
    assert_eq!(events.count("end(0,discarded,500)@500"), 1);
}
