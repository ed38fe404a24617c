//! G8, G9: every refusal is counted once a call, and told where a hedge was due or earned.

use std::future::{IntoFuture, pending};
use std::sync::Arc;

use hedgerow::latency::{Learner, Learning};
use hedgerow::testing::Tokens;
use hedgerow::{FailureStart, Gate, Hedge, Moment, NextAction, Policy, RejectedHedge};
use hedgerow_core::{Call, Step, Terms};
use tokio::time::sleep;

use crate::g_pushback::asks;
use crate::h_generator::Next;
use crate::support::{Answer, Events, Notes, both, err, ms, ok, poll_once, work};

/// Learned already: hedge after 50 ms, of which the budget pays for nine.
fn learned() -> (Hedge, Events) {
    let events = Events::default();
    let learning = Learning { initial: Some(ms(50)), ..Learning::default() };
    let hedge = Hedge::default().learning(learning).budget(Arc::new(Tokens::new(9)));
    (hedge.observer(events.observer()), events)
}

/// Asserts that one call was refused by this gate, and that events say so.
fn refused(hedge: &Hedge, events: &Events, gate: Gate, told: &[&str]) {
    let why = hedge.explain().unwrap();
    assert_eq!(why.refused, [(gate, 1)]);
    assert_eq!(why.refused_by(gate), 1);
    assert!(why.to_string().contains(gate.name()), "{why}");
    let lines = events.text();
    let denied: Vec<_> = lines.iter().filter(|line| line.starts_with("denied")).collect();
    assert_eq!(denied, told);
}

#[tokio::test(start_paused = true)]
async fn g08_cold() {
    let events = Events::default();
    let hedge = Hedge::adaptive().observer(events.observer());
    let notes = Notes::new();
    assert_eq!(hedge.call(work(&notes, [ok(300, "a")])).await, Ok("a"));
    refused(&hedge, &events, Gate::Cold, &[]);
}

#[tokio::test(start_paused = true)]
async fn g08_budget_deadline_and_pushback() {
    let (hedge, events) = learned();
    let hedge = hedge.budget(Arc::new(Tokens::new(0)));
    let notes = Notes::new();
    assert_eq!(hedge.call(work(&notes, [ok(300, "a")])).await, Ok("a"));
    refused(&hedge, &events, Gate::Budget, &["denied(1,budget)@50"]);

    let (hedge, events) = learned();
    let answer = hedge.call(work(&notes, [ok(300, "a")])).deadline(ms(10)).await;
    assert_eq!(answer, Ok("a"));
    refused(&hedge, &events, Gate::Deadline, &["denied(1,deadline)@50"]);

    let (hedge, events) = learned();
    let answer = hedge.call(work(&notes, [err(20, "stop")])).pushback(asks).await;
    assert_eq!(answer, Err("stop"));
    refused(&hedge, &events, Gate::Pushback, &["denied(1,pushback)@20"]);
}

#[tokio::test(start_paused = true)]
async fn g08_a_hedge_that_is_late_by_its_hook_is_counted_like_any_other() {
    let (hedge, events) = learned();
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [ok(300, "a")])).deadline(ms(60));
    assert_eq!(call.on_hedge_async(|_| sleep(ms(100))).await, Ok("a"));
    refused(&hedge, &events, Gate::Deadline, &["denied(1,deadline)@150"]);
}

#[tokio::test(start_paused = true)]
async fn g08_work_that_must_not_run_twice_is_counted_and_not_told() {
    for (primary, wait, counted) in [
        (ok(300, "a"), false, 1),
        (ok(50, "a"), false, 1),
        (ok(49, "a"), false, 0),
        (err(20, "p"), false, 1),
        (err(300, "p"), false, 1),
        (err(20, "p"), true, 0),
        (err(300, "p"), true, 1),
    ] {
        let (hedge, events) = learned();
        let wait = if wait { FailureStart::Wait } else { FailureStart::Launch };
        let hedge = hedge.failure_start(wait);
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [primary, ok(0, "b")])).idempotent(false);
        let report = call.settle().await;
        assert_eq!(report.hedges_started(), 0);
        let gate = report.not_hedged().map(|(gate, _)| gate);
        assert_eq!(gate, Some(Gate::NotIdempotent));
        assert_eq!(hedge.explain().unwrap().refused_by(Gate::NotIdempotent), counted);
        assert_eq!(events.count("denied"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn g08_a_call_without_hedges_has_none_refused() {
    let (hedge, events) = learned();
    let (hedge, notes) = (hedge.max_hedges(0), Notes::new());
    assert_eq!(hedge.call(work(&notes, [ok(300, "a")])).idempotent(false).await, Ok("a"));
    assert_eq!(hedge.call(work(&notes, [err(1, "stop")])).pushback(asks).await, Err("stop"));
    assert_eq!(hedge.explain().unwrap().refused, []);
    assert_eq!(events.count("denied"), 0);
}

#[tokio::test(start_paused = true)]
async fn g08_a_rejection_of_work_that_must_not_run_twice_is_followed_by_another_attempt() {
    let (hedge, events) = learned();
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [err(0, "full"), ok(30, "b")])).idempotent(false);
    let call = call.rejection(|error| *error == "full").handle(Answer::is_err);
    assert_eq!(call.await, Ok("b"));
    assert_eq!(hedge.explain().unwrap().refused, []);
    assert_eq!(events.count("hedge(1,failure)@0"), 1);
}

