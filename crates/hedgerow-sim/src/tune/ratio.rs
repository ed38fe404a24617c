//! How one policy compares with another over runs with the same luck.

use super::latencies::real;

/// Student's t for a two-sided 95 % interval from five runs.
const T: f64 = 2.776;

/// How many times as long something takes, and where that lies in 19 of 20 cases.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// The geometric mean of the runs.
    pub mean: f64,
    /// Not below.
    pub low: f64,
    /// Not above.
    pub high: f64,
    /// That of the worst run.
    pub worst: f64,
}

impl Ratio {
    /// Of the ratio of each of five runs.
    pub(super) fn of(ratios: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = ratios.map(f64::ln).collect();
        let count = real(logs.len() as u64);
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let margin = T * (squares / (count - 1.0) / count).sqrt();
        let worst = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [mean, low, high, worst] = [mean, mean - margin, mean + margin, worst].map(f64::exp);
        Self { mean, low, high, worst }
    }

    /// Whether things take less time, and that is no chance: by the interval, or because all runs
    /// agree, however far apart they are.
    pub(super) fn is_gain(&self) -> bool {
        self.high < 1.0 || self.worst < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_as_sure_as_its_runs_agree() {
        let same = Ratio::of([0.5; 5].into_iter());
        for value in [same.mean, same.low, same.high, same.worst] {
            assert!((value - 0.5).abs() < 1e-9, "{same:?}");
        }
        assert!(same.is_gain());
        let apart = Ratio::of([0.5, 2.0, 1.0, 0.5, 2.0].into_iter());
        assert!((apart.mean - 1.0).abs() < 1e-9 && !apart.is_gain(), "{apart:?}");
        assert!(apart.low < 0.5 && apart.high > 2.0, "{apart:?}");
        let all_better = Ratio::of([1e-9, 0.9, 0.9, 0.9, 0.9].into_iter());
        assert!(all_better.high > 1.0 && all_better.is_gain(), "{all_better:?}");
        let most_better = Ratio::of([0.5, 0.5, 0.5, 0.5, 1.01].into_iter());
        assert!(most_better.high < 1.0 && most_better.is_gain(), "{most_better:?}");
    }
}
