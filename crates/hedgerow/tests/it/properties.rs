//! Random policies and scripts, on every front.
//!
//! Times lie on a coarse grid, so that everything that can happen in one instant does.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow::testing::{Front, ReturnedKind, Scenario, Script, Scripted, Timeline, TimelineEvent};
use hedgerow::{
    Delay, Exhausted, FailureStart, Hedge, Losers, Moment, Panics, Pushback, RejectedHedge,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::support::ms;

fn grid() -> impl Strategy<Value = Duration> {
    (0_u64..=6).prop_map(|steps| ms(steps * 10))
}

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        4 => grid().prop_map(Delay::After),
        1 => Just(Delay::Immediately),
        1 => Just(Delay::OnFailure),
        1 => Just(Delay::After(Duration::MAX)),
    ]
}

fn losers() -> impl Strategy<Value = Losers> {
    prop_oneof![
        3 => Just(Losers::Drop),
        2 => option::of(grid()).prop_map(|grace| Losers::Join { grace }),
        1 => Just(Losers::Detach),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let outcome = prop_oneof![
        3 => Just(Scripted::Ok),
        4 => Just(Scripted::Error),
        1 => Just(Scripted::Bad),
        1 => Just(Scripted::Fatal),
        2 => Just(Scripted::Rejected),
        1 => Just(Scripted::Never),
        1 => Just(Scripted::Panic),
    ];
    let pushback = prop_oneof![
        12 => Just(None),
        1 => Just(Some(Pushback::Stop)),
        2 => grid().prop_map(|wait| Some(Pushback::For(wait))),
        1 => Just(Some(Pushback::For(Duration::MAX))),
    ];
    (grid(), outcome, grid(), pushback).prop_map(|(after, outcome, cleanup, pushback)| {
        Script::new(after, outcome, None).cleanup(cleanup).pushback(pushback)
    })
}

fn policy() -> impl Strategy<Value = Hedge> {
    let failure_start = prop_oneof![
        2 => Just(FailureStart::Launch),
        1 => Just(FailureStart::LaunchWhenIdle),
        1 => Just(FailureStart::Wait),
    ];
    let exhausted =
        prop_oneof![Just(Exhausted::Primary), Just(Exhausted::First), Just(Exhausted::Last)];
    let rejected = prop_oneof![
        Just(RejectedHedge::Stop),
        Just(RejectedHedge::Decide),
        Just(RejectedHedge::Hedge)
    ];
    let panics = prop_oneof![Just(Panics::Propagate), Just(Panics::AsFailure)];
    (
        vec(delay(), 1..4),
        prop_oneof![5 => 0_u32..=3, 1 => 4_u32..=10],
        failure_start,
        exhausted,
        losers(),
        rejected,
        any::<bool>(),
        panics,
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(delays, max, failure_start, exhausted, losers, rejected, hedge, panics, dry)| {
                Hedge::default()
                    .delay(delays)
                    .max_hedges(max)
                    .failure_start(failure_start)
                    .exhausted(exhausted)
                    .losers(losers)
                    .rejected_hedge(rejected)
                    .hedge_rejections(hedge)
                    .panics(panics)
                    .dry_run(dry)
            },
        )
}

/// Any scenario.
pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    (
        policy(),
        vec(script(), 0..6),
        option::weighted(0.3, 0_u32..4),
        prop::bool::weighted(0.85),
        option::weighted(0.25, (0_u64..=15).prop_map(|steps| ms(steps * 10))),
    )
        .prop_map(|(hedge, script, tokens, idempotent, cancel_at)| {
            Scenario::new(hedge)
                .script(script)
                .tokens(tokens)
                .idempotent(idempotent)
                .cancel_at(cancel_at)
        })
}

/// What must hold whatever the policy and the script are.
fn check(scenario: &Scenario, timeline: &Timeline) -> Result<(), TestCaseError> {
    let policy = scenario.hedge().policy();
    let hedges = timeline.starts.len().saturating_sub(1);
    prop_assert!(hedges <= usize::from(policy.max_hedges.get()), "more hedges than allowed");
    prop_assert!(hedges == 0 || !policy.dry_run, "a dry run sent one");
    let denied = timeline.events.iter().filter(|it| matches!(it, TimelineEvent::Denied(..)));
    prop_assert!(denied.count() <= 1, "launching ends once");
    if let Some(tokens) = scenario.granted() {
        prop_assert!(hedges <= tokens as usize, "the budget is overdrawn");
    }

    let numbers: Vec<_> = timeline.starts.iter().map(|(attempt, _)| *attempt).collect();
    let expected: Vec<_> = (0..u8::try_from(numbers.len()).unwrap()).collect();
    prop_assert_eq!(&numbers, &expected, "attempts are numbered in start order");
    prop_assert!(timeline.starts.is_sorted_by_key(|(_, at)| *at), "time goes forward");

    let mut ends: BTreeMap<u8, Moment> = BTreeMap::new();
    for (attempt, at, _) in &timeline.ended {
        prop_assert!(ends.insert(*attempt, *at).is_none(), "an attempt ended twice");
        prop_assert!(timeline.starts[usize::from(*attempt)].1 <= *at, "ended before it started");
    }
    let hangs = timeline.returned.kind == ReturnedKind::Hangs;
    if policy.losers != Losers::Detach && !hangs {
        prop_assert_eq!(ends.len(), timeline.starts.len(), "every started attempt ends");
    }

    let decisions = timeline
        .events
        .iter()
        .filter(|event| matches!(event, TimelineEvent::Win(..) | TimelineEvent::Exhausted(_)));
    prop_assert!(decisions.count() <= 1, "one decision");
    prop_assert_eq!(timeline.returned.at.is_none(), hangs);
    let mut suppressed = timeline.suppressed.clone();
    suppressed.sort_unstable();
    suppressed.dedup();
    prop_assert_eq!(suppressed.len(), timeline.suppressed.len(), "a failure is reported once");
    if !scenario.is_idempotent() {
        for pair in timeline.starts.windows(2) {
            let (earlier, _) = pair[0];
            let ended = ends.get(&earlier);
            prop_assert!(ended.is_some_and(|end| *end <= pair[1].1), "it ran concurrently");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pr_34_the_fronts_agree_and_the_invariants_hold(scenario in scenario()) {
        let engine = scenario.run(Front::Engine);
        check(&scenario, &engine)?;
        for front in [Front::Async, Front::Stream] {
            let timeline = scenario.run(front);
            check(&scenario, &timeline)?;
            prop_assert_eq!(&engine, &timeline, "{:?}", front);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// On threads, of which each case starts a few.
    #[test]
    fn pr_34_threads_agree_with_the_engine(scenario in scenario()) {
        let threads = scenario.run(Front::Blocking);
        check(&scenario, &threads)?;
        prop_assert_eq!(scenario.run(Front::Engine), threads);
    }
}
