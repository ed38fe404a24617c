//! `Hedge::structured`: the rows K that a call alone can meet and no scenario shows.

use std::cell::{Cell, RefCell};

use hedgerow::{Attempt, CancellationToken, Cancelled, End, Hedge};
use tokio::time::{sleep, timeout};

use crate::support::{Answer, Notes, caught, err, ms, never, ok, told, transient, work};

#[tokio::test(start_paused = true)]
async fn k03_the_number_of_attempts_counts_the_primary() {
    for attempts in 1..=4 {
        let notes = Notes::new();
        let hedge = Hedge::structured(ms(50), attempts);
        let call = hedge.call(work(&notes, [ok(1_000, "a")]));
        assert!(timeout(ms(900), call).await.is_err());
        let starts = (0..4).filter(|n| notes.count(&format!("A{n} starts")) == 1);
        assert_eq!(starts.count(), attempts as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn k06_the_work_is_the_same_and_gets_the_zero_based_number() {
    let numbers = RefCell::new(vec![]);
    let work = async |attempt: Attempt| {
        numbers.borrow_mut().push(attempt.hedge_number());
        sleep(ms(10)).await;
        Answer::Err("down")
    };
    let failed = Hedge::structured(ms(50), 3).call(work).await;
    assert_eq!(failed, Err("down"));
    assert_eq!(*numbers.borrow(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn k15_earlier_failures_are_attached_to_one_that_ends_the_call() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 3));
    let script = [err(60, "p"), err(30, "fatal"), ok(0, "c")];
    let call = hedge.call(work(&notes, script)).handle(transient);
    let failed = call.settle().await.into_detailed().unwrap().unwrap_err();
    assert_eq!(failed.error(), &"fatal");
    let others: Vec<_> = failed.others().iter().map(ToString::to_string).collect();
    assert_eq!(others, ["attempt 0: p"]);
    assert_eq!(notes.count("A2"), 0);
}

#[tokio::test(start_paused = true)]
async fn k16_without_a_predicate_every_error_is_hedged() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 3));
    let script = [err(10, "full"), err(10, "down"), ok(10, "c")];
    let call = hedge.call(work(&notes, script)).rejection(|error| *error == "full");
    assert_eq!(call.await, Ok("c"));
    assert_eq!(notes.at(), 30);
}

#[tokio::test(start_paused = true)]
async fn k16_a_rejected_hedge_is_a_failure_like_any_other() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 3));
    let script = [ok(500, "a"), err(0, "full"), ok(10, "c")];
    let call = hedge.call(work(&notes, script)).rejection(|error| *error == "full");
    assert_eq!(call.await, Ok("c"));
    assert_eq!(notes.count("A2 starts @100"), 1, "the schedule goes on");
}

#[derive(Debug, PartialEq)]
struct Stopped;

impl From<Cancelled> for Stopped {
    fn from(_: Cancelled) -> Self {
        Self
    }
}

#[tokio::test(start_paused = true)]
async fn k17_an_attempts_own_cancellation_is_an_ordinary_failure() {
    let (hedge, token) = (Hedge::structured(ms(50), 2), CancellationToken::new());
    let judged = Cell::new(0);
    let work = async |attempt: Attempt| match attempt.hedge_number() {
        0 => Err(Stopped::from(Cancelled)),
        _ => Ok("b"),
    };
    let call = hedge.call(work).cancel_on(&token);
    let call = call.handle(|outcome| {
        judged.set(judged.get() + 1);
        *outcome == Err(Stopped)
    });
    assert_eq!(call.await, Ok("b"));
    assert_eq!(judged.get(), 2, "each outcome is judged once");
    assert!(!token.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn k21_no_attempt_outlives_the_call() {
    let (hedge, alive) = (Hedge::structured(ms(50), 3), Cell::new(0));
    let work = async |attempt: Attempt| {
        alive.set(alive.get() + 1);
        let number = u64::from(attempt.hedge_number());
        if number == 2 {
            sleep(ms(20)).await;
        } else {
            told(&attempt).await;
            sleep(ms(30 + number)).await;
        }
        alive.set(alive.get() - 1);
        Ok::<_, &str>(number)
    };
    let report = hedge.call(work).settle().await;
    assert_eq!(report.result(), Some(&Ok(2)));
    assert_eq!(alive.get(), 0, "they ended by themselves, not by being dropped");
    assert_eq!(report.over_at(), ms(151).into());
    let ends: Vec<_> = report.attempts().iter().map(|attempt| attempt.ended.unwrap()).collect();
    let expected = [
        (ms(150).into(), End::Discarded),
        (ms(151).into(), End::Discarded),
        (ms(120).into(), End::Won),
    ];
    assert_eq!(ends, expected);
}

#[tokio::test(start_paused = true)]
async fn k24_work_that_heeds_its_token_ends_without_a_delay() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 2));
    let work = async |attempt: Attempt| {
        if attempt.hedge_number() == 1 {
            sleep(ms(20)).await;
            return Answer::Ok("b");
        }
        tokio::select! {
            () = attempt.cancelled() => Err("told to stop"),
            () = sleep(ms(500)) => Ok("a"),
        }
    };
    assert_eq!(hedge.call(work).await, Ok("b"));
    assert_eq!(notes.at(), 70);
}

#[tokio::test(start_paused = true)]
async fn k26_a_predicate_that_panics_waits_for_nobody() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 3));
    let call =
        hedge.call(work(&notes, [err(60, "p"), never()])).handle(|_: &Answer| panic!("predicate"));
    assert_eq!(caught(call).await, Err("predicate".to_owned()));
    assert_eq!(notes.lines().last().unwrap(), "A1 dropped @60");
}

#[tokio::test(start_paused = true)]
async fn k29_attempts_run_side_by_side() {
    let (running, most) = (Cell::new(0), Cell::new(0));
    let work = async |_: Attempt| {
        running.set(running.get() + 1);
        most.set(most.get().max(running.get()));
        sleep(ms(200)).await;
        running.set(running.get() - 1);
        Answer::Ok("a")
    };
    assert_eq!(Hedge::structured(ms(50), 3).call(work).await, Ok("a"));
    assert_eq!(most.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn k31_a_value_always_wins() {
    let (notes, hedge) = (Notes::new(), Hedge::structured(ms(50), 3));
    let call = hedge.call(work(&notes, [ok(500, "a"), ok(20, "bad 503")]));
    let report = hedge_report(call.settle().await);
    assert_eq!(report, (Some(Ok("bad 503")), Some(1)));
    assert_eq!(notes.count("A2"), 0);
}

fn hedge_report(
    report: hedgerow::Report<&'static str, &'static str>,
) -> (Option<Answer>, Option<u8>) {
    let winner = report.winner();
    (report.into_outcome(), winner)
}
