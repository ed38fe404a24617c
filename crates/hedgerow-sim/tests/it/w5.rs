//! W5: everything slow at once, under a budget.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hedgerow_core::{Budget, ExtraLoad, Policy, RatioBudget};
use hedgerow_sim::{
    Arrivals, Distribution, Load, Model, Outcome, Servers, Slow, Step, Strategy, Work, run,
};

use crate::support::{after, bounded, close, learner, none};

/// Ten seconds of everything ten times as slow in the middle of twenty; 20 workers, or no limit.
fn brownout(workers: Option<u32>) -> Model {
    let second = Duration::from_secs(1);
    let latency = Distribution::lognormal_around(5.0, 0.35).unwrap();
    let work = Work::new(latency.with_stalls(0.02, 1.0, 200.0).unwrap());
    let servers = match workers {
        Some(workers) => Servers::limited(1, workers).unwrap(),
        None => Servers::unlimited(1).unwrap(),
    };
    let servers = servers.slow(Slow::new(5 * second, 15 * second, 10.0).unwrap()).unwrap();
    let steps = [("before", 5), ("slow", 10), ("after", 5)]
        .map(|(name, seconds)| Step::lasting(1_000.0, seconds * second).unwrap().named(name));
    Model::new(work, servers, Load::new(Arrivals::Poisson, steps).unwrap())
}

fn slow(outcome: &Outcome) -> (f64, f64) {
    (outcome.steps[1].latency.quantile_ms(0.5), outcome.steps[1].extra_load())
}

#[test]
fn w5_a_fixed_delay_alone_doubles_the_load() {
    let (_, extra) = slow(&run(&brownout(None), &Strategy::new(after(10.0)), 1));
    assert!(extra > 0.95, "{extra}");
}

#[test]
fn w5_a_budget_holds_whatever_happens() {
    let model = brownout(None);
    let (alone, _) = slow(&run(&model, &none(), 1));
    let (p50, extra) = slow(&run(&model, &Strategy::new(bounded(10.0, 0.05)), 1));
    assert!(extra <= 0.05 + 20.0 / 9_000.0, "{extra}");
    close("p50", p50, alone, 0.05);
}

/// With 20 workers the brown-out is five times what they can do: without a budget the hedges take
/// what is left of them, and the queue is still there when it is long over.
#[test]
fn w5_with_queues_a_budget_lets_it_recover() {
    let model = brownout(Some(20));
    let alone = run(&model, &none(), 1);
    let budget = run(&model, &Strategy::new(bounded(10.0, 0.05)), 1);
    let naive = run(&model, &Strategy::new(after(10.0)), 1);
    let p50 = |outcome: &Outcome, step: usize| outcome.steps[step].latency.quantile_ms(0.5);
    close("p50 when slow", p50(&budget, 1), p50(&alone, 1), 0.10);
    assert!(p50(&naive, 2) > 1.5 * p50(&alone, 2), "{} {}", p50(&naive, 2), p50(&alone, 2));
    assert!(budget.total().extra_load() <= 0.05 + 20.0 / 20_000.0);
}

/// Keeps the order in which calls paid and hedges were granted.
#[derive(Debug)]
struct Watched(RatioBudget, Mutex<Vec<bool>>);

impl Budget for Watched {
    fn deposit(&self) {
        self.0.deposit();
        self.1.lock().unwrap().push(false);
    }

    fn try_take(&self) -> bool {
        let granted = self.0.try_take();
        if granted {
            self.1.lock().unwrap().push(true);
        }
        granted
    }

    fn give_back(&self) {
        unreachable!("a hedge that was granted starts");
    }
}

#[test]
fn w5_hedges_stay_within_the_budget_over_every_window() {
    let worlds =
        [None, Some(20)].into_iter().flat_map(|workers| [(workers, false), (workers, true)]);
    for (workers, learns) in worlds {
        let ratio = ExtraLoad::new(0.05).unwrap();
        let watched = Arc::new(Watched(RatioBudget::new(ratio), Mutex::default()));
        let budget = Some(watched.clone() as Arc<dyn Budget>);
        let strategy =
            Strategy::new(Policy { budget, learner: learns.then(learner), ..after(10.0) });
        let hedges = run(&brownout(workers), &strategy, 1).total().hedges;
        let story = watched.1.lock().unwrap();
        assert_eq!(u64::try_from(story.iter().filter(|hedge| **hedge).count()), Ok(hedges));
        // The largest sum over all windows, hedges counting 1 and completions -0.05 (Kadane).
        let (mut most, mut sum) = (0.0_f64, 0.0_f64);
        for hedge in story.iter() {
            sum = (sum + if *hedge { 1.0 } else { -0.05 }).max(0.0);
            most = most.max(sum);
        }
        assert!(most <= f64::from(RatioBudget::CAP) + 1e-6, "{workers:?} {learns}: {most}");
    }
}
