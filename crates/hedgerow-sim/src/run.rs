//! Runs, one by one or many at once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::model::Model;
use crate::stats::Outcome;
use crate::strategy::Strategy;
use crate::{alone, together};

/// How far runs have come, for whoever watches from another thread.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// How often a run tells: every so many requests.
    const EVERY: u64 = 1024;

    /// About how many requests are over.
    pub fn requests(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A step has this many requests behind it.
    #[inline]
    pub(crate) fn one_more(&self, requests: u64) {
        if requests.is_multiple_of(Self::EVERY) {
            self.0.fetch_add(Self::EVERY, Ordering::Relaxed);
        }
    }
}

/// One run. The same seed gives the same outcome; primaries arrive and draw alike under every
/// strategy.
pub fn run(model: &Model, strategy: &Strategy, seed: u64) -> Outcome {
    run_watched(model, strategy, seed, &Progress::default())
}

fn run_watched(model: &Model, strategy: &Strategy, seed: u64, progress: &Progress) -> Outcome {
    if strategy.forgets() && model.servers.are_independent() {
        alone::run(model, strategy, seed, progress)
    } else {
        together::run(model, strategy, seed, progress)
    }
}

/// A run for each seed, spread over at most `threads` threads; outcomes in the order of the seeds,
/// whatever the threads.
///
/// `strategy` is asked for each run, because budgets and what is learned must not be shared between
/// runs.
pub fn run_each(
    model: &Model,
    strategy: impl Fn() -> Strategy + Sync,
    seeds: &[u64],
    threads: usize,
    progress: &Progress,
) -> Vec<Outcome> {
    let mut outcomes = run_all(model, &[strategy], seeds, threads, progress);
    outcomes.pop().unwrap_or_default()
}

/// The same for several strategies: the outcomes of each, in the order of the seeds.
pub fn run_all<F: Fn() -> Strategy + Sync>(
    model: &Model,
    strategies: &[F],
    seeds: &[u64],
    threads: usize,
    progress: &Progress,
) -> Vec<Vec<Outcome>> {
    let runs = strategies.len() * seeds.len();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::default(); runs]);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return;
            }
            let strategy = strategies[index / seeds.len()]();
            let outcome = run_watched(model, &strategy, seeds[index % seeds.len()], progress);
            // A panic of another thread is told by the scope.
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = outcome;
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(runs) {
            scope.spawn(work);
        }
        work();
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    strategies.iter().map(|_| outcomes.by_ref().take(seeds.len()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hedgerow_core::{Delay, Losers, MaxHedges, Policy, Schedule};

    use super::*;
    use crate::{Arrivals, Distribution, Load, OnCancel, Servers, Slow, Step, Work};

    /// Both engines give the same figures where both can be used.
    #[test]
    fn the_engines_agree() {
        let latency = Distribution::lognormal(5.0, 2.0).unwrap();
        let work = Work::new(latency.with_stalls(0.05, 10.0, 0.0).unwrap())
            .size(Distribution::lognormal_around(1.0, 0.3).unwrap())
            .shared_stalls(0.3)
            .unwrap();
        let second = Duration::from_secs(1);
        let slow = Slow::new(second, 3 * second, 3.0).unwrap().only([1, 2]);
        let steps =
            [Step::lasting(2_000.0, 2 * second).unwrap(), Step::counting(500.0, 2_000).unwrap()];
        let servers = Servers::unlimited(5).unwrap().slow(slow).unwrap();
        for fan_out in [1, 4] {
            let load =
                Load::new(Arrivals::Poisson, steps.clone()).unwrap().fan_out(fan_out).unwrap();
            for (losers, on_cancel) in [
                (Losers::Drop, OnCancel::Ignore),
                (Losers::Detach, OnCancel::Running),
                (Losers::Join { grace: None }, OnCancel::Running),
                (Losers::Join { grace: Some(Duration::from_millis(20)) }, OnCancel::Ignore),
            ] {
                let servers = servers.clone().on_cancel(on_cancel, Duration::from_millis(1));
                let model = Model::new(work.clone(), servers, load.clone());
                let policy = Policy {
                    schedule: Schedule::from([
                        Delay::After(Duration::from_millis(8)),
                        Delay::Immediately,
                        Delay::After(Duration::from_millis(3)),
                    ]),
                    max_hedges: MaxHedges::new(3).unwrap(),
                    losers,
                    ..Policy::default()
                };
                let strategy = Strategy::new(policy).with_probability(0.7).unwrap();
                let progress = Progress::default();
                let alone = alone::run(&model, &strategy, 7, &progress);
                let together = together::run(&model, &strategy, 7, &progress);
                assert_eq!(alone.steps, together.steps, "{fan_out} {losers:?} {on_cancel:?}");
                assert!(alone.total().hedges > 1_000);
            }
        }
    }
}
