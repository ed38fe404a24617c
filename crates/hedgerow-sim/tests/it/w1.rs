//! W1: a lognormal body with ten-fold stalls, without and with one hedge.

use hedgerow_core::latency::{BUCKETS, Bucket, Curve, Reissue};
use hedgerow_sim::{Stats, Strategy};

use crate::support::{adaptive, after, close, none, quantile, total, unlimited, w1};

const CALLS: u64 = 1_000_000;

fn w1_with(strategy: &Strategy) -> Stats {
    total(&unlimited(w1(), CALLS), strategy, 1)
}

#[test]
fn w1_quantiles_of_fixed_delays() {
    let reference = [
        (None, 0.0, [4.76, 8.66, 17.46, 64.20, 102.41]),
        (Some(10.0), 0.0720, [4.76, 8.66, 12.71, 16.84, 45.30]),
        (Some(50.0), 0.0212, [4.76, 8.66, 17.46, 54.36, 59.64]),
        (Some(8.66), 0.10, [4.76, 8.66, 11.73, 15.53, 44.75]),
        (Some(17.46), 0.05, [4.76, 8.66, 17.46, 24.18, 48.04]),
    ];
    for (delay, extra, quantiles) in reference {
        let stats = w1_with(&delay.map_or_else(none, |delay| Strategy::new(after(delay))));
        for (share, wanted) in [0.5, 0.9, 0.95, 0.99, 0.999].into_iter().zip(quantiles) {
            quantile(&stats, share, wanted);
        }
        // The share of hedges has a standard deviation of at most 0.03 % here.
        assert!((stats.extra_load() - extra).abs() < 0.0012, "{delay:?}: {}", stats.extra_load());
    }
}

#[test]
fn w1_r_a_coin_beats_the_percentile() {
    for (delay, probability, load, p99) in
        [(12.43, 0.909, 0.05, 20.46), (40.02, 0.615, 0.02, 48.75), (46.42, 0.400, 0.01, 55.82)]
    {
        let strategy = Strategy::new(after(delay)).with_probability(probability).unwrap();
        let stats = w1_with(&strategy);
        quantile(&stats, 0.99, p99);
        close("extra load", stats.extra_load(), load, 0.03);
    }
}

/// The plan that the solver makes from simulated latencies keeps its promise when it is simulated.
#[test]
fn w1_r_what_the_solver_promises_happens() {
    let without = w1_with(&none());
    let mut done = Box::new([0.0; BUCKETS]);
    for place in 0..100_000 {
        let ms = without.latency.quantile_ms((f64::from(place) + 0.5) / 100_000.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let bucket = Bucket::of_nanos((ms * 1e6) as u64);
        done[bucket.index()] += 1.0;
    }
    let plan = Reissue::solve(&Curve::new(&done, &[0.0; BUCKETS]), 0.99, 0.05).unwrap();
    let strategy = Strategy::new(after(plan.delay / 1e6)).with_probability(plan.probability);
    let stats = w1_with(&strategy.unwrap());
    close("p99", stats.latency.quantile_ms(0.99), plan.reached / 1e6, 0.02);
    close("p99", stats.latency.quantile_ms(0.99), 20.46, 0.02);
    close("extra load", stats.extra_load(), 0.05, 0.03);
}

/// The learned default comes close to the static optimum, from nothing and under a hard budget.
#[test]
fn w1_the_learned_default() {
    let stats = total(&unlimited(w1(), 170_000), &adaptive(), 1);
    assert!(stats.extra_load() <= 0.05 + 20.0 / 170_000.0, "{}", stats.extra_load());
    let (p99, p999) = (stats.latency.quantile_ms(0.99), stats.latency.quantile_ms(0.999));
    assert!(p99 < 22.5 && p999 < 66.0, "{p99} {p999}");
}
