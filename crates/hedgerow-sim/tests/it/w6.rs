//! W6: what is slow because it is large cannot be hedged away.

use hedgerow_sim::{Distribution, Stats, Strategy, Work};

use crate::support::{after, none, total, unlimited};

/// Lognormal of sigma 0.8 and median 10 ms, of whose variance this share is due to the size.
fn model(size_share: f64) -> hedgerow_sim::Model {
    let sigma = |share: f64| 0.8 * share.sqrt();
    let size = Distribution::lognormal_around(1.0, sigma(size_share)).unwrap();
    let latency = Distribution::lognormal_around(10.0, sigma(1.0 - size_share)).unwrap();
    unlimited(Work::new(latency).size(size), 200_000)
}

#[test]
fn w6_the_gain_falls_to_nothing_as_size_explains_the_latency() {
    let shares = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];
    let mut gains = Vec::new();
    let mut wins = Vec::new();
    for share in shares {
        let without: Stats = total(&model(share), &none(), 1);
        let p95 = without.latency.quantile_ms(0.95);
        let with = total(&model(share), &Strategy::new(after(p95)), 1);
        gains.push(1.0 - with.latency.quantile_ms(0.99) / without.latency.quantile_ms(0.99));
        wins.push(with.win_rate());
    }
    let falls = |figures: &[f64]| figures.windows(2).all(|pair| pair[1] < pair[0]);
    assert!(falls(&gains[..5]) && falls(&wins), "{gains:?} {wins:?}");
    assert!(gains[0] > 0.15, "{gains:?}");
    assert!(gains[4] < 0.02 && gains[5].abs() < 1e-9 && wins[5] == 0.0, "{gains:?} {wins:?}");
}

#[test]
fn w6_a_common_cause_of_stalls_cannot_be_hedged_away_either() {
    let p99 = |shared: f64| {
        let latency = Distribution::lognormal_around(5.0, 0.35).unwrap();
        let work = Work::new(latency.with_stalls(0.02, 1.0, 200.0).unwrap());
        let model = unlimited(work.shared_stalls(shared).unwrap(), 200_000);
        total(&model, &Strategy::new(after(10.0)), 1).latency.quantile_ms(0.99)
    };
    assert!(p99(0.0) < 20.0, "{}", p99(0.0));
    assert!(p99(1.0) > 200.0, "{}", p99(1.0));
}
