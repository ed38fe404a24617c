//! Calls of a key: learned apart, under the policy they share.

use std::ptr;
use std::sync::Arc;

use hedgerow::latency::{Learning, Percentile, Rule};
use hedgerow::testing::Tokens;
use hedgerow::{Attempt, Budget, Gate, Hedge};
use tokio::time::{Instant, sleep};

use crate::support::{both, ms};

/// Hedges what is slower than 99 of 100: no coin is tossed, and no call of the bodies below is.
fn p99() -> Hedge {
    let rule = Rule::Percentile(Percentile::P99);
    Hedge::adaptive().learning(Learning { rule, ..Learning::default() })
}

/// A call whose primary takes so long and whose hedges answer at once. When its hedge started, if
/// one did.
async fn call(hedge: &Hedge, primary_ms: u64) -> Option<u64> {
    let start = Instant::now();
    let mut hedged = None;
    let work = |attempt: Attempt| {
        if attempt.number() > 0 {
            hedged = Some(start.elapsed());
        }
        let takes = if attempt.number() == 0 { primary_ms } else { 0 };
        async move {
            sleep(ms(takes)).await;
            Ok::<_, &str>(())
        }
    };
    assert_eq!(hedge.call(work).await, Ok(()));
    hedged.map(|at| u64::try_from(at.as_millis()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn keys_have_delays_of_their_own_and_follow_the_policy_before() {
    for hedge in both(p99()) {
        let [quick, slow, new] = ["quick", "slow", "new"].map(|name| hedge.key(name));
        for turn in 0..1_200 {
            call(&quick, 10 + turn % 10).await;
            call(&slow, 100 + 10 * (turn % 10)).await;
        }
        for (policy, grown) in [(&quick, true), (&slow, true), (&new, false)] {
            assert_eq!(policy.explain().unwrap().young, !grown);
        }
        assert_eq!(new.explain().unwrap().plan, hedge.explain().unwrap().plan);
        let said = new.explain().unwrap().to_string();
        assert!(said.starts_with("like its parent, for want of calls of its own: "), "{said}");
        let at = call(&quick, 5_000).await.unwrap();
        assert!((19..21).contains(&at), "{at}");
        let at = call(&slow, 5_000).await.unwrap();
        assert!((190..200).contains(&at), "{at}");
        // The whole policy sees both kinds, and waits for the slow one.
        let at = call(&new, 5_000).await.unwrap();
        assert!((190..200).contains(&at), "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_name_is_the_same_key_for_every_clone() {
    let hedge = Hedge::adaptive().max_extra_load(0.1).max_hedges(2);
    let (key, clone) = (hedge.key("search"), hedge.clone().key("search"));
    let learner = |hedge: &Hedge| ptr::from_ref(hedge.learner().unwrap());
    assert_eq!(learner(&key), learner(&clone));
    for other in [&hedge, &hedge.server("search"), &key.server("search"), &key.key("search")] {
        assert_ne!(learner(&key), learner(other));
    }
    assert_eq!(learner(&key.server("a")), learner(&clone.server("a")));
    // Options are the policy's, and setters after it change only this one.
    assert_eq!(key.policy().max_hedges.get(), 2);
    assert_eq!(key.clone().max_hedges(1).policy().max_hedges.get(), 1);
    assert_eq!(learner(&key), learner(&key.clone().max_hedges(1)));
    // What is refused is counted for the key and for all.
    call(&key, 10).await;
    call(&hedge, 10).await;
    assert_eq!(key.explain().unwrap().refused, [(Gate::Cold, 1)]);
    assert_eq!(hedge.explain().unwrap().refused, [(Gate::Cold, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_does_not_learn_is_the_same_for_every_key() {
    let hedge = Hedge::after(ms(20)).max_keys(1).max_extra_load(1.0);
    let (key, server) = (hedge.key("a"), hedge.server("b"));
    assert!(key.explain().is_none() && server.explain().is_none());
    assert_eq!(call(&key, 100).await, None, "nothing is saved up yet");
    assert_eq!(call(&server, 100).await, Some(20), "the budget is shared");
}

#[tokio::test(start_paused = true)]
async fn all_keys_together_stay_within_the_load() {
    let hedge = Hedge::adaptive();
    let keys = ["a", "b", "c"].map(|name| hedge.key(name));
    let (mut made, mut hedges) = (0, 0);
    for turn in 0..2_000 {
        for key in &keys {
            let stalls = turn % 33 == 0;
            hedges += u32::from(call(key, if stalls { 500 } else { 10 }).await.is_some());
            made += 1;
        }
    }
    assert!(hedges > 100, "{hedges}");
    assert!(f64::from(hedges) <= 0.05 * f64::from(made) + 20.0, "{hedges}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_forgotten_key_go_on() {
    let hedge = p99().max_keys(2);
    let old = hedge.key("old");
    for turn in 0..1_100 {
        call(&old, 10 + turn % 10).await;
    }
    assert!(!old.explain().unwrap().young);
    let under_way = call(&old, 5_000);
    let forgetting = async {
        for number in 0..100 {
            let _ = hedge.key(&format!("{number}"));
        }
    };
    let (hedged, ()) = tokio::join!(under_way, forgetting);
    assert!((19..21).contains(&hedged.unwrap()), "{hedged:?}");
    assert!(!old.explain().unwrap().young, "whoever keeps it keeps it");
    assert!(hedge.key("old").explain().unwrap().young, "by name it is a new one");
}

#[tokio::test(start_paused = true)]
async fn a_new_bound_or_load_forgets_the_keys() {
    let hedge = Hedge::adaptive().max_keys(1);
    let key = hedge.key("a");
    let other = hedge.clone().max_extra_load(0.1);
    assert_eq!(other.learner().unwrap().learning().max_keys.get(), 1);
    let learner = |hedge: &Hedge| ptr::from_ref(hedge.learner().unwrap());
    assert_ne!(learner(&other.key("a")), learner(&key));
    assert_eq!(learner(&hedge.key("a")), learner(&key));
}

#[test]
fn a_new_bound_keeps_the_budget() {
    let shared: Arc<dyn Budget> = Arc::new(Tokens::new(1));
    let hedge = Hedge::adaptive().budget(Arc::clone(&shared)).max_keys(9);
    assert!(Arc::ptr_eq(hedge.policy().budget.as_ref().unwrap(), &shared));
}

#[test]
#[should_panic(expected = "max_keys = 0: every key takes memory; use 1 to 10000")]
fn no_keys_at_all_are_refused() {
    let _ = Hedge::adaptive().max_keys(0);
}
