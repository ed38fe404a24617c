//! T42, T43, H27 to H31: the first item of a stream decides.

use std::cell::RefCell;
use std::future::ready;

use futures_util::StreamExt;
use hedgerow::stream::{HedgedStream, Opening};
use hedgerow::{Discarded, Exhausted, Hedge, Losers, NextAction, Panics};

use crate::streams::{Items, breaks, ends, fails, item, open, play, read, silent};
use crate::support::{Events, Notes, both, caught, ms};

/// What `handle` is asked about, and what a call of scripted streams is awaited for.
type Opened = Result<HedgedStream<Items>, &'static str>;

/// Handles errors, and streams whose first item begins with `bad`.
fn refused(opened: &Opened) -> bool {
    match opened {
        Ok(stream) => stream.committed().is_some_and(|first| first.starts_with("bad")),
        Err(error) => !error.starts_with("fatal"),
    }
}

#[tokio::test(start_paused = true)]
async fn h27_the_first_item_decides() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![item(200, "slow")], vec![item(20, "b"), item(40, "c")]];
        let stream = hedge.stream(open(&notes, script)).await.unwrap();
        notes.note("the caller has it");
        assert_eq!(read(&notes, stream).await, [(Ok("b"), 70), (Ok("c"), 90)]);
        assert_eq!(notes.lines(), ["S0 dropped @70", "the caller has it @70", "S1 dropped @90"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h27_opening_takes_time_and_is_part_of_the_attempt() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let stream = hedge
            .stream(async |attempt| {
                let number = attempt.hedge_number();
                tokio::time::sleep(ms(if number == 0 { 100 } else { 10 })).await;
                Ok(play(&notes, number, vec![item(5, "first"), silent()]))
            })
            .await;
        assert_eq!(stream.unwrap().next().await, Some(Ok("first")));
        assert_eq!(notes.at(), 65);
    }
}

#[tokio::test(start_paused = true)]
async fn h28_a_loser_that_has_an_item_in_the_same_tick_is_closed() {
    let script = [vec![item(100, "a"), ends(120)], vec![item(50, "b"), silent()]];
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge
            .stream(open(&notes, script.clone()))
            .on_discard(|_: Discarded<_, _>| panic!("its item was never read"));
        assert_eq!(read(&notes, call.await.unwrap()).await, [(Ok("a"), 100)]);
        assert_eq!(notes.lines(), ["S1 dropped @100", "S0 dropped @120"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h28_t42_a_joined_loser_with_an_item_goes_to_on_discard_once_and_is_closed() {
    let hedge = Hedge::after(ms(50)).losers(Losers::Join { grace: None });
    let (notes, seen) = (Notes::new(), RefCell::new(vec![]));
    let script = [vec![item(100, "a"), ends(120)], vec![item(50, "b"), silent()]];
    let call = hedge.stream(open(&notes, script)).on_discard(|lost: Discarded<_, _>| {
        let stream: HedgedStream<Items> = lost.outcome.unwrap();
        seen.borrow_mut().push((lost.hedge_number, stream.committed().copied()));
        notes.note("discards");
    });
    let stream = call.await.unwrap();
    assert_eq!(*seen.borrow(), [(1, Some("b"))]);
    assert_eq!(notes.lines(), ["discards @100", "S1 dropped @100"]);
    assert_eq!(read(&notes, stream).await, [(Ok("a"), 100)]);
}

#[tokio::test(start_paused = true)]
async fn a_joined_stream_that_does_not_listen_is_waited_for_until_it_commits() {
    for (grace, at) in [(None, 300), (Some(ms(40)), 110)] {
        let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).losers(Losers::Join { grace }));
        let script = [vec![item(300, "a"), silent()], vec![item(20, "b"), silent()]];
        let mut stream = hedge.stream(open(&notes, script)).await.unwrap();
        assert_eq!(notes.lines(), [format!("S0 dropped @{at}")]);
        assert_eq!(stream.next().await, Some(Ok("b")));
    }
}

#[tokio::test(start_paused = true)]
async fn t42_the_stream_of_a_loser_that_has_begun_is_closed() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [
            vec![item(10, "keep-alive"), item(300, "a")],
            vec![item(10, "keep-alive"), item(20, "b")],
        ];
        let call = hedge.stream(open(&notes, script)).commit_when(crate::streams::says_something);
        let mut stream = call.await.unwrap();
        assert_eq!(notes.lines(), ["S0 dropped @70"]);
        assert_eq!(stream.next().await, Some(Ok("keep-alive")));
        drop(stream);
        assert_eq!(notes.lines(), ["S0 dropped @70", "S1 dropped @70"]);
    }
}

#[tokio::test(start_paused = true)]
async fn h29_an_error_before_the_first_item_is_a_failure_and_after_it_the_consumers() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(3)) {
        let (notes, events) = (Notes::new(), Events::default());
        let hedge = hedge.observer(events.observer());
        let script = [vec![fails(10, "p")], vec![item(10, "b"), fails(20, "broken"), ends(90)]];
        let stream = hedge.stream(open(&notes, script)).await.unwrap();
        assert_eq!(read(&notes, stream).await, [(Ok("b"), 20), (Err("broken"), 30)]);
        assert_eq!(events.count("hedge"), 1, "an error after the commit starts nothing");
        assert_eq!(notes.at(), 100, "the rest of the stream was read");
    }
}

