//! How many events a second the simulator handles on one core.
//!
//! ```sh
//! cargo run --release -p hedgerow-sim --example speed
//! cargo run --release -p hedgerow-sim --example speed -- adaptive   # those with this in their name
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hedgerow_core::latency::{Learner, Learning};
use hedgerow_core::{Delay, ExtraLoad, InvalidOption, MaxHedges, Policy, RatioBudget, Schedule};
use hedgerow_sim::{
    Arrivals, Balancer, Distribution, Load, Model, Servers, Step, Strategy, Work, run,
};

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let hedge = Policy {
        schedule: Schedule::Every(Delay::After(Duration::from_millis(10))),
        ..Policy::default()
    };
    let none = Policy { max_hedges: MaxHedges::new(0)?, ..hedge.clone() };
    let bounded = || -> Result<Policy, InvalidOption> {
        let budget = RatioBudget::new(ExtraLoad::new(0.05)?);
        Ok(Policy { budget: Some(Arc::new(budget)), ..hedge.clone() })
    };
    let adaptive = || -> Result<Policy, InvalidOption> {
        let learner = Some(Arc::new(Learner::new(Learning::default())));
        Ok(Policy { learner, ..bounded()? })
    };
    let unlimited = Servers::default();
    let one_queue = Servers::limited(1, 20)?;
    let many = Servers::limited(100, 4)?.balancer(Balancer::PowerOfTwo);
    for (name, servers, rate, policy) in [
        ("static, no hedging", &unlimited, 1_000.0, none.clone()),
        ("static, 10 ms", &unlimited, 1_000.0, hedge.clone()),
        ("unlimited, 10 ms, budget", &unlimited, 1_000.0, bounded()?),
        ("unlimited, 10 ms, budget, 1e6/s", &unlimited, 1e6, bounded()?),
        ("unlimited, adaptive", &unlimited, 1_000.0, adaptive()?),
        ("20 workers, no hedging", &one_queue, 1_900.0, none.clone()),
        ("20 workers, 10 ms, budget", &one_queue, 1_900.0, bounded()?),
        ("20 workers, adaptive", &one_queue, 1_900.0, adaptive()?),
        ("100 servers, two choices, budget", &many, 38_000.0, bounded()?),
    ] {
        if !name.contains(&wanted) {
            continue;
        }
        let latency = Distribution::lognormal_around(5.0, 0.35)?.with_stalls(0.02, 1.0, 200.0)?;
        let load = Load::new(Arrivals::Poisson, [Step::counting(rate, 5_000_000)?])?;
        let model = Model::new(Work::new(latency), servers.clone(), load);
        let start = Instant::now();
        let outcome = run(&model, &Strategy::new(policy), 1);
        let seconds = start.elapsed().as_secs_f64();
        let total = outcome.total();
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let (events, requests) = (outcome.events as f64, total.requests() as f64);
        println!(
            "{name:<34} {:5.2} million events/s, {:4.0} ns a request, p99 {:6.1} ms, extra {:.2} %",
            events / seconds / 1e6,
            seconds / requests * 1e9,
            total.latency.quantile_ms(0.99),
            total.extra_load() * 100.0,
        );
    }
    Ok(())
}
