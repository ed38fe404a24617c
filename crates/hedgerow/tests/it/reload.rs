//! PR-95, the library's side: a policy that is changed while calls are made through it.

use std::sync::Arc;

use hedgerow::latency::Learning;
use hedgerow::testing::Tokens;
use hedgerow::{Budget, Hedge, PolicyHandle};
use tokio::time::sleep;

use crate::support::{Answer, Events, Notes, ms, ok, work};

fn slow(handle: &PolicyHandle, notes: &Notes) -> tokio::task::JoinHandle<Answer> {
    let (hedge, work) = (handle.get(), work(notes, [ok(300, "a"), ok(100, "b")]));
    tokio::spawn(async move { hedge.call(work).await })
}

#[tokio::test(start_paused = true)]
async fn pr_95_after_the_switch_no_hedge_starts_and_what_is_under_way_goes_on() {
    let (notes, handle) = (Notes::new(), PolicyHandle::new(Hedge::after(ms(50))));
    let before: Vec<_> = (0..100).map(|_| slow(&handle, &notes)).collect();
    sleep(ms(10)).await;
    handle.set(Hedge::after(ms(50)).max_hedges(0));
    let after: Vec<_> = (0..100).map(|_| slow(&handle, &notes)).collect();
    for call in before {
        assert_eq!(call.await.unwrap(), Ok("b"), "it ends under the policy that it began with");
    }
    for call in after {
        assert_eq!(call.await.unwrap(), Ok("a"));
    }
    assert_eq!(notes.count("A1 starts"), 100);
    handle.set(Hedge::after(ms(50)));
    assert_eq!(slow(&handle, &notes).await.unwrap(), Ok("b"), "and on again");
}

/// A policy that has learned from two thousand calls, one in fifty of which is slow.
async fn experienced() -> Hedge {
    let hedge = Hedge::adaptive();
    for call in 0..2_000 {
        let after = if call % 50 == 0 { 400 } else { 10 + call % 10 };
        let script = [ok(after, "a"), ok(10, "b")];
        assert!(hedge.call(work(&Notes::new(), script)).await.is_ok());
    }
    assert!(hedge.explain().unwrap().plan.delay.is_some());
    hedge
}

#[tokio::test(start_paused = true)]
async fn pr_95_a_change_keeps_what_was_learned() {
    let handle = PolicyHandle::new(experienced().await);
    let delay = || handle.get().explain().unwrap().plan.delay;
    let before = delay();
    handle.set(Hedge::adaptive().max_extra_load(0.02));
    assert!(delay() >= before && delay().is_some(), "less load, later hedges: {:?}", delay());
    handle.set(Hedge::after(ms(50)));
    assert!(handle.get().explain().is_none());
    handle.set(Hedge::adaptive());
    assert_eq!(delay(), None, "a policy that did not learn has nothing to hand on");
}

#[tokio::test(start_paused = true)]
async fn pr_95_what_goes_on_learns_in_the_same_time() {
    let handle = PolicyHandle::new(experienced().await);
    handle.set(Hedge::adaptive());
    // Ten seconds of calls that take ten times as long outweigh the two seconds before.
    for call in 0..1_000 {
        let script = [ok(100 + call % 100, "a"), ok(100, "b")];
        assert!(handle.get().call(work(&Notes::new(), script)).await.is_ok());
    }
    let median = handle.get().explain().unwrap().median.unwrap();
    assert!(median > ms(90), "{median:?}");
}

#[test]
fn pr_95_the_budget_goes_on_if_its_ratio_stays() {
    let hedge = Hedge::default().max_extra_load(0.5);
    let level = |hedge: &Hedge| hedge.policy().budget.as_ref().and_then(|budget| budget.level());
    (0..10).for_each(|_| hedge.policy().completed());
    assert_eq!(level(&hedge), Some(5.0));
    assert_eq!(level(&Hedge::after(ms(9)).max_extra_load(0.5).taking_over(&hedge)), Some(5.0));
    assert_eq!(level(&Hedge::after(ms(9)).max_extra_load(0.4).taking_over(&hedge)), Some(0.0));
    assert_eq!(level(&Hedge::after(ms(9)).taking_over(&hedge)), None);
    let own: Arc<dyn Budget> = Arc::new(Tokens::new(1));
    let with_own = Hedge::default().budget(Arc::clone(&own)).taking_over(&hedge);
    assert!(Arc::ptr_eq(with_own.policy().budget.as_ref().unwrap(), &own), "a given one stays");
}

#[tokio::test(start_paused = true)]
async fn pr_95_a_policy_from_a_file_goes_on_being_watched() {
    let events = Events::default();
    let handle = PolicyHandle::new(Hedge::default().observer(events.observer()));
    handle.set(Hedge::after(ms(50)));
    let notes = Notes::new();
    assert_eq!(slow(&handle, &notes).await.unwrap(), Ok("b"));
    assert_eq!(events.count("hedge(1,delay)@50"), 1);
    let own = Events::default();
    handle.set(Hedge::after(ms(50)).observer(own.observer()));
    assert_eq!(slow(&handle, &notes).await.unwrap(), Ok("b"));
    assert_eq!((events.count("hedge"), own.count("hedge")), (1, 1), "one of its own stays");
}

#[test]
fn pr_95_clones_of_a_handle_share_the_policy() {
    let handle = PolicyHandle::new(Hedge::default());
    handle.clone().set(Hedge::default().learning(Learning { load: 0.5, ..Learning::default() }));
    let load = handle.get().learner().unwrap().learning().load;
    assert!((load - 0.5).abs() < 1e-12, "{load}");
}
