//! What a call of streams shares with every call: tokens, properties, numbers, placement, learning.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::stream::{self, FusedStream};
use futures_util::{Stream, StreamExt};
use hedgerow::latency::Learning;
use hedgerow::stream::HedgedStream;
use hedgerow::testing::ManualExecutor;
use hedgerow::{
    Attempt, AttemptCounter, CancellationToken, Cancelled, Discarded, Hedge, Losers, ManualClock,
    Properties,
};

use crate::streams::{Items, ends, fails, item, open, play, read, says_something, silent};
use crate::support::{Answer, Notes, both, ms, poll_once};

#[derive(Debug, PartialEq)]
struct Gone;

impl From<Cancelled> for Gone {
    fn from(_: Cancelled) -> Self {
        Self
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_a_call_before_its_commit_and_its_stream_after() {
    for hedge in both(Hedge::after(ms(50))) {
        for (fires, expected) in [
            (60, None),
            (75, Some(vec![(Ok("b"), 70), (Err("gone"), 75)])),
            (95, Some(vec![(Ok("b"), 70), (Ok("c"), 90), (Err("gone"), 95)])),
        ] {
            let (notes, token) = (Notes::new(), CancellationToken::new());
            let (fire, timer) = (token.clone(), tokio::time::sleep(ms(fires)));
            tokio::spawn(async move {
                timer.await;
                fire.cancel();
            });
            let script = [vec![silent()], vec![item(20, "b"), item(40, "c"), item(60, "d")]];
            let call = hedge.stream(open(&notes, script)).cancel_on_or(&token, || "gone");
            match (call.await, expected) {
                (Err(error), None) => assert_eq!((error, notes.at()), ("gone", fires)),
                (Ok(stream), Some(expected)) => assert_eq!(read(&notes, stream).await, expected),
                (opened, _) => panic!("{fires}: {opened:?}"),
            }
            assert_eq!((notes.count("S0"), notes.count("S1")), (1, 1), "each is closed once");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_fires_after_the_commit_drops_what_was_kept_and_the_stream_at_once() {
    let (notes, hedge, token) = (Notes::new(), Hedge::default(), CancellationToken::new());
    let script = [vec![item(1, "keep"), item(2, "a"), item(3, "b")]];
    let mut stream = hedge
        .stream(open(&notes, script))
        .cancel_on_or(&token, || "gone")
        .commit_when(says_something)
        .await
        .unwrap();
    assert_eq!(stream.next().await, Some(Ok("keep")));
    token.cancel();
    assert_eq!(stream.next().await, Some(Err("gone")));
    assert_eq!(notes.lines(), ["S0 dropped @2"]);
    assert!(stream.get_ref().is_none() && stream.is_terminated());
    assert_eq!((stream.next().await, stream.size_hint()), (None, (0, Some(0))));
}

#[tokio::test(start_paused = true)]
async fn a_token_changes_nothing_once_the_stream_has_ended() {
    let (hedge, token) = (Hedge::default(), CancellationToken::new());
    let items = || stream::iter([Ok::<_, Gone>("a")]);
    let mut stream = hedge.stream(async |_| Ok(items())).cancel_on(&token).await.unwrap();
    assert_eq!(stream.size_hint(), (1, Some(1)));
    assert_eq!(stream.next().await, Some(Ok("a")));
    assert_eq!(stream.size_hint(), (0, Some(1)), "the error may still come");
    assert_eq!(stream.next().await, None);
    token.cancel();
    assert_eq!((stream.next().await, stream.size_hint()), (None, (0, Some(0))));
}

#[tokio::test(start_paused = true)]
async fn an_item_accepted_as_the_token_fires_is_a_stream_that_ends_with_the_error() {
    let (hedge, token) = (Hedge::default(), CancellationToken::new());
    let call = hedge
        .stream(async |_| {
            token.cancel();
            Ok(stream::iter([Ok::<_, Gone>("a")]))
        })
        .cancel_on(&token);
    assert_eq!(call.await.unwrap().collect::<Vec<_>>().await, [Err(Gone)]);
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_report_ends_only_what_has_not_committed() {
    let (notes, hedge, token) = (Notes::new(), Hedge::default(), CancellationToken::new());
    let script = [vec![item(1, "a"), item(2, "b")]];
    let report = hedge.stream(open(&notes, script)).settle().cancel_on(&token).await;
    token.cancel();
    let stream = report.into_outcome().unwrap().unwrap();
    assert_eq!(read(&notes, stream).await, [(Ok("a"), 1), (Ok("b"), 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_winners_token_never_fires_and_a_losers_does() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, tokens) = (Notes::new(), RefCell::new(vec![]));
        let mut opens = open(&notes, [vec![silent()], vec![item(20, "b"), ends(30)]]);
        let call = hedge.stream(|attempt: Attempt| {
            tokens.borrow_mut().push(attempt.token().unwrap());
            opens(attempt)
        });
        let stream = call.tokens().await.unwrap();
        let fired =
            || tokens.borrow().iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
        assert_eq!(fired(), [true, false]);
        drop(stream);
        assert_eq!(fired(), [true, false]);
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_properties_and_deadlines_are_those_of_any_call() {
    let (properties, counter) = (Properties::new(), AttemptCounter::new());
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let first = counter.next();
        let stream = hedge
            .stream(async |attempt| {
                assert!(attempt.deadline().is_some());
                attempt.properties().insert(attempt.number());
                let steps = [vec![silent()], vec![item(20, "b")]];
                let number = attempt.hedge_number();
                Ok(play(&notes, number, steps[usize::from(number)].clone()))
            })
            .properties(&properties)
            .counter(&counter)
            .deadline(ms(60))
            .await;
        drop(stream.unwrap());
        assert_eq!(properties.get::<u32>(), Some(first + 2), "the winner's, at its commit");
    }
}

#[tokio::test(start_paused = true)]
async fn no_stream_is_opened_twice_if_it_must_not_be() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = || [vec![item(500, "a")], vec![item(0, "b")]];
        let call = hedge.stream(open(&notes, script())).idempotent(false);
        assert_eq!(read(&notes, call.await.unwrap()).await, [(Ok("a"), 500)]);
        let call = hedge.stream(open(&notes, [vec![fails(10, "p")]])).idempotent(false);
        assert_eq!(call.await.unwrap_err(), "p");
        assert_eq!(notes.count("S1"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn pr_50_a_stream_that_breaks_half_way_is_never_patched_up() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(3)) {
        let notes = Notes::new();
        let script = [
            vec![item(60, "a1"), item(80, "a2"), fails(90, "reset"), ends(90)],
            vec![item(20, "b1"), item(30, "b2")],
        ];
        let stream = hedge.stream(open(&notes, script)).await.unwrap();
        let expected = [(Ok("a1"), 60), (Ok("a2"), 80), (Err("reset"), 90)];
        assert_eq!(read(&notes, stream).await, expected);
        assert_eq!(notes.lines(), ["S1 dropped @60", "S0 dropped @90"]);
    }
}

/// A spawned call whose streams run on a manual clock.
fn spawned(losers: Losers) -> (Hedge, ManualClock, Arc<ManualExecutor>) {
    let (clock, executor) = (ManualClock::new(), Arc::new(ManualExecutor::new()));
    let hedge = Hedge::after(ms(50)).losers(losers).clock(Arc::new(clock.clone()));
    (hedge, clock, executor)
}

#[test]
fn a_spawned_stream_moves_to_its_consumer_and_a_detached_loser_is_discarded_when_it_commits() {
    let (hedge, clock, executor) = spawned(Losers::Detach);
    let notes = Notes::on(&clock);
    let (sleeps, opens) = (clock.clone(), notes.clone());
    let work = move |attempt: Attempt| {
        let number = attempt.hedge_number();
        let (clock, guard) = (sleeps.clone(), opens.guard(format!("S{number}")));
        let gaps = [[200, 0], [20, 10]][usize::from(number)];
        let items = stream::iter(gaps).then(move |gap| {
            let _open = &guard;
            let wait = clock.sleep(ms(gap));
            async move {
                wait.await;
                Ok::<_, ()>(number)
            }
        });
        let items: std::pin::Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(items);
        std::future::ready(Ok(items))
    };
    let discards = notes.clone();
    let call = hedge
        .stream(work)
        .on_discard(move |lost: Discarded<HedgedStream<_>, ()>| {
            discards.note(format_args!("discards {}", lost.outcome.unwrap().committed().unwrap()));
        })
        .spawned_on(Arc::clone(&executor) as Arc<_>);
    let reads = notes.clone();
    let mut consumer = Box::pin(async move {
        let mut stream = call.await.unwrap();
        while let Some(Ok(item)) = stream.next().await {
            reads.note(format_args!("reads {item}"));
        }
    });
    let mut over = false;
    for _ in 0..300 {
        executor.run();
        over = over || poll_once(consumer.as_mut()).is_ready();
        clock.advance(ms(1));
    }
    assert!(over);
    drop(consumer);
    let expected =
        ["reads 1 @70", "reads 1 @80", "S1 dropped @80", "discards 0 @200", "S0 dropped @200"];
    assert_eq!(notes.lines(), expected);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "add `.spawned()` to the call")]
async fn losers_that_are_detached_need_tasks() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50)).losers(Losers::Detach);
    drop(hedge.stream(open(&notes, [])).await);
}

#[tokio::test(start_paused = true)]
async fn streams_need_not_be_send_and_may_borrow() {
    let text = String::from("a b c");
    let hedge = Hedge::after(ms(50));
    let shared = Rc::new(RefCell::new(0));
    let words = || {
        let count = Rc::clone(&shared);
        stream::iter(text.split(' ')).map(move |word| {
            *count.borrow_mut() += 1;
            Ok::<_, ()>(word)
        })
    };
    let stream = hedge.stream(async |_| Ok(words())).commit_when(|word| *word == "b").await;
    assert_eq!(stream.unwrap().collect::<Vec<_>>().await, [Ok("a"), Ok("b"), Ok("c")]);
    assert_eq!(*shared.borrow(), 3);
}

#[test]
fn a_call_and_its_stream_are_send_where_their_parts_are() {
    fn send<V: Send>(_: &V) {}
    fn send_stream<V: Send + Unpin + FusedStream<Item = Answer>>() {}
    let (notes, hedge, token) =
        (Notes::on(&ManualClock::new()), Hedge::default(), CancellationToken::new());
    let call = hedge.stream(open(&notes, [])).commit_when(says_something);
    let call = call.cancel_on_or(&token, || "gone").into_future();
    send(&call);
    send_stream::<HedgedStream<Items>>();
}

#[tokio::test(start_paused = true)]
async fn what_is_learned_is_the_time_to_the_commit() {
    let hedge = Hedge::default().learning(Learning::default());
    for _ in 0..200 {
        let notes = Notes::new();
        let steps = vec![item(1, "keep"), item(40, "a"), item(5_000, "b")];
        let call = hedge.stream(open(&notes, [steps])).commit_when(says_something);
        drop(call.await.unwrap());
    }
    let median = hedge.explain().unwrap().median.expect("calls were seen");
    assert!((ms(38)..=ms(42)).contains(&median), "{median:?}");
}
