//! Every two and every three strategies, one inside the other, in every order: whatever the work
//! and the callers do, attempts end once, nothing is kept, and nothing starts too late or too often.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use hedgerow::pipeline::{Hedging, Pipeline, PipelineError, Retry};
use hedgerow::{Event, Hedge, ManualClock, Observer, StrategyEvent, StrategyEventKind};

use crate::p_compositions_draw::{Controls, Drawing, Kind, Purse};
use crate::p_compositions_plan::{Act, Plan};
use crate::p_compositions_stack::{Any, Stack, again};
use crate::p_compositions_world::{Built, Came, Execution, How, Log, Record, drive};
use crate::support::{lock, ms};

const HOUR: Duration = Duration::from_secs(3_600);

/// What is told of each execution.
#[derive(Default)]
struct Told(Mutex<BTreeMap<u64, One>>);

#[derive(Default, Debug)]
struct One {
    started: Vec<Option<u32>>,
    ended: Vec<Option<u32>>,
    over: u32,
}

impl Observer for Told {
    fn event(&self, _: &Event) {}

    fn strategy(&self, event: &StrategyEvent<'_>) {
        let Some(execution) = event.execution else { return };
        let mut told = lock(&self.0);
        let one = told.entry(execution).or_default();
        match event.kind {
            StrategyEventKind::AttemptStarted => one.started.push(event.attempt),
            StrategyEventKind::AttemptEnded { .. } => one.ended.push(event.attempt),
            StrategyEventKind::Over { .. } => one.over += 1,
            _ => {}
        }
    }
}

/// One random world of these strategies: two callers at once, then two more.
fn run(kinds: &[Kind], seed: u64) {
    let rng = &mut Rng::with_seed(seed);
    let clock = ManualClock::new();
    let purse = rng.bool().then(|| Purse::new(rng.u64(..4)));
    let (strategies, controls) =
        Drawing { rng, clock: clock.clone(), purse: purse.clone() }.stack(kinds);
    let stack = Stack::new(strategies);
    let repeats = stack.repeats();
    let told = rng.bool().then(Arc::<Told>::default);
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let builder = match &told {
        Some(told) => builder.observer(Arc::<Told>::clone(told)),
        None => builder,
    };
    let pipeline = builder.with(stack).build().unwrap();
    let plans: Vec<_> = (0..4).map(|_| Plan::draw(rng)).collect();
    let late = rng.u32(..3) == 0;
    let (mut polled, mut logs) = (0, Vec::new());
    let started = |logs: &[Arc<Mutex<Log>>]| -> usize {
        logs.iter().map(|log| lock(log).records.len()).sum()
    };
    let checked = catch_unwind(AssertUnwindSafe(|| {
        for (group, plans) in plans.chunks(2).enumerate() {
            let mut executions: Vec<_> = plans
                .iter()
                .zip(2 * group..)
                .map(|(plan, id)| {
                    Execution::new(&pipeline, &clock, plan, u32::try_from(id).unwrap())
                })
                .collect();
            drive(&mut executions, &clock, late.then_some(&mut *rng));
            nothing_is_left(&executions, &controls, &clock);
            for (execution, id) in executions.iter().zip(2 * group..) {
                let log = lock(&execution.log);
                check(kinds, &controls, execution, &log, u32::try_from(id).unwrap(), late);
                polled += usize::from(execution.polls > 0);
                logs.push(Arc::clone(&execution.log));
            }
        }
        if let Some(purse) = &purse {
            assert_eq!(
                purse.spent(),
                u64::from(again(&repeats)),
                "each grant is a run, or came back"
            );
        }
        if let Some(told) = &told {
            check_told(&lock(&told.0), polled, started(&logs));
        }
        let before = started(&logs);
        serves_again(&pipeline, &controls, &clock);
        assert_eq!(started(&logs), before, "nothing starts within an hour");
    }));
    if let Err(panic) = checked {
        eprintln!("{kinds:?}, seed {seed}, late: {late}\n{controls:?}\n{plans:?}");
        resume_unwind(panic);
    }
}

