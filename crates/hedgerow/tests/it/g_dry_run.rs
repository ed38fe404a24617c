//! G7: a dry run decides and counts everything, and sends nothing.

use std::sync::Arc;

use hedgerow::latency::Learning;
use hedgerow::testing::Tokens;
use hedgerow::{FailureStart, Gate, Hedge, NextHedge, Observer};

use crate::h_generator::Next;
use crate::support::{Act, Answer, Events, Notes, both, err, ms, ok, work};

/// Learned already: hedge after 50 ms.
fn learned() -> Hedge {
    Hedge::default().learning(Learning { initial: Some(ms(50)), ..Learning::default() })
}

/// Awaits the call with hooks that must not run, on both paths.
async fn play<const N: usize>(hedge: Hedge, script: [Act; N]) -> (Answer, u64) {
    let mut told = vec![];
    for hedge in both(hedge) {
        let notes = Notes::new();
        let answer = hedge
            .call(work(&notes, script))
            .next_action(|_| -> Next { panic!("no hedge is set up") })
            .on_hedge(|_: &NextHedge<'_>| panic!("no hedge starts"))
            .await;
        assert_eq!(notes.count("A1"), 0);
        told.push((answer, notes.at()));
    }
    let last = told.pop().unwrap();
    assert_eq!(told.pop().unwrap(), last, "both paths agree");
    last
}

#[tokio::test(start_paused = true)]
async fn g07_the_primarys_result_is_untouched() {
    let hedge = || Hedge::after(ms(50)).max_hedges(3).dry_run(true);
    assert_eq!(play(hedge(), [ok(20, "a"), ok(0, "b")]).await, (Ok("a"), 20));
    assert_eq!(play(hedge(), [ok(300, "a"), ok(0, "b")]).await, (Ok("a"), 300));
    assert_eq!(play(hedge(), [err(30, "p"), ok(0, "b")]).await, (Err("p"), 30));
    assert_eq!(play(hedge(), [err(300, "p"), ok(0, "b")]).await, (Err("p"), 300));
    let waits = hedge().failure_start(FailureStart::Wait);
    assert_eq!(play(waits, [err(30, "p"), ok(0, "b")]).await, (Err("p"), 50), "it would wait");
    let none = hedge().max_hedges(0);
    assert_eq!(play(none, [err(30, "p"), ok(0, "b")]).await, (Err("p"), 30));
}

#[tokio::test(start_paused = true)]
async fn g07_a_hedge_that_was_not_sent_is_told_once() {
    for (primary, denied) in [
        (ok(300, "a"), Some("denied(1,dry-run)@50")),
        (err(30, "p"), Some("denied(1,dry-run)@30")),
        (ok(50, "a"), None),
    ] {
        let (notes, events) = (Notes::new(), Events::default());
        let observer: Arc<dyn Observer> = events.observer();
        let hedge = Hedge::after(ms(50)).max_hedges(3).dry_run(true).observer(observer);
        let report = hedge.call(work(&notes, [primary, ok(0, "b")])).settle().await;
        assert_eq!(report.hedges_started(), 0);
        assert_eq!(report.not_hedged().map(|(gate, _)| gate), denied.map(|_| Gate::DryRun));
        assert_eq!(events.count("denied"), usize::from(denied.is_some()));
        assert_eq!(events.count(denied.unwrap_or("start(0)@0")), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g07_the_budget_pays_for_what_is_not_sent() {
    let tokens = Arc::new(Tokens::new(2));
    let hedge = learned().budget(Arc::clone(&tokens) as Arc<_>).dry_run(true);
    for left in [1, 0, 0] {
        let notes = Notes::new();
        assert_eq!(hedge.call(work(&notes, [ok(300, "a")])).await, Ok("a"));
        assert_eq!(tokens.left(), left);
    }
    let why = hedge.explain().unwrap();
    assert_eq!(why.refused, [(Gate::Budget, 1), (Gate::DryRun, 2)]);
    let text = why.to_string();
    assert!(text.ends_with("; budget: 1; dry run: 2 calls would have been hedged"), "{text}");
    assert!((why.win_rate - 1.0).abs() < 1e-12, "no hedge lost");
}

#[tokio::test(start_paused = true)]
async fn g07_other_gates_come_first() {
    let hedge = learned().budget(Arc::new(Tokens::new(9))).dry_run(true);
    let notes = Notes::new();
    let answer = hedge.call(work(&notes, [ok(300, "a")])).deadline(ms(40)).await;
    assert_eq!(answer, Ok("a"));
    let answer = hedge.call(work(&notes, [ok(300, "a")])).idempotent(false).await;
    assert_eq!(answer, Ok("a"));
    let refused = hedge.explain().unwrap().refused;
    assert_eq!(refused, [(Gate::Deadline, 1), (Gate::NotIdempotent, 1)]);
}