#[tokio::test(start_paused = true)]
async fn h29_when_no_attempt_commits_the_call_fails_before_there_is_a_stream() {
    for hedge in both(Hedge::after(ms(50)).exhausted(Exhausted::First)) {
        let notes = Notes::new();
        let script = [vec![fails(60, "p")], vec![fails(5, "q")]];
        assert_eq!(hedge.stream(open(&notes, script)).await.unwrap_err(), "q");
        let refuses = async |_| Err::<Items, _>("no connection");
        assert_eq!(hedge.stream(refuses).await.unwrap_err(), "no connection");
    }
}

#[tokio::test(start_paused = true)]
async fn h30_a_stream_that_ends_without_an_item_is_accepted() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![ends(10)], vec![item(0, "b")]];
        let stream = hedge.stream(open(&notes, script)).await.unwrap();
        assert_eq!(stream.committed(), None);
        assert_eq!(stream.kept().count(), 0);
        assert_eq!(read(&notes, stream).await, []);
        assert_eq!(notes.lines(), ["S0 dropped @10"], "no hedge was sent");
    }
}

#[tokio::test(start_paused = true)]
async fn h30_an_empty_stream_that_is_handled_is_followed_by_a_hedge() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![ends(10)], vec![item(5, "b"), ends(5)]];
        let call = hedge
            .stream(open(&notes, script))
            .handle(|opened: &Opened| opened.as_ref().is_ok_and(|it| it.committed().is_none()));
        assert_eq!(read(&notes, call.await.unwrap()).await, [(Ok("b"), 15)]);
    }
}

#[tokio::test(start_paused = true)]
async fn h31_t43_a_refused_stream_is_closed_unless_it_is_returned() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, seen) = (Notes::new(), RefCell::new(vec![]));
        let script = [
            vec![item(10, "bad a"), item(30, "more"), ends(30)],
            vec![item(10, "bad b"), silent()],
        ];
        let call = hedge.stream(open(&notes, script)).handle(refused).on_discard(
            |lost: Discarded<_, _>| {
                let stream: HedgedStream<Items> = lost.outcome.unwrap();
                seen.borrow_mut().push((lost.hedge_number, stream.committed().copied()));
            },
        );
        let stream = call.await.unwrap();
        assert_eq!(notes.lines(), ["S1 dropped @20"]);
        assert_eq!(read(&notes, stream).await, [(Ok("bad a"), 20), (Ok("more"), 30)]);
        assert_eq!(*seen.borrow(), [(1, Some("bad b"))]);
    }
}

#[tokio::test(start_paused = true)]
async fn t43_a_refused_stream_is_closed_when_another_is_accepted() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![item(10, "bad a"), silent()], vec![item(10, "b"), ends(10)]];
        let stream = hedge.stream(open(&notes, script)).handle(refused).await.unwrap();
        assert_eq!(notes.lines(), ["S0 dropped @20"]);
        assert_eq!(read(&notes, stream).await, [(Ok("b"), 20)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_tells_of_the_race_and_holds_the_stream() {
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)));
    let script = [vec![fails(60, "p")], vec![item(20, "b"), ends(20)]];
    let report = hedge.stream(open(&notes, script)).settle().await;
    assert_eq!(report.winner(), Some(1));
    assert_eq!(report.failures()[0].error(), Some(&"p"));
    let stream = report.into_outcome().unwrap().unwrap();
    assert_eq!(read(&notes, stream).await, [(Ok("b"), 70)]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_commit_is_the_attempts_and_after_it_the_consumers() {
    let script = [vec![breaks(10, "boom")], vec![item(10, "b"), breaks(20, "later")]];
    for hedge in both(Hedge::after(ms(5))) {
        let notes = Notes::new();
        let call = hedge.stream(open(&notes, script.clone()));
        assert_eq!(caught(call).await.unwrap_err(), "boom");
        assert_eq!(notes.count("S0"), 1, "a stream that panics is dropped once");
        assert_eq!(notes.count("S1"), 1, "and the others are");
    }
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(5)).panics(Panics::AsFailure));
    let mut stream = hedge.stream(open(&notes, script)).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok("b")));
    assert_eq!(caught(stream.next()).await, Err("later".to_owned()));
    assert_eq!(notes.at(), 25);
}

#[tokio::test(start_paused = true)]
async fn another_stream_can_be_opened_instead() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let elsewhere = || play(&notes, 9, vec![item(10, "keep"), item(20, "elsewhere"), ends(20)]);
        let stream = hedge
            .stream(open(&notes, []))
            .commit_when(crate::streams::says_something)
            .next_action(|_| {
                let opening = Opening::new(ready(Ok(elsewhere())));
                Ok(NextAction::Run(opening.commit_when(crate::streams::says_something)))
            })
            .await
            .unwrap();
        let expected = [(Ok("keep"), 70), (Ok("elsewhere"), 70)];
        assert_eq!(read(&notes, stream).await, expected);
    }
}