/// Nothing runs, waits or holds anything, and nothing starts any more.
fn nothing_is_left(executions: &[Execution<'_>], controls: &Controls, clock: &ManualClock) {
    let started = || -> usize { executions.iter().map(|one| lock(&one.log).records.len()).sum() };
    let before = started();
    for one in executions {
        assert_eq!(lock(&one.log).running, 0, "nothing runs");
    }
    for slots in &controls.slots {
        assert_eq!((slots.in_flight(), slots.queued()), (0, 0), "slots come back");
    }
    for rate in &controls.rates {
        assert_eq!(rate.queued(), 0, "nobody waits for a permit");
    }
    assert_eq!(clock.sleepers(), 0, "nobody sleeps");
    clock.advance(ms(3));
    assert_eq!(started(), before, "nothing starts afterwards");
}

fn check(
    kinds: &[Kind],
    controls: &Controls,
    execution: &Execution<'_>,
    log: &Log,
    id: u32,
    late: bool,
) {
    let Log { records, most_running, .. } = log;
    let plan = &execution.plan;
    let since = |record: &Record| record.at.saturating_duration_since(execution.begins);
    for record in records {
        assert_eq!(record.ends.len(), 1, "each attempt ends once: {record:?}");
    }
    let numbers: BTreeSet<_> = records.iter().map(|record| record.number).collect();
    assert_eq!(numbers.len(), records.len(), "no number comes twice: {records:?}");
    assert!(records.len() as u64 <= controls.most, "{} at most: {records:?}", controls.most);
    if let Some(limit) = controls.limit {
        // A thread that was busy may see late that something inside was due, and start it; then it
        // sees that the limit has passed.
        let gone = |record: &Record| late && record.until == record.at;
        let in_time = |record: &Record| since(record) <= limit || gone(record);
        assert!(
            records.iter().all(in_time),
            "nothing starts after the limit {limit:?}: {records:?}"
        );
    }
    if !plan.idempotent {
        assert!(*most_running <= 1, "one at a time: {records:?}");
        let earlier = records.iter().rev().skip(1);
        for record in earlier {
            let busy = matches!(record.act, Act::Busy(_)) && record.ends == [How::Ended];
            assert!(busy, "what started is not repeated: {records:?}");
        }
    }
    if let Some(deadline) = plan.deadline.filter(|_| starts_at_once(kinds) && !late) {
        let in_time = |record: &Record| record.number == 0 || since(record) < ms(deadline);
        assert!(records.iter().all(in_time), "nothing more at {deadline}: {records:?}");
    }
    check_tokens(kinds, execution, records, id);
}

/// Whether further attempts start when the retry or the hedge lets them.
fn starts_at_once(kinds: &[Kind]) -> bool {
    let waits = [Kind::RateWaits, Kind::Concurrency, Kind::Latency, Kind::Custom];
    !kinds.iter().any(|kind| waits.contains(kind))
}

fn check_tokens(kinds: &[Kind], execution: &Execution<'_>, records: &[Record], id: u32) {
    let came = execution.came.as_ref().unwrap();
    if !execution.plan.has_tokens() {
        return;
    }
    for record in records {
        let fired = record.token.as_ref().expect("each has one").is_cancelled();
        if record.ends == [How::Dropped] {
            assert!(fired, "told before it is dropped: {came:?}: {record:?}");
        }
        if matches!(came, Came::Ended(Ok(value)) if *value == 1_000 * id + record.number) {
            // Unless its caller cancelled at that very moment, or a cache has kept what a loser said.
            let spared = execution.cancelled || kinds.contains(&Kind::Cache);
            assert!(!fired || spared, "the winner goes on: {record:?}");
        }
    }
}

fn check_told(told: &BTreeMap<u64, One>, polled: usize, started: usize) {
    assert_eq!(told.len(), polled, "each that was polled is told of");
    let attempts: usize = told.values().map(|one| one.started.len()).sum();
    assert_eq!(attempts, started, "each attempt is told of");
    for one in told.values() {
        assert_eq!(one.over, 1, "over once: {one:?}");
        let sorted = |numbers: &[Option<u32>]| {
            let mut numbers = numbers.to_vec();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(sorted(&one.started), sorted(&one.ended), "each ends as often as it starts");
    }
}

/// After enough time it lets good work through.
fn serves_again(pipeline: &Built, controls: &Controls, clock: &ManualClock) {
    clock.advance(HOUR);
    controls.caches.iter().for_each(hedgerow::pipeline::CacheControl::invalidate);
    controls.chaos.iter().for_each(hedgerow::pipeline::ChaosControl::disable);
    let mut executions = [Execution::new(pipeline, clock, &Plan::simple(), 9)];
    drive(&mut executions, clock, None);
    let came = executions[0].came.as_ref();
    assert!(matches!(came, Some(Came::Ended(Ok(9_000)))), "it serves again: {came:?}");
    nothing_is_left(&executions, controls, clock);
}

/// The primary is rejected, the hedge runs and fails: what the hedged call returns must not make
/// the retry believe that nothing ran.
#[test]
fn t36_a_retry_around_a_hedge_does_not_repeat_what_ran() {
    let clock = ManualClock::new();
    let hedge = Hedge::after(ms(50)).max_hedges(1).hedge_rejections(true);
    let strategies = vec![
        Any::Retry(Retry::immediately().max_retries(2)),
        Any::Hedge(Box::new(Hedging::new(hedge))),
    ];
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.with(Stack::new(strategies)).build().unwrap();
    let acts = vec![Act::Busy(10), Act::Bad(10), Act::Good(0)];
    let plan = Plan { acts, idempotent: false, handles_rejections: true, ..Plan::simple() };
    let mut executions = [Execution::new(&pipeline, &clock, &plan, 0)];
    drive(&mut executions, &clock, None);
    let [Execution { came, log, .. }] = &executions;
    assert!(matches!(came, Some(Came::Ended(Err(PipelineError::Failed("bad"))))), "{came:?}");
    assert_eq!(lock(log).records.len(), 2, "the second one ran");
}

#[test]
fn every_two_strategies_keep_the_rules() {
    for (index, outer) in (0_u64..).zip(Kind::ALL) {
        for (offset, inner) in (0_u64..).zip(Kind::ALL) {
            for script in 0..100 {
                run(&[outer, inner], 1_000 * (100 * index + offset) + script);
            }
        }
    }
}

#[test]
fn every_three_strategies_keep_the_rules() {
    let all = Kind::ALL;
    for index in 0..all.len().pow(3) {
        let digit = |power| all[index / all.len().pow(power) % all.len()];
        for script in 0..40 {
            run(&[digit(2), digit(1), digit(0)], 1_000_000 + 1_000 * index as u64 + script);
        }
    }
}
