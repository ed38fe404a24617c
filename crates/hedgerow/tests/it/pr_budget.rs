//! PR-38, 40 and 92 at the calls: budgets and durations as people write them.

use std::sync::Arc;

use hedgerow::testing::Tokens;
use hedgerow::{CancellationToken, ExtraLoad, Hedge, HedgeConfig, RatioBudget, Schedule, text};
use tokio::time::{advance, sleep, timeout};

use crate::support::{Answer, Notes, err, ms, never, ok, work};

/// How many hedges a call starts that fails as often as it may.
async fn hedges_of_a_failing_call(hedge: &Hedge) -> usize {
    let call = hedge.call(async |_| Answer::Err("down"));
    call.settle().await.hedges_started()
}

#[tokio::test(start_paused = true)]
async fn pr_38_calls_pay_in_and_hedges_take_out() {
    for (ratio, calls, granted) in [
        (0.6, 4, 2),
        (0.6, 5, 3),
        (0.05, 19, 0),
        (0.05, 20, 1),
        (1.0 / 3.0, 10, 3),
        (1.5, 3, 4),
        (0.0, 1_000, 0),
    ] {
        let budget = RatioBudget::new(ExtraLoad::new(ratio).unwrap());
        let hedge = Hedge::default().max_hedges(10).budget(Arc::new(budget));
        for _ in 0..calls {
            let answer = hedge.call(async |_| Answer::Ok("a")).await;
            assert_eq!(answer, Ok("a"));
        }
        let started = hedges_of_a_failing_call(&hedge).await;
        assert_eq!(started, granted, "{calls} calls at {ratio}");
    }
}

#[tokio::test(start_paused = true)]
async fn pr_38_clones_of_a_policy_share_its_budget() {
    let hedge = Hedge::default().max_extra_load(1.0);
    assert_eq!(hedge.clone().call(async |_| Answer::Ok("a")).await, Ok("a"));
    assert_eq!(hedges_of_a_failing_call(&hedge.clone()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn pr_38_only_completed_calls_pay_in() {
    let budget = Arc::new(RatioBudget::new(ExtraLoad::new(1.0).unwrap()));
    let hedge = Hedge::after(ms(50)).budget(Arc::clone(&budget) as Arc<_>);
    let (notes, token) = (Notes::new(), CancellationToken::new());
    assert!(timeout(ms(10), hedge.call(work(&notes, []))).await.is_err());
    assert_eq!(budget.available(), 0, "dropped");
    token.cancel();
    let call = hedge.call(work(&notes, [])).settle().cancel_on(&token);
    assert!(call.await.result().is_none());
    assert_eq!(budget.available(), 0, "cancelled");
    let call = hedge.call(work(&notes, [err(10, "fatal")]));
    assert_eq!(call.handle(crate::support::transient).await, Err("fatal"));
    assert_eq!(budget.available(), 1, "failed");
    assert_eq!(hedge.call(work(&notes, [ok(10, "a")])).await, Ok("a"));
    assert_eq!(budget.available(), 2, "answered");
}

#[tokio::test(start_paused = true)]
async fn pr_40_little_traffic_can_hedge() {
    let hedge = Hedge::after(ms(50)).max_extra_load(0.1);
    let mut hedged = vec![];
    for call in 0..100 {
        let notes = Notes::new();
        let script = [ok(400, "a"), ok(20, "b")];
        if hedge.call(work(&notes, script)).await == Ok("b") {
            hedged.push(call);
        }
        advance(ms(10_000 - notes.at())).await;
    }
    // It starts with nothing saved: one call in ten pays for a hedge, from the eleventh on.
    let expected: Vec<_> = (1..10).map(|tenth| tenth * 10).collect();
    assert_eq!(hedged, expected);
}

#[tokio::test(start_paused = true)]
async fn pr_40_the_first_call_ever_is_not_hedged() {
    let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).max_extra_load(0.1));
    let call = hedge.call(work(&notes, [ok(400, "a"), ok(20, "b")]));
    assert_eq!(call.await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn e09_a_token_is_given_back_when_its_hedge_does_not_start() {
    let tokens = Arc::new(Tokens::new(1));
    let hedge = Hedge::after(ms(50)).budget(Arc::clone(&tokens) as Arc<_>);
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [ok(80, "a"), never()])).on_hedge_async(|_| sleep(ms(100)));
    assert_eq!(call.await, Ok("a"));
    assert_eq!(tokens.left(), 1);
    let call = hedge.call(work(&notes, [ok(80, "a"), never()]));
    assert_eq!(call.await, Ok("a"));
    assert_eq!(tokens.left(), 0, "it started, so it is paid for");
}

#[test]
fn pr_92_durations_mean_the_same_wherever_they_are_written() {
    for written in ["100", "100ms", "1.5s", "1m", "-5ms", "5 parsecs", "0", "0ms", "", "1ns"] {
        let json = serde_json::json!({ "delay": written }).to_string();
        let configured = serde_json::from_str::<HedgeConfig>(&json);
        match (text::parse_duration(written), configured) {
            (Ok(duration), Ok(config)) => {
                let policy = config.hedge().policy().clone();
                assert_eq!(policy.schedule, Schedule::from(duration), "{written:?}");
            }
            (Err(hint), Err(refused)) => {
                let refused = refused.to_string();
                assert!(refused.starts_with("delay"), "{written:?}: {refused}");
                assert!(!hint.is_empty());
            }
            (parsed, configured) => {
                panic!("{written:?}: {parsed:?}, but in a file {configured:?}")
            }
        }
    }
}
