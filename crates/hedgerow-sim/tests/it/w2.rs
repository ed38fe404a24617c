//! W2: the slowest of a hundred.

use hedgerow_sim::{
    Arrivals, Distribution, Load, Model, Servers, Stats, Step, Strategy, Work, run_each,
};

use crate::support::{after, close, none, quantile};

fn w2(strategy: impl Fn() -> Strategy + Sync) -> Stats {
    let tail = Distribution::tail(&[(2.0, 1.0), (10.0, 0.02), (70.0, 0.0032)], 1.7765).unwrap();
    let step = Step::counting(100.0, 20_000).unwrap();
    let load = Load::new(Arrivals::Poisson, [step]).unwrap().fan_out(100).unwrap();
    let model = Model::new(Work::new(tail), Servers::default(), load);
    let mut total = Stats::default();
    for outcome in run_each(&model, strategy, &[1, 2], 2, &hedgerow_sim::Progress::default()) {
        total.merge(&outcome.total());
    }
    total
}

#[test]
fn w2_one_hedge_tames_the_slowest_of_a_hundred() {
    let reference = [
        (None, 0.0, [30.9, 196.0, 491.0, 1_799.5]),
        (Some(10.0), 0.020, [12.8, 17.3, 26.4, 74.2]),
        (Some(50.0), 0.0044, [30.9, 54.7, 58.9, 92.5]),
    ];
    for (delay, extra, quantiles) in reference {
        let stats = w2(|| delay.map_or_else(none, |delay| Strategy::new(after(delay))));
        assert_eq!((stats.requests(), stats.calls), (40_000, 4_000_000));
        for (share, wanted) in [0.5, 0.95, 0.99, 0.999].into_iter().zip(quantiles) {
            // The reference has three digits.
            let value = stats.latency.quantile_ms(share);
            if (value / wanted - 1.0).abs() > 0.005 {
                quantile(&stats, share, wanted);
            }
        }
        if delay.is_some() {
            close("extra load", stats.extra_load(), extra, 0.03);
        }
    }
}
