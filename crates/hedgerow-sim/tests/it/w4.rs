//! W4: one of three replicas turns ten times as slow, and triggers run away with it.
//!
//! A read of a quorum is two calls that go to two replicas (servers in turn); a slow call is hedged
//! at another replica than its own. So two reads in three have the sick replica.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hedgerow_core::latency::{Learner, Learning, Percentile, Rule};
use hedgerow_core::{Budget, ExtraLoad, Policy, RatioBudget};
use hedgerow_sim::{
    Arrivals, Balancer, Distribution, Load, Model, Outcome, Servers, Slow, Step, Strategy, Work,
    run,
};

use crate::support::after;

/// The server that turns sick, and one that does not.
const SICK: u32 = 0;
const WELL: u32 = 1;

const BEFORE: Duration = Duration::from_secs(4);
const WINDOW: Duration = Duration::from_secs(2);
const WINDOWS: u32 = 10;

/// 500 reads a second, all of 10 ms; then one window and so many more in which the sick replica
/// takes 100 ms.
fn reads(windows: u32) -> Model {
    let slow = Slow::new(BEFORE, Duration::MAX, 10.0).unwrap().only([SICK]);
    let servers = Servers::unlimited(3).unwrap().balancer(Balancer::RoundRobin);
    let steps = [("well", BEFORE), ("turning", WINDOW), ("sick", WINDOW * windows)]
        .map(|(name, time)| Step::lasting(500.0, time).unwrap().named(name));
    let load = Load::new(Arrivals::Poisson, steps).unwrap().fan_out(2).unwrap();
    let work = Work::new(Distribution::constant(10.0).unwrap());
    Model::new(work, servers.slow(slow).unwrap(), load)
}

/// A budget that notes when calls of one server are hedged, at every call that completes.
#[derive(Debug)]
struct Watched {
    budget: RatioBudget,
    learner: OnceLock<Arc<Learner>>,
    triggers_ms: Mutex<Vec<f64>>,
}

impl Budget for Watched {
    fn deposit(&self) {
        self.budget.deposit();
        let plan = self.learner.get().unwrap().plan();
        // When the calls that are still pending are hedged, and not only one in twenty of them.
        let delay = if plan.probability < 0.5 { plan.backstop } else { plan.delay };
        let trigger = delay.map_or(f64::INFINITY, |delay| delay.as_secs_f64() * 1e3);
        self.triggers_ms.lock().unwrap().push(trigger);
    }

    fn try_take(&self) -> bool {
        self.budget.try_take()
    }

    fn try_take_spare(&self) -> bool {
        self.budget.try_take_spare()
    }

    fn give_back(&self) {
        self.budget.give_back();
    }
}

/// A run in which attempts are learned from, and the triggers of this server's calls in it.
fn learned(rule: Rule, load: f64, by_server: bool, server: u32) -> (Outcome, Vec<f64>) {
    let watched = Arc::new(Watched {
        budget: RatioBudget::new(ExtraLoad::new(load).unwrap()),
        learner: OnceLock::new(),
        triggers_ms: Mutex::default(),
    });
    let learner = Some(Arc::new(Learner::new(Learning { rule, load, ..Learning::default() })));
    let budget = Some(Arc::clone(&watched) as Arc<dyn Budget>);
    let model = reads(WINDOWS);
    let mut strategy = Strategy::new(Policy { learner, budget, ..Policy::default() });
    if by_server {
        strategy = strategy.by_server(model.servers()).unwrap();
    }
    let learner = strategy.policy_of(Some(server)).learner.clone().unwrap();
    watched.learner.set(learner).unwrap();
    let outcome = run(&model, &strategy, 1);
    let triggers = watched.triggers_ms.lock().unwrap().clone();
    (outcome, triggers)
}

/// The triggers from just before the replica turns sick to the end of the last window.
fn from_well_to_last(triggers_ms: &[f64]) -> &[f64] {
    &triggers_ms[3_000..]
}

fn sick(outcome: &Outcome) -> (f64, f64) {
    (outcome.steps[2].latency.quantile_ms(0.99), outcome.steps[2].extra_load())
}

const P99: Rule = Rule::Percentile(Percentile::P99);
const TARGET: Rule = Rule::Target(Percentile::P99);

/// Learns from whole reads, as coordinators do that take the 99th percentile of their own latency:
/// a hedged read ends ten milliseconds after its trigger, and that is the next trigger.
#[test]
fn w4_a_trigger_learned_from_whole_reads_runs_away() {
    let mut trigger = 10.0;
    let mut triggers = vec![];
    for _ in 0..10 {
        let outcome = run(&reads(1), &Strategy::new(after(trigger)), 1);
        trigger = sick(&outcome).0.round();
        triggers.push(trigger);
    }
    assert_eq!(triggers, [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 100.0]);
}

/// Attempts tell the truth: the 99th percentile of the route is the sick replica's 100 ms, which
/// is of no use to the others.
#[test]
fn w4_the_route_as_a_whole_is_as_slow_as_its_sick_replica() {
    let (_, triggers) = learned(P99, 0.5, false, WELL);
    assert!((10.0..12.0).contains(&triggers[3_000]), "{}", triggers[3_000]);
    let last = triggers.last().unwrap();
    assert!((98.0..104.0).contains(last), "{last}");
}

/// A server that is well keeps its trigger whatever becomes of another one.
#[test]
fn w4_learned_by_server_the_trigger_stays() {
    for (rule, load) in [(P99, 0.05), (P99, 0.5), (TARGET, 0.05)] {
        let (outcome, triggers) = learned(rule, load, true, WELL);
        for trigger in from_well_to_last(&triggers) {
            assert!((10.0..=12.0).contains(trigger), "{rule:?}: {trigger}");
        }
        let extra = outcome.total().extra_load();
        assert!(extra <= load + 20.0 / 26_000.0, "{rule:?}: {extra}");
    }
}

/// Where the load pays for hedging the calls of a sick server, they are hedged when those of the
/// others would be. The target is one that two attempts can reach while one server in three is
/// slow: one call in nine is slow twice, as far as the policy knows.
#[test]
fn w4_a_load_that_pays_for_it_saves_the_reads_of_the_sick_replica() {
    let p85 = Rule::Target(Percentile::new(85.0).unwrap());
    let (outcome, triggers) = learned(p85, 0.5, true, SICK);
    for trigger in from_well_to_last(&triggers) {
        assert!((9.9..=12.0).contains(trigger), "{trigger}");
    }
    let (p99, extra) = sick(&outcome);
    assert!(p99 < 22.0, "{p99}");
    assert!((0.30..=0.5).contains(&extra), "{extra}");
    // A third of all calls is more than most loads allow.
    let (p99, _) = sick(&learned(TARGET, 0.05, true, SICK).0);
    assert!(p99 > 99.0, "{p99}");
}
