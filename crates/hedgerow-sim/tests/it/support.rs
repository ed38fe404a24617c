//! Models and policies that several tests use.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::latency::{Learner, Learning};
use hedgerow_core::{Delay, ExtraLoad, MaxHedges, Policy, RatioBudget, Schedule};
use hedgerow_sim::{
    Arrivals, Distribution, Load, Model, Servers, Stats, Step, Strategy, Work, run,
};

pub(crate) fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// No hedging at all.
pub(crate) fn none() -> Strategy {
    Strategy::new(Policy { max_hedges: MaxHedges::new(0).unwrap(), ..Policy::default() })
}

/// One hedge after this long.
pub(crate) fn after(delay_ms: f64) -> Policy {
    Policy { schedule: Schedule::Every(Delay::After(ms(delay_ms))), ..Policy::default() }
}

/// The same for at most `load` more.
pub(crate) fn bounded(delay_ms: f64, load: f64) -> Policy {
    let budget = RatioBudget::new(ExtraLoad::new(load).unwrap());
    Policy { budget: Some(Arc::new(budget)), ..after(delay_ms) }
}

/// What the learned default learns by.
pub(crate) fn learner() -> Arc<Learner> {
    Arc::new(Learner::new(Learning::default()))
}

/// The learned default: 5 % at most.
pub(crate) fn adaptive() -> Strategy {
    Strategy::new(Policy { learner: Some(learner()), ..bounded(1.0, 0.05) })
}

pub(crate) fn requests(rate: f64, requests: u64) -> Load {
    Load::new(Arrivals::Poisson, [Step::counting(rate, requests).unwrap()]).unwrap()
}

/// Work on servers that take whatever comes at once.
pub(crate) fn unlimited(work: Work, count: u64) -> Model {
    Model::new(work, Servers::default(), requests(1_000.0, count))
}

/// W1: lognormal of mean 5 ms and standard deviation 2 ms, ten times that for one in twenty.
pub(crate) fn w1() -> Work {
    Work::new(Distribution::lognormal(5.0, 2.0).unwrap().with_stalls(0.05, 10.0, 0.0).unwrap())
}

/// What came of all steps.
pub(crate) fn total(model: &Model, strategy: &Strategy, seed: u64) -> Stats {
    run(model, strategy, seed).total()
}

/// Within `share` of what is wanted.
#[track_caller]
pub(crate) fn close(said: &str, value: f64, wanted: f64, share: f64) {
    assert!((value / wanted - 1.0).abs() <= share, "{said}: {value} is not {wanted} +-{share}");
}

/// At least `share` of the latencies lie below what is wanted plus the tolerance and above what is
/// wanted minus it, where the tolerance is the place in the order that chance may move.
#[track_caller]
pub(crate) fn quantile(stats: &Stats, share: f64, wanted_ms: f64) {
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let requests = stats.requests() as f64;
    // Four standard deviations of the rank: one false alarm in 16,000.
    let moved = 4.0 * (share * (1.0 - share) / requests).sqrt();
    let low = stats.latency.quantile_ms(share - moved) * 0.998;
    let high = stats.latency.quantile_ms((share + moved).min(1.0)) * 1.002;
    // The reference is rounded to two places.
    assert!(
        (low - 0.005..=high + 0.005).contains(&wanted_ms),
        "p{}: {wanted_ms} is not in {low}..{high}",
        share * 100.0
    );
}
