//! H15 to H18: properties are copied to each attempt, and the winner's are merged back.

use hedgerow::{Attempt, CancellationToken, Delay, Exhausted, Hedge, Losers, Panics, Properties};

use crate::support::{Answer, Notes, act, caught, err, ms, never, ok, panics, told};

#[derive(Clone, PartialEq, Debug)]
struct A(u32);

#[derive(Clone, PartialEq, Debug)]
struct B(u32);

#[derive(Clone, PartialEq, Debug)]
struct C(u32);

/// What the caller sees: a, b and c.
fn seen(properties: &Properties) -> (Option<A>, Option<B>, Option<C>) {
    (properties.get(), properties.get(), properties.get())
}

/// The caller's properties: `a` is 1.
fn callers() -> Properties {
    let properties = Properties::new();
    properties.insert(A(1));
    properties
}

/// The primary sets b, the hedge sets c; then they do what the script says.
fn writes(script: [crate::support::Act; 2]) -> impl FnMut(Attempt) -> crate::support::Scripted {
    move |attempt| {
        Box::pin(async move {
            match attempt.hedge_number() {
                0 => attempt.properties().insert(B(2)),
                _ => attempt.properties().insert(C(3)),
            }
            act(script[usize::from(attempt.hedge_number())]).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn h15_the_winners_writes_reach_the_caller_and_the_losers_do_not() {
    let properties = callers();
    let hedge = Hedge::after(ms(50));
    let call = hedge.call(writes([never(), ok(20, "b")])).properties(&properties);
    assert_eq!(call.await, Ok("b"));
    assert_eq!(seen(&properties), (Some(A(1)), None, Some(C(3))));
}

#[tokio::test(start_paused = true)]
async fn h16_when_all_fail_the_returned_attempt_counts_as_the_winner() {
    for (exhausted, expected) in [
        (Exhausted::Primary, (Some(A(1)), Some(B(2)), None)),
        (Exhausted::First, (Some(A(1)), None, Some(C(3)))),
        (Exhausted::Last, (Some(A(1)), Some(B(2)), None)),
    ] {
        let properties = callers();
        let hedge = Hedge::after(ms(50)).exhausted(exhausted);
        let call = hedge.call(writes([err(100, "p"), err(10, "q")])).properties(&properties);
        assert!(call.await.is_err());
        assert_eq!(seen(&properties), expected, "{exhausted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn h16_when_the_caller_chooses_the_failure_its_attempt_counts_as_the_winner() {
    let properties = callers();
    let hedge = Hedge::after(ms(50));
    let call = hedge
        .call(writes([err(100, "p"), err(10, "q")]))
        .exhausted(|failures: &[hedgerow::Failure<_, _>]| failures[0].hedge_number())
        .properties(&properties);
    assert_eq!(call.await, Err("q"));
    assert_eq!(seen(&properties), (Some(A(1)), None, Some(C(3))));
}

#[tokio::test(start_paused = true)]
async fn h17_a_cancelled_call_merges_nothing() {
    let (properties, token) = (callers(), CancellationToken::new());
    let hedge = Hedge::after(ms(50));
    let call = hedge.call(writes([never(), never()])).properties(&properties);
    let call = call.settle().cancel_on(&token);
    let (report, ()) = tokio::join!(async { call.await }, async {
        tokio::time::sleep(ms(70)).await;
        token.cancel();
    });
    assert!(report.result().is_none());
    assert_eq!(report.attempts_started(), 2);
    assert_eq!(seen(&properties), (Some(A(1)), None, None));
}

#[tokio::test(start_paused = true)]
async fn h17_a_panic_merges_nothing() {
    let properties = callers();
    let hedge = Hedge::after(ms(50)).panics(Panics::Propagate);
    let call = hedge.call(writes([never(), panics(20, "boom")])).properties(&properties);
    assert_eq!(caught(call).await, Err("boom".to_owned()));
    assert_eq!(seen(&properties), (Some(A(1)), None, None));
}

#[tokio::test(start_paused = true)]
async fn h18_parallel_attempts_do_not_overwrite_each_other() {
    let properties = callers();
    let hedge = Hedge::default().delay(Delay::Immediately);
    let work = |attempt: Attempt| async move {
        let own = u32::from(attempt.hedge_number()) + 10;
        attempt.properties().insert(A(own));
        tokio::time::sleep(ms(20)).await;
        assert_eq!(attempt.properties().get(), Some(A(own)), "its own value");
        tokio::time::sleep(ms(50 - 10 * u64::from(own - 10))).await;
        Answer::Ok("value")
    };
    let report = hedge.call(work).properties(&properties).settle().await;
    assert_eq!(report.winner(), Some(1));
    assert_eq!(properties.get(), Some(A(11)));
}

#[tokio::test(start_paused = true)]
async fn a25_attempts_copy_at_their_start_and_see_what_hooks_wrote_by_then() {
    let properties = callers();
    let hedge = Hedge::after(ms(50));
    let work = |attempt: Attempt| async move {
        if attempt.hedge_number() == 0 {
            attempt.properties().insert(C(3));
            std::future::pending::<()>().await;
        }
        let (a, _, c) = seen(&attempt.properties());
        Ok::<_, &str>((a, c))
    };
    let call = hedge.call(work).properties(&properties).on_hedge(|_| properties.insert(A(7)));
    assert_eq!(call.await, Ok((Some(A(7)), None)));
}

#[tokio::test(start_paused = true)]
async fn pr_29_nothing_that_a_loser_does_later_shows() {
    let properties = callers();
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50)).losers(Losers::Join { grace: None });
    let work = |attempt: Attempt| {
        let notes = notes.clone();
        async move {
            let properties = attempt.properties();
            let number = attempt.number();
            if number == 0 {
                properties.insert(A(5));
                told(&attempt).await;
                tokio::time::sleep(ms(10)).await;
                properties.insert(A(6));
                notes.note("the loser wrote again");
            }
            let read = properties.get();
            properties.insert(A(2));
            Ok::<_, &str>((number, read))
        }
    };
    let call = hedge.call(work).properties(&properties);
    assert_eq!(call.await, Ok((1, Some(A(1)))), "the hedge reads the caller's value");
    assert_eq!(notes.lines(), ["the loser wrote again @60"]);
    assert_eq!(properties.get(), Some(A(2)));
}

#[tokio::test(start_paused = true)]
async fn t25_merging_adds_and_replaces_and_never_removes() {
    let properties = callers();
    properties.insert(B(9));
    let hedge = Hedge::after(ms(50));
    let call = hedge.call(writes([ok(0, "a"), never()])).properties(&properties);
    assert_eq!(call.await, Ok("a"));
    assert_eq!(seen(&properties), (Some(A(1)), Some(B(2)), None));
}
