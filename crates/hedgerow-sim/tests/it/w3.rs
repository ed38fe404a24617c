//! W3: queues, where hedging everything stops paying at a third of the capacity.

use hedgerow_core::{Delay, Policy, Schedule};
use hedgerow_sim::{Distribution, Model, Servers, Strategy, Work};

use crate::support::{close, none, requests, total};

/// A hundred servers with exponential work of mean 1 ms: enough for the queues of two copies to
/// know nothing of each other.
fn mean_and_p99(utilization: f64, strategy: &Strategy) -> (f64, f64) {
    let work = Work::new(Distribution::exponential(1.0).unwrap());
    let servers = Servers::limited(100, 1).unwrap();
    let model = Model::new(work, servers, requests(utilization * 100.0 * 1_000.0, 500_000));
    let stats = total(&model, strategy, 1);
    (stats.latency.mean_ms(), stats.latency.quantile_ms(0.99))
}

fn twice() -> Strategy {
    Strategy::new(Policy { schedule: Schedule::Every(Delay::Immediately), ..Policy::default() })
}

#[test]
fn w3_duplicating_everything_pays_below_a_third() {
    let p99 = 100.0_f64.ln();
    for utilization in [0.1, 0.2, 0.4, 0.45] {
        let (mean, tail) = mean_and_p99(utilization, &none());
        close("alone", mean, 1.0 / (1.0 - utilization), 0.03);
        close("alone p99", tail, p99 / (1.0 - utilization), 0.05);
        let (mean, tail) = mean_and_p99(utilization, &twice());
        let within = if utilization > 0.4 { 0.1 } else { 0.03 };
        close("twice", mean, 0.5 / (1.0 - 2.0 * utilization), within);
        close("twice p99", tail, p99 * 0.5 / (1.0 - 2.0 * utilization), within + 0.02);
    }
}

#[test]
fn w3_it_breaks_even_at_a_third() {
    let ratio =
        |utilization| mean_and_p99(utilization, &twice()).0 / mean_and_p99(utilization, &none()).0;
    close("at a third", ratio(1.0 / 3.0), 1.0, 0.03);
    assert!(ratio(0.28) < 0.9);
    assert!(ratio(0.38) > 1.2);
}
