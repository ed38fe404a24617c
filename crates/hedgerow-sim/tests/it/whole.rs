//! Determinism, nothing lost, parts and wholes.

use std::time::Duration;

use hedgerow_core::Losers;
use hedgerow_sim::{
    Arrivals, Balancer, Distribution, Load, Model, OnCancel, Outcome, Progress, Servers, Step,
    Strategy, Work, run, run_each,
};
use proptest::prelude::*;

use crate::support::{adaptive, after, bounded, none};

/// Two steps on some servers with two workers each, beyond what they can do for a while.
fn busy(balancer: Balancer, on_cancel: OnCancel, fan_out: u32) -> Model {
    let latency = Distribution::lognormal_around(5.0, 0.35).unwrap();
    let work = Work::new(latency.with_stalls(0.02, 1.0, 200.0).unwrap());
    let servers = Servers::limited(5, 2).unwrap().balancer(balancer);
    let servers = servers.on_cancel(on_cancel, Duration::from_millis(1));
    let rate = 1_200.0 / f64::from(fan_out);
    let steps = [
        Step::lasting(rate, Duration::from_secs(2)).unwrap(),
        Step::lasting(rate / 2.0, Duration::from_secs(2)).unwrap(),
    ];
    let load = Load::new(Arrivals::Poisson, steps).unwrap().fan_out(fan_out).unwrap();
    Model::new(work, servers, load)
}

const BALANCERS: [Balancer; 3] = [Balancer::Random, Balancer::RoundRobin, Balancer::PowerOfTwo];
const ON_CANCEL: [OnCancel; 3] = [OnCancel::Ignore, OnCancel::Queued, OnCancel::Running];

#[test]
fn a_seed_gives_one_outcome() {
    let model = busy(Balancer::PowerOfTwo, OnCancel::Queued, 3);
    let once = |seed| run(&model, &Strategy::new(bounded(10.0, 0.05)), seed);
    assert_eq!(once(1), once(1));
    assert_ne!(once(1), once(2));
}

#[test]
fn runs_on_many_threads_are_the_runs_one_by_one() {
    let model = busy(Balancer::Random, OnCancel::Ignore, 1);
    let strategy = || Strategy::new(bounded(10.0, 0.05));
    let seeds: Vec<u64> = (1..=7).collect();
    let on = |threads| run_each(&model, strategy, &seeds, threads, &Progress::default());
    let (one, four) = (on(1), on(4));
    assert_eq!(one, four);
    let alone: Vec<_> = seeds.iter().map(|seed| run(&model, &strategy(), *seed)).collect();
    assert_eq!(one, alone);
    let mut forwards = Outcome::default();
    for outcome in &one {
        forwards.merge(outcome);
    }
    let mut backwards = Outcome::default();
    four.iter().rev().for_each(|outcome| backwards.merge(outcome));
    assert_eq!(forwards, backwards);
}

/// What is learned, too, depends on nothing but the seed.
#[test]
fn a_learned_policy_is_deterministic() {
    let model = busy(Balancer::PowerOfTwo, OnCancel::Queued, 1);
    let seeds = [1, 2, 3, 4];
    let on = |threads| run_each(&model, adaptive, &seeds, threads, &Progress::default());
    let one = on(1);
    assert_eq!(one, on(3));
    let mut whole = Outcome::default();
    for outcome in &one {
        whole.merge(outcome);
    }
    let load = whole.total().extra_load();
    assert!((0.005..=0.06).contains(&load), "{load}");
}

#[test]
fn primaries_are_alike_under_every_policy() {
    let model = busy(Balancer::Random, OnCancel::Ignore, 1);
    let counts = |strategy: Strategy| {
        run(&model, &strategy, 3).steps.iter().map(|step| step.calls).collect::<Vec<_>>()
    };
    assert_eq!(counts(none()), counts(Strategy::new(after(5.0))));
    // Without queues nothing else has a say: the median cannot move by a hedge of the tail.
    let work = Work::new(Distribution::exponential(5.0).unwrap());
    let model = crate::support::unlimited(work, 10_000).exact();
    let p50 = |strategy| run(&model, &strategy, 3).total().latency.quantile_ms(0.5);
    assert!((p50(none()) - p50(Strategy::new(after(20.0)))).abs() < 1e-12);
}

#[test]
fn stopping_losers_gives_their_workers_back() {
    let p99 = |on_cancel| {
        let model = busy(Balancer::PowerOfTwo, on_cancel, 1);
        run(&model, &Strategy::new(after(15.0)), 1).steps[1].latency.quantile_ms(0.99)
    };
    let [ignore, queued, running] = ON_CANCEL.map(p99);
    assert!(running < queued && queued < ignore, "{running} {queued} {ignore}");
}

#[test]
fn the_less_loaded_of_two_is_the_better_server() {
    let mean = |balancer| {
        let model = busy(balancer, OnCancel::Ignore, 1);
        run(&model, &none(), 1).total().latency.mean_ms()
    };
    let [random, in_turn, of_two] = BALANCERS.map(mean);
    assert!(2.0 * of_two < in_turn.min(random), "{of_two} {in_turn} {random}");
}

#[test]
fn joining_waits_for_the_losers() {
    let work = Work::new(Distribution::exponential(10.0).unwrap());
    let model = crate::support::unlimited(work, 20_000);
    let p99 = |losers| {
        let mut policy = after(5.0);
        policy.losers = losers;
        run(&model, &Strategy::new(policy), 1).total().latency.quantile_ms(0.99)
    };
    let (dropped, joined) = (p99(Losers::Drop), p99(Losers::Join { grace: None }));
    assert!(joined > 1.5 * dropped, "{joined} {dropped}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every request completes once, whatever the world and the policy.
    #[test]
    fn nothing_is_lost(
        balancer in 0..3_usize,
        on_cancel in 0..3_usize,
        fan_out in 1..4_u32,
        delay in 0.0..30.0_f64,
        losers in prop::sample::select(vec![
            Losers::Drop,
            Losers::Detach,
            Losers::Join { grace: None },
            Losers::Join { grace: Some(Duration::from_millis(10)) },
        ]),
        seed in 0..1_000_u64,
    ) {
        let model = busy(BALANCERS[balancer], ON_CANCEL[on_cancel], fan_out);
        let mut policy = bounded(delay, 0.2);
        policy.losers = losers;
        let with = run(&model, &Strategy::new(policy), seed);
        let without = run(&model, &none(), seed);
        for (with, without) in with.steps.iter().zip(&without.steps) {
            prop_assert_eq!(with.requests(), without.requests());
            prop_assert_eq!(with.calls, with.requests() * u64::from(fan_out));
            prop_assert!(with.won <= with.hedges && with.hedges <= with.calls);
            prop_assert!(with.in_time <= with.requests());
        }
    }
}
