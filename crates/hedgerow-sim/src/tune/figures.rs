//! Quantiles that people look at, and how sure they are.

use std::time::Duration;

/// Significant digits of a latency that is told to people or pasted into a configuration.
const DIGITS: i32 = 4;

/// A latency in nanoseconds as people want to read it: four digits.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(hedgerow_sim::tune::rounded(12_427_831.3), Duration::from_micros(12_430));
/// ```
pub fn rounded(nanos: f64) -> Duration {
    if nanos < 1.0 {
        return Duration::ZERO;
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 308")]
    let place = nanos.log10().floor() as i32 + 1 - DIGITS;
    let step = 10_f64.powi(place.max(0));
    Duration::try_from_secs_f64((nanos / step).round() * step / 1e9).unwrap_or(Duration::MAX)
}

/// Five latencies in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Quantiles<T = f64> {
    /// The median.
    pub p50: T,
    /// What 1 in 10 exceeds.
    pub p90: T,
    /// What 1 in 20 exceeds.
    pub p95: T,
    /// What 1 in 100 exceeds.
    pub p99: T,
    /// What 1 in 1,000 exceeds.
    pub p999: T,
}

impl<T: Copy> Quantiles<T> {
    /// The chances that they are exceeded with.
    pub(super) const CHANCES: [f64; 5] = [0.5, 0.1, 0.05, 0.01, 0.001];

    /// What `of` says of each chance.
    pub(super) fn of(of: impl FnMut(f64) -> T) -> Self {
        let [p50, p90, p95, p99, p999] = Self::CHANCES.map(of);
        Self { p50, p90, p95, p99, p999 }
    }

    /// All of them, in order.
    pub fn each(&self) -> [T; 5] {
        [self.p50, self.p90, self.p95, self.p99, self.p999]
    }
}

/// Where a latency lies in 19 of 20 cases, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// Not below.
    pub low: f64,
    /// Not above; none if there are too few samples to say.
    pub high: Option<f64>,
}

/// How sure the figures are.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Intervals {
    /// Of the latencies in the log: by the binomial distribution of ranks.
    pub without: Quantiles<Interval>,
    /// Of the predicted ones: by resampling the counts.
    pub predicted: Quantiles<Interval>,
}
