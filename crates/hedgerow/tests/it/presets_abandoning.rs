//! `Hedge::abandoning`: the rows M that a call alone can meet and no scenario shows.

use std::sync::{Arc, Mutex};

use hedgerow::{Attempt, Hedge};
use tokio::time::{sleep, timeout};

use crate::support::{Answer, Notes, err, lock, ms, never, ok, work};

fn abandoning(delay: u64) -> Hedge {
    Hedge::abandoning().delay(ms(delay))
}

#[tokio::test(start_paused = true)]
async fn m01_each_attempt_starts_on_a_task_of_its_own() {
    let tasks = Arc::new(Mutex::new(vec![]));
    let seen = Arc::clone(&tasks);
    let hedge = abandoning(50);
    let work = move |_: Attempt| {
        let seen = Arc::clone(&seen);
        async move {
            lock(&seen).push(tokio::task::id());
            sleep(ms(70)).await;
            Ok::<u8, u16>(1)
        }
    };
    let own = tokio::spawn(async move {
        assert_eq!(hedge.call(work).spawned().await, Ok(1));
        tokio::task::id()
    });
    let own = own.await.unwrap();
    let tasks = lock(&tasks).clone();
    let [primary, hedge] = tasks[..] else { panic!("two attempts: {tasks:?}") };
    assert!(primary != hedge && primary != own && hedge != own);
}

#[tokio::test(start_paused = true)]
async fn m05_what_is_not_handled_propagates_at_once() {
    let (notes, hedge) = (Notes::new(), abandoning(50));
    let call = hedge
        .call(work(&notes, [ok(500, "a"), err(30, "fatal")]))
        .handle(crate::support::transient);
    assert_eq!(call.spawned().await, Err("fatal"));
    assert_eq!(notes.at(), 80);
    sleep(ms(1_000)).await;
    assert_eq!(notes.lines().last().unwrap(), "A0 ends @500", "it ran on");
}

#[tokio::test(start_paused = true)]
async fn m10_m11_one_attempt_more_after_two_seconds_is_the_default() {
    let (notes, hedge) = (Notes::new(), Hedge::abandoning());
    let call = hedge.call(work(&notes, [never(), err(5_000, "q"), ok(0, "c")]));
    assert!(timeout(ms(60_000), call.spawned()).await.is_err());
    let expected = ["A0 starts @0", "A1 starts @2000", "A1 ends @7000"];
    assert_eq!(notes.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn m12_no_extra_attempts_are_legal() {
    let (notes, hedge) = (Notes::new(), abandoning(50).max_hedges(0));
    let call = hedge.call(work(&notes, [err(100, "p"), ok(0, "b")]));
    assert_eq!(call.spawned().await, Err("p"));
    assert_eq!(notes.count("A1"), 0);
}

#[tokio::test(start_paused = true)]
async fn m13_m14_the_hook_runs_before_each_extra_attempt_and_counts_from_1() {
    let (notes, hedge) = (Notes::new(), abandoning(50).max_hedges(2));
    let hook = notes.clone();
    let call = hedge
        .call(work(&notes, [err(100, "p"), err(10, "q"), ok(20, "c")]))
        .on_hedge(move |next| hook.note(format_args!("hook {}", next.hedge_number())));
    assert_eq!(call.spawned().await, Ok("c"));
    let expected = [
        "A0 starts @0",
        "hook 1 @50",
        "A1 starts @50",
        "A1 ends @60",
        "hook 2 @60",
        "A2 starts @60",
        "A2 ends @80",
    ];
    assert_eq!(notes.lines(), expected);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Timeout,
    Network(Network),
    Bug,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Network {
    Reset,
    Refused,
}

/// The first attempt fails like this; the second would answer.
async fn failing(
    fault: Fault,
    handle: fn(&Result<&str, Fault>) -> bool,
) -> Result<&'static str, Fault> {
    let work = move |attempt: Attempt| async move {
        sleep(ms(10)).await;
        match attempt.hedge_number() {
            0 => Err(fault),
            _ => Ok("b"),
        }
    };
    let hedge = abandoning(50);
    hedge.call(work).handle(handle).spawned().await
}

#[tokio::test(start_paused = true)]
async fn m15_one_or_several_kinds_of_error_are_handled() {
    let one: fn(&Result<&str, Fault>) -> bool = |outcome| *outcome == Err(Fault::Timeout);
    assert_eq!(failing(Fault::Timeout, one).await, Ok("b"));
    assert_eq!(failing(Fault::Bug, one).await, Err(Fault::Bug));
    let several: fn(&Result<&str, Fault>) -> bool =
        |outcome| matches!(outcome, Err(Fault::Timeout | Fault::Network(_)));
    assert_eq!(failing(Fault::Timeout, several).await, Ok("b"));
    assert_eq!(failing(Fault::Bug, several).await, Err(Fault::Bug));
}

#[tokio::test(start_paused = true)]
async fn m16_a_kind_includes_its_own_kinds_and_none_handles_nothing() {
    let network: fn(&Result<&str, Fault>) -> bool =
        |outcome| matches!(outcome, Err(Fault::Network(_)));
    let none: fn(&Result<&str, Fault>) -> bool = |_| false;
    for fault in [Fault::Network(Network::Reset), Fault::Network(Network::Refused)] {
        assert_eq!(failing(fault, network).await, Ok("b"));
        assert_eq!(failing(fault, none).await, Err(fault));
    }
}

#[tokio::test(start_paused = true)]
async fn m18_work_without_a_result_can_only_fail() {
    let hedge = abandoning(50);
    let work = |attempt: Attempt| async move {
        match attempt.hedge_number() {
            0 => Err("down"),
            _ => Ok(()),
        }
    };
    assert_eq!(hedge.call(work).spawned().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn m20_what_attempts_share_outlives_the_call_and_its_policy() {
    let shared = Arc::new(Mutex::new(0));
    let notes = Notes::new();
    let work = {
        let (shared, notes) = (Arc::clone(&shared), notes.clone());
        move |attempt: Attempt| {
            let shared = Arc::clone(&shared);
            let number = attempt.hedge_number();
            notes.clone().attempt(number, async move {
                sleep(ms([500, 20][usize::from(number)])).await;
                *lock(&shared) += 1;
                Answer::Ok("done")
            })
        }
    };
    {
        let hedge = abandoning(50);
        assert_eq!(hedge.call(work).spawned().await, Ok("done"));
    }
    assert_eq!(*lock(&shared), 1);
    assert!(Arc::strong_count(&shared) > 1, "the primary still has it");
    sleep(ms(1_000)).await;
    assert_eq!(*lock(&shared), 2);
    assert_eq!(notes.lines().last().unwrap(), "A0 ends @500");
    assert_eq!(Arc::strong_count(&shared), 1, "and lets go of it at its end");
}

#[tokio::test(start_paused = true)]
async fn m22_a_delay_of_zero_starts_all_and_a_negative_one_waits_for_a_failure() {
    use hedgerow::Delay;
    for (millis, start) in [(0, 0), (-1, 100)] {
        let notes = Notes::new();
        let hedge = Hedge::abandoning().delay(Delay::from_signed_millis(millis));
        let call = hedge.call(work(&notes, [err(100, "p"), ok(500, "b")]));
        assert_eq!(call.spawned().await, Ok("b"));
        assert_eq!(notes.count(&format!("A1 starts @{start}")), 1);
    }
}