#[tokio::test(start_paused = true)]
async fn g09_stopped() {
    let (hedge, events) = learned();
    let (hedge, notes) = (hedge.max_hedges(2), Notes::new());
    let call = hedge.call(work(&notes, [ok(300, "a")]));
    assert_eq!(call.next_action(|_| -> Next { Ok(NextAction::Stop) }).await, Ok("a"));
    refused(&hedge, &events, Gate::Stopped, &["denied(1,stopped)@50"]);
}

#[tokio::test(start_paused = true)]
async fn g09_rejected() {
    let rejected = async |hedge: &Hedge, primary, hedged| {
        let notes = Notes::new();
        let call = hedge.call(work(&notes, [primary, hedged, ok(0, "c")]));
        let _ = call.rejection(|error| *error == "full").await;
    };
    // The next was earned at once, or when the last that ran had failed, or was due by delay.
    for (failure_start, primary, told) in [
        (FailureStart::Launch, ok(300, "a"), Some("denied(2,rejected)@60")),
        (FailureStart::LaunchWhenIdle, err(90, "p"), Some("denied(2,rejected)@90")),
        (FailureStart::LaunchWhenIdle, ok(300, "a"), Some("denied(2,rejected)@100")),
        (FailureStart::Wait, ok(300, "a"), Some("denied(2,rejected)@100")),
        (FailureStart::Wait, ok(99, "a"), None),
        (FailureStart::Wait, err(80, "p"), None),
    ] {
        let (hedge, events) = learned();
        let hedge = hedge.failure_start(failure_start).max_hedges(2);
        assert_eq!(hedge.policy().rejected_hedge, RejectedHedge::Stop);
        rejected(&hedge, primary, err(10, "full")).await;
        match told {
            Some(told) => refused(&hedge, &events, Gate::Rejected, &[told]),
            None => assert_eq!(events.count("denied"), 0),
        }
    }
    let (hedge, events) = learned();
    rejected(&hedge, ok(300, "a"), err(10, "full")).await;
    assert_eq!(events.count("denied"), 0, "there was none left to refuse");
}

/// An accepted outcome of the same tick comes first.
#[tokio::test(start_paused = true)]
async fn g09_what_decides_in_the_same_tick_is_no_refusal() {
    let (hedge, events) = learned();
    let (hedge, notes) = (hedge.max_hedges(3), Notes::new());
    let script = [err(110, "p"), err(60, "full"), ok(10, "c")];
    let call = hedge.call(work(&notes, script)).rejection(|error| *error == "full");
    assert_eq!(call.await, Ok("c"));
    assert_eq!(events.count("win(2)@110"), 1);
    assert_eq!(events.count("denied"), 0);
    assert_eq!(hedge.explain().unwrap().refused, []);
}

#[test]
fn g08_late() {
    let learning = Learning { initial: Some(ms(50)), ..Learning::default() };
    let learner = Arc::new(Learner::new(learning));
    let policy = Policy { learner: Some(Arc::clone(&learner)), ..Policy::default() };
    let mut call = Call::new(&policy, Terms::default());
    let start = call.step(&policy, Moment::ZERO);
    assert!(matches!(start, Step::Start { attempt: 0, .. }));
    call.started(&policy, Moment::ZERO);
    assert_eq!(call.step(&policy, Moment::ZERO), Step::AskDelay { hedge: 1 });
    call.delay(policy.delay(1, 0));
    let late = Moment::from_millis(101);
    assert_eq!(call.step(&policy, late), Step::Wait { until: Moment::NEVER });
    assert_eq!(call.closed(), Some((Gate::Late, late)));
    assert_eq!(learner.explain().refused, [(Gate::Late, 1)]);
}

/// Also of a call that nobody watches and that has one hedge at most.
#[tokio::test(start_paused = true)]
async fn g08_late_off_the_race() {
    let learning = Learning { initial: Some(ms(50)), ..Learning::default() };
    for hedge in [Hedge::default(), Hedge::default().ring_timer()] {
        let hedge = hedge.learning(learning).budget(Arc::new(Tokens::new(9)));
        let mut starts = 0;
        let work = |_| {
            starts += 1;
            pending::<Answer>()
        };
        let mut call = Box::pin(hedge.call(work).into_future());
        assert!(poll_once(call.as_mut()).is_pending());
        tokio::time::advance(ms(101)).await;
        assert!(poll_once(call.as_mut()).is_pending());
        drop(call);
        assert_eq!(starts, 1);
        assert_eq!(hedge.explain().unwrap().refused, [(Gate::Late, 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn g08_cold_once_a_call_however_many_hedges_follow_failures() {
    let (mut calls, budget) = (0, Arc::new(Tokens::new(99)));
    for hedge in both(Hedge::adaptive().budget(budget).max_hedges(3)) {
        for after in [5, 0] {
            calls += 1;
            let notes = Notes::new();
            let script = [err(after, "p"), err(after, "h1"), err(after, "h2"), ok(after, "h3")];
            assert_eq!(hedge.call(work(&notes, script)).await, Ok("h3"));
            assert_eq!(hedge.explain().unwrap().refused, [(Gate::Cold, calls)]);
        }
    }
}
