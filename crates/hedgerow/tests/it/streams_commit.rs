//! Items that say nothing do not decide: they are kept, in order, and not without bound.

use std::future::ready;
use std::task::Poll;

use futures_util::stream::{self, FusedStream};
use futures_util::{Stream, StreamExt};
use hedgerow::{Hedge, Panics};

use crate::streams::{Next, fails, item, open, read, says_something, silent};
use crate::support::{Answer, Notes, both, caught, ms};

#[tokio::test(start_paused = true)]
async fn items_that_say_nothing_are_delivered_first_and_in_order() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let slow = vec![item(10, "keep 1"), item(40, "keep 2"), item(500, "never read")];
        let quick = vec![item(5, "keep 3"), item(6, "keep 4"), item(20, "b"), item(30, "keep 5")];
        let call = hedge.stream(open(&notes, [slow, quick])).commit_when(says_something);
        let stream = call.await.unwrap();
        assert_eq!(stream.committed(), Some(&"b"));
        assert_eq!(stream.kept().copied().collect::<Vec<_>>(), ["keep 3", "keep 4", "b"]);
        let expected = [("keep 3", 70), ("keep 4", 70), ("b", 70), ("keep 5", 80)];
        assert_eq!(read(&notes, stream).await, expected.map(|(item, at)| (Ok(item), at)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_after_items_that_say_nothing_is_still_a_failure() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![item(5, "keep"), fails(10, "p")], vec![item(10, "b")]];
        let call = hedge.stream(open(&notes, script)).commit_when(says_something);
        assert_eq!(read(&notes, call.await.unwrap()).await, [(Ok("b"), 20)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_having_said_nothing_is_delivered_as_it_is() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let script = [vec![item(5, "keep 1"), item(7, "keep 2")], vec![silent()]];
        let stream = hedge.stream(open(&notes, script)).commit_when(says_something).await.unwrap();
        assert_eq!(stream.committed(), None);
        assert_eq!(read(&notes, stream).await, [(Ok("keep 1"), 7), (Ok("keep 2"), 7)]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_item_that_no_longer_fits_decides() {
    let alive = || vec![item(1, "keep 1"), item(2, "keep 2"), item(3, "keep 3"), item(90, "a")];
    for (most, at) in [(0, 1), (1, 2), (2, 3), (3, 90)] {
        for hedge in both(Hedge::after(ms(50)).max_hedges(0)) {
            let notes = Notes::new();
            let call = hedge
                .stream(open(&notes, [alive()]))
                .commit_within(most)
                .commit_when(says_something);
            let stream = call.await.unwrap();
            assert_eq!(notes.at(), at, "{most} fit");
            assert_eq!(stream.kept().count(), most + 1);
            let items: Vec<_> = stream.collect().await;
            assert_eq!(items, ["keep 1", "keep 2", "keep 3", "a"].map(Ok));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sixty_four_items_fit_unless_said_otherwise() {
    let hedge = Hedge::default();
    let endless = || stream::repeat(Answer::Ok("keep"));
    let call = hedge.stream(async |_| Ok(endless())).commit_when(says_something);
    let stream = at_once(call).await.unwrap();
    assert_eq!(stream.kept().count(), 65);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_predicate_of_its_own() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let mut seen = 0;
        let third = move |_: &&str| {
            seen += 1;
            seen == 3
        };
        let slow = vec![item(10, "a"), item(20, "a"), item(500, "a")];
        let quick = vec![item(1, "b"), item(2, "b"), item(3, "b"), item(4, "b")];
        let stream = hedge.stream(open(&notes, [slow, quick])).commit_when(third).await.unwrap();
        assert_eq!((notes.at(), stream.kept().count()), (53, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_is_its_attempts_panic() {
    let broken = |item: &&str| if *item == "a" { panic!("no idea") } else { true };
    let script = [vec![item(10, "a")], vec![item(10, "b")]];
    for hedge in both(Hedge::after(ms(5))) {
        let notes = Notes::new();
        let call = hedge.stream(open(&notes, script.clone())).commit_when(broken);
        assert_eq!(caught(call).await.unwrap_err(), "no idea");
        assert_eq!((notes.count("S0"), notes.count("S1")), (1, 1), "each is dropped once");
    }
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(5)).panics(Panics::AsFailure));
    let call = hedge.stream(open(&notes, script)).commit_when(broken);
    assert_eq!(read(&notes, call.await.unwrap()).await, [(Ok("b"), 15)]);
}

/// Awaits a call that needs no time; one that nobody wakes any more fails the test.
async fn at_once<C: IntoFuture>(call: C) -> C::Output {
    let call = tokio::time::timeout(ms(1), call.into_future());
    call.await.expect("it wakes itself")
}

/// A million items that say nothing, ready at once: the others still get their turns.
#[tokio::test(start_paused = true)]
async fn a_burst_of_items_that_say_nothing_does_not_starve_the_hedge() {
    for hedge in both(Hedge::after(ms(50)).delay(hedgerow::Delay::Immediately)) {
        let mut read = 0_u32;
        let burst = stream::poll_fn(|_| {
            read += 1;
            assert!(read <= 1_000_000, "the hedge had no turn");
            Poll::Ready(Some(Answer::Ok("keep")))
        });
        let mut burst = Some(burst.left_stream());
        let mut stream = hedge
            .stream(|_| {
                let quick = || stream::iter([Answer::Ok("b")]).right_stream();
                ready(Answer::Ok("").map(|_| burst.take().unwrap_or_else(quick)))
            })
            .commit_when(says_something)
            .commit_within(usize::MAX)
            .await
            .unwrap();
        assert_eq!(stream.next().await, Some(Ok("b")));
        drop(stream);
        assert_eq!(read, 32);
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_wakes_itself_and_is_read_to_its_end() {
    let items = (0..1_000_000).map(Ok::<u32, ()>);
    let hedge = Hedge::default();
    let call = hedge
        .stream(async |_| Ok(stream::iter(items.clone())))
        .commit_when(|item| *item == 999_999)
        .commit_within(usize::MAX);
    let mut next = 0;
    let mut stream = at_once(call).await.unwrap();
    while let Some(item) = stream.next().await {
        assert_eq!(item, Ok(next));
        next += 1;
    }
    assert_eq!(next, 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn the_size_is_known_as_well_as_that_of_the_stream_inside() {
    let hedge = Hedge::default();
    let items = [Answer::Ok("keep"), Ok("a"), Ok("b"), Err("c")];
    let call = hedge.stream(async |_| Ok(stream::iter(items))).commit_when(says_something);
    let mut stream = call.await.unwrap();
    for left in (0..=4).rev() {
        assert_eq!(stream.size_hint(), (left, Some(left)));
        assert!(!stream.is_terminated());
        assert_eq!(stream.next().await.is_some(), left > 0);
    }
    assert!(stream.is_terminated());
}

#[tokio::test(start_paused = true)]
async fn after_its_end_it_stays_at_its_end() {
    let (notes, hedge) = (Notes::new(), Hedge::default());
    // The stream inside would panic if it were asked again.
    let steps = vec![item(0, "a"), (0, Next::End)];
    let mut stream = hedge.stream(open(&notes, [steps])).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok("a")));
    for _ in 0..3 {
        assert_eq!(stream.next().await, None);
    }
    assert!(stream.get_ref().is_some(), "what a client has to say after the end can be asked for");
}
