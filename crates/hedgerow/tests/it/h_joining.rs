//! H39 to H41: losers that are told to stop and waited for.

use std::cell::RefCell;

use hedgerow::{Attempt, CancellationToken, Discarded, Hedge, Losers};
use tokio::time::{sleep, timeout};

use crate::support::{Answer, Events, Notes, ms, told};

/// Waits for losers, however long they take.
fn joining() -> Hedge {
    Hedge::after(ms(50)).losers(Losers::Join { grace: None })
}

/// The hedge answers 20 ms after its start; the primary is told to stop and takes `cleanup` over
/// it, then returns a value of its own.
fn cleaning(notes: &Notes, cleanup: u64) -> impl FnMut(Attempt) -> crate::support::Scripted {
    let notes = notes.clone();
    move |attempt| {
        let (notes, number) = (notes.clone(), attempt.hedge_number());
        Box::pin(notes.clone().attempt(number, async move {
            if number > 0 {
                sleep(ms(20)).await;
                return Ok("b");
            }
            told(&attempt).await;
            notes.note("A0 told");
            sleep(ms(cleanup)).await;
            Ok("late")
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn h39_dropped_while_joining_the_outcome_is_lost_and_discarded() {
    let (notes, events, discarded) = (Notes::new(), Events::default(), RefCell::new(vec![]));
    let hedge = joining().observer(events.observer());
    let call = hedge.call(cleaning(&notes, 400)).on_discard(|lost: Discarded<_, _>| {
        discarded.borrow_mut().push((lost.hedge_number, lost.outcome));
    });
    assert!(timeout(ms(80), call).await.is_err());
    let expected =
        ["A0 starts @0", "A1 starts @50", "A1 ends @70", "A0 told @70", "A0 dropped @80"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(events.count("end(0,cancelled,80)@80"), 1);
    assert_eq!(events.count("over(cancelled)@80"), 1);
    assert_eq!(*discarded.borrow(), [(1, Ok("b"))], "nobody will see it");
}

#[tokio::test(start_paused = true)]
async fn h40_a_token_that_fires_while_joining_cuts_the_wait_short() {
    let (notes, token, hedge) = (Notes::new(), CancellationToken::new(), joining());
    let call = hedge.call(cleaning(&notes, 430)).settle().cancel_on(&token);
    let cancels = async {
        sleep(ms(80)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(async { call.await }, cancels);
    assert_eq!(report.result(), Some(&Ok("b")), "it was accepted at 70");
    assert_eq!(report.winner(), Some(1));
    assert_eq!(report.over_at(), ms(80).into());
    assert_eq!(notes.lines().last().unwrap(), "A0 dropped @80");
}

#[tokio::test(start_paused = true)]
async fn h41_a_grace_bounds_the_wait() {
    for (grace, cleanup, end) in
        [(50, 400, "A0 dropped @120"), (50, 30, "A0 ends @100"), (0, 400, "A0 dropped @70")]
    {
        let notes = Notes::new();
        let losers = Losers::Join { grace: Some(ms(grace)) };
        let hedge = joining().losers(losers);
        assert_eq!(hedge.call(cleaning(&notes, cleanup)).await, Ok("b"));
        assert_eq!(notes.lines().last().unwrap(), end);
    }
}

#[tokio::test(start_paused = true)]
async fn h41_without_a_grace_the_wait_is_as_long_as_it_takes() {
    let notes = Notes::new();
    let answer = joining().call(cleaning(&notes, 86_400_000)).await;
    assert_eq!(answer, Ok("b"));
    assert_eq!(notes.lines().last().unwrap(), "A0 ends @86400070");
}

#[tokio::test(start_paused = true)]
async fn a20_what_a_joined_loser_still_returns_is_discarded_once() {
    let (notes, events, discarded) = (Notes::new(), Events::default(), RefCell::new(vec![]));
    let hedge = joining().observer(events.observer());
    let call = hedge.call(cleaning(&notes, 30)).on_discard(|lost: Discarded<_, _>| {
        notes.note("discarded");
        discarded.borrow_mut().push((lost.hedge_number, lost.outcome));
    });
    assert_eq!(call.await, Ok("b"));
    assert_eq!(*discarded.borrow(), [(0, Ok("late"))]);
    assert_eq!(notes.count("discarded @100"), 1);
    assert_eq!(events.count("end(0,discarded,100)@100"), 1);
}

/// The hedge answers at 70; the primary, told to stop, ends like this 10 ms later.
async fn loser_ends(how: impl Fn() -> Answer) -> (Answer, u64, usize) {
    let (notes, discards) = (Notes::new(), RefCell::new(0));
    let work = async |attempt: Attempt| {
        if attempt.hedge_number() == 1 {
            sleep(ms(20)).await;
            return Ok("b");
        }
        told(&attempt).await;
        sleep(ms(10)).await;
        how()
    };
    let answer =
        joining().call(work).on_discard(|_: Discarded<_, _>| *discards.borrow_mut() += 1).await;
    (answer, notes.at(), discards.into_inner())
}

#[tokio::test(start_paused = true)]
async fn a19_a_losers_failure_after_the_decision_never_surfaces() {
    assert_eq!(loser_ends(|| Err("late")).await, (Ok("b"), 80, 1));
}

#[tokio::test(start_paused = true)]
async fn a19_a_losers_panic_after_the_decision_never_surfaces() {
    assert_eq!(loser_ends(|| panic!("late")).await, (Ok("b"), 80, 0));
}

#[tokio::test(start_paused = true)]
async fn k18_a_cancelled_caller_waits_for_every_attempt() {
    let (notes, token, hedge) = (Notes::new(), CancellationToken::new(), joining());
    let work = |attempt: Attempt| {
        let number = attempt.hedge_number();
        notes.clone().attempt(number, async move {
            told(&attempt).await;
            sleep(ms(10 + 15 * u64::from(number))).await;
            Answer::Ok("late")
        })
    };
    let call = hedge.call(work).settle().cancel_on(&token);
    let cancels = async {
        sleep(ms(80)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(async { call.await }, cancels);
    assert!(report.result().is_none());
    let expected = ["A0 starts @0", "A1 starts @50", "A0 ends @90", "A1 ends @105"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(report.over_at(), ms(105).into());
}
