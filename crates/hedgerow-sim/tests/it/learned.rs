//! The learned policy under load, under change, and on little traffic.

use std::time::Duration;

use hedgerow_sim::{Arrivals, Distribution, Load, Model, Outcome, Servers, Slow, Step, Work, run};

use crate::support::{adaptive, none};

/// A body around 5 ms, in which this share takes 200 ms more.
fn stalling(share: f64) -> Distribution {
    let body = Distribution::lognormal_around(5.0, 0.35).unwrap();
    body.with_stalls(share, 1.0, 200.0).unwrap()
}

fn load(steps: &[(f64, u64)]) -> Load {
    let step = |(rate, seconds): &(f64, u64)| Step::lasting(*rate, Duration::from_secs(*seconds));
    let steps: Vec<_> = steps.iter().map(|step_of| step(step_of).unwrap()).collect();
    Load::new(Arrivals::Poisson, steps).unwrap()
}

fn p99(outcome: &Outcome, step: usize) -> f64 {
    outcome.steps[step].latency.quantile_ms(0.99)
}

/// The p99 of each of four runs, over that without hedging, by step.
fn ratios(model: &Model, step: usize) -> [f64; 4] {
    [1, 2, 3, 4].map(|seed| {
        p99(&run(model, &adaptive(), seed), step) / p99(&run(model, &none(), seed), step)
    })
}

#[test]
fn three_times_slower_for_five_seconds_is_followed_within_half_a_second() {
    let second = Duration::from_secs(1);
    let slow = Slow::new(10 * second, 15 * second, 3.0).unwrap();
    let servers = Servers::default().slow(slow).unwrap();
    let steps = [(1_000.0, 10), (1_000.0, 5), (1_000.0, 10)];
    let model = Model::new(Work::new(stalling(0.02)), servers, load(&steps));
    for seed in [1, 2, 3, 4] {
        let outcome = run(&model, &adaptive(), seed);
        let [usual, triple, again] = [0, 1, 2].map(|step| p99(&outcome, step));
        assert!(usual < 17.0 && triple < 50.0 && again < 18.0, "{usual} {triple} {again}");
        // What was saved up before is spent as well.
        let extra = outcome.steps[1].extra_load();
        assert!(extra < 0.05 + 20.0 / 5_000.0, "{extra}");
    }
}

/// Beyond capacity everything waits longer, which is no change of scale, and hedges would only add
/// to the queue. One run in a hundred is unlucky by a fifth; the median of these is what counts.
#[test]
fn beyond_capacity_it_is_not_worse_than_no_hedging() {
    let steps = [(1_200.0, 5), (2_000.0, 5), (2_100.0, 5), (2_300.0, 5), (1_200.0, 5)];
    let servers = Servers::limited(1, 20).unwrap();
    let model = Model::new(Work::new(stalling(0.02)), servers, load(&steps));
    for step in [2, 3, 4] {
        let mut ratios = ratios(&model, step);
        ratios.sort_by(f64::total_cmp);
        assert!(ratios[2] < 1.06 && ratios[3] < 1.2, "step {step}: {ratios:?}");
    }
}

/// At three quarters of the capacity, where a fixed delay without a bound collapses.
#[test]
fn a_busy_pool_is_helped() {
    let servers = Servers::limited(1, 20).unwrap();
    let steps = [(800.0, 5), (1_600.0, 5)];
    let model = Model::new(Work::new(stalling(0.02)), servers, load(&steps));
    for ratio in ratios(&model, 1) {
        assert!(ratio < 0.55, "{ratio}");
    }
}

/// Of two stalls in a hundred nearly all are hedged, whatever the rate: the p99.9 is theirs.
#[test]
fn little_traffic_has_its_p999_too() {
    for rate in [10.0, 100.0] {
        let load = crate::support::requests(rate, 60_000);
        let model = Model::new(Work::new(stalling(0.02)), Servers::default(), load);
        let stats = run(&model, &adaptive(), 1).total();
        let [p99, p999] = [0.99, 0.999].map(|share| stats.latency.quantile_ms(share));
        assert!(p99 < 15.5 && p999 < 25.0, "{rate}: {p99} {p999}");
    }
}

/// More stalls than may be hedged: the delay goes before them, and hedges win.
#[test]
fn more_stalls_than_load_are_hedged_early() {
    let load = crate::support::requests(1_000.0, 60_000);
    let model = Model::new(Work::new(stalling(0.08)), Servers::default(), load);
    let stats = run(&model, &adaptive(), 1).total();
    assert!(stats.latency.quantile_ms(0.95) < 60.0, "{}", stats.latency.quantile_ms(0.95));
    assert!(stats.win_rate() > 0.8, "{}", stats.win_rate());
}
