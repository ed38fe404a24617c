//! What is learned while hedges cut calls short, by the deployed estimator and by biased ones.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Policy;
use hedgerow_core::latency::{Learner, Learning, Percentile, Rule};
use hedgerow_sim::{
    Arrivals, Distribution, Estimator, Load, Model, Outcome, Servers, Step, Strategy, Work, run,
};

use crate::support::{after, bounded, close, learner, ms, requests, w1};

/// With five thousand calls a second one reading of the p95 has a standard deviation of about 1 %.
const HALF_LIFE: Duration = Duration::from_secs(2);
/// The p70, p95 and p99 of a lognormal latency around 5 ms with a sigma of 1.
const TRUTH: [f64; 3] = [8.447, 25.901, 51.202];

/// Some half-lives, one a step.
fn smooth(half_lives: usize) -> Model {
    let steps = vec![Step::lasting(5_000.0, HALF_LIFE).unwrap(); half_lives];
    let load = Load::new(Arrivals::Poisson, steps).unwrap();
    let latency = Distribution::lognormal_around(5.0, 1.0).unwrap();
    Model::new(Work::new(latency), Servers::default(), load)
}

/// Hedges after the learned percentile, but at most after `max_ms`, without a bound on the load.
fn learned(percentile: f64, max_ms: f64) -> Policy {
    let rule = Rule::Percentile(Percentile::new(percentile).unwrap());
    let max = ms(max_ms);
    let learning = Learning { rule, max, half_life: HALF_LIFE, ..Learning::default() };
    let learner = Some(Arc::new(Learner::new(learning)));
    Policy { learner, ..bounded(1.0, 1.0) }
}

/// The mean over four runs of what is learned in each half-life, over the truth, and the extra
/// load.
fn drift(
    half_lives: usize,
    estimator: Estimator,
    (percentile, max_ms, truth): (f64, f64, f64),
) -> Vec<(f64, f64)> {
    let run = |seed| {
        let strategy = Strategy::new(learned(percentile, max_ms));
        run(&smooth(half_lives), &strategy.with_estimator(estimator).unwrap(), seed)
    };
    let runs = [1, 2, 3, 4].map(run);
    let mean = |figure: &dyn Fn(&Outcome) -> f64| runs.iter().map(figure).sum::<f64>() / 4.0;
    let step = |step: usize| {
        let learned = mean(&|run| run.steps[step].learned.mean_ms());
        (learned / truth - 1.0, mean(&|run| run.steps[step].extra_load()))
    };
    (0..half_lives).map(step).collect()
}

/// Neither up nor down in ten half-lives, whether three calls in ten are hedged or what is learned
/// decides; the first half-life starts from nothing.
#[test]
fn the_deployed_estimate_does_not_drift() {
    let [p70, p95, _] = TRUTH;
    for (max, hedged) in [(p70, 0.30), (f64::from(u32::MAX), 0.05)] {
        for (bias, extra) in &drift(10, Estimator::KaplanMeier, (95.0, max, p95))[1..] {
            assert!(bias.abs() < 0.02, "{bias} at {hedged}");
            assert!((extra / hedged - 1.0).abs() < 0.04, "{extra} instead of {hedged}");
        }
    }
}

#[test]
fn the_deployed_estimate_knows_more_than_was_watched() {
    let [_, p95, p99] = TRUTH;
    let biases = drift(10, Estimator::KaplanMeier, (99.0, p95, p99));
    let mean = biases[1..].iter().map(|(bias, _)| bias).sum::<f64>() / 9.0;
    assert!(mean.abs() < 0.02, "{mean}");
}

/// Who forgets whom a hedge has beaten learns that attempts are fast, hedges earlier, and cuts more
/// calls short.
#[test]
fn winners_only_goes_down_and_takes_the_load_up() {
    let figures = drift(6, Estimator::WinnersOnly, (95.0, f64::from(u32::MAX), TRUTH[1]));
    assert!(figures[0].0 > figures[4].0 + 0.02, "{figures:?}");
    for (bias, extra) in &figures[2..] {
        assert!((-0.39..-0.32).contains(bias), "{figures:?}");
        assert!((0.105..0.125).contains(extra), "twice what was asked for: {figures:?}");
    }
}

/// What each believes of the p95 while three in ten are hedged, and of the p99 while one in twenty
/// is.
#[test]
fn who_takes_a_cut_for_an_end_is_wrong_by_a_third_and_more() {
    let [p70, p95, p99] = TRUTH;
    for (estimator, at_p95, at_p99) in [
        (Estimator::WinnersOnly, -0.51, -0.44),
        (Estimator::CutsAsComplete, -0.43, -0.35),
        (Estimator::CallersTime, -0.41, -0.35),
    ] {
        for (percentile, max, truth, wanted) in [(95.0, p70, p95, at_p95), (99.0, p95, p99, at_p99)]
        {
            let (bias, _) = drift(3, estimator, (percentile, max, truth))[2];
            assert!((bias - wanted).abs() < 0.03, "{estimator:?}, p{percentile}: {bias}");
        }
    }
}

#[test]
fn an_estimator_needs_a_percentile_to_estimate() {
    for policy in [after(10.0), Policy { learner: Some(learner()), ..after(10.0) }] {
        let strategy = Strategy::new(policy);
        let error = strategy.clone().with_estimator(Estimator::WinnersOnly).unwrap_err();
        assert_eq!((error.option(), error.value()), ("estimator", "winners-only"));
        assert!(strategy.with_estimator(Estimator::KaplanMeier).is_ok(), "the policy's own");
    }
}

/// What was learned is told where something was, and is what the policy hedges by.
#[test]
fn outcomes_tell_what_was_learned() {
    let load = requests(1_000.0, 20_000);
    let model = Model::new(w1(), Servers::default(), load);
    let fixed = run(&model, &Strategy::new(bounded(10.0, 0.05)), 1).total();
    assert_eq!(fixed.learned.count(), 0);
    let stats = run(&model, &Strategy::new(learned(90.0, 1e6)), 1).total();
    assert!((19_000..20_000).contains(&stats.learned.count()), "{}", stats.learned.count());
    close("p90", stats.learned.mean_ms(), 8.66, 0.03);
}
