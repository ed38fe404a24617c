//! Figures of one phase, exact: nearest-rank quantiles of all samples, none of them binned or
//! interpolated.

use std::time::Duration;

use super::load::Record;

/// One phase in figures.
#[derive(Debug, Clone, Default)]
pub(super) struct Summary {
    pub(super) calls: u32,
    /// Calls that ended without a good answer.
    pub(super) errors: u32,
    /// Calls that had not ended when the phase was stopped.
    pub(super) unanswered: u32,
    /// Requests sent, hedges included.
    pub(super) requests: u32,
    /// Hedges started over primaries started.
    pub(super) extra_load: f64,
    /// Calls that a hedge won, over all calls.
    pub(super) hedges_won: f64,
    /// Calls that waited because too many were in flight.
    pub(super) waited: u32,
    pub(super) p50: Duration,
    pub(super) p90: Duration,
    pub(super) p95: Duration,
    pub(super) p99: Duration,
    pub(super) p999: Duration,
    pub(super) max: Duration,
}

impl Summary {
    /// The figures of these calls; `None` if there are none.
    pub(super) fn of(records: &[Record]) -> Option<Self> {
        let mut latencies: Vec<_> = records.iter().map(|record| record.latency).collect();
        latencies.sort_unstable();
        let max = *latencies.last()?;
        let mut summary = Self {
            p50: quantile(&latencies, 500),
            p90: quantile(&latencies, 900),
            p95: quantile(&latencies, 950),
            p99: quantile(&latencies, 990),
            p999: quantile(&latencies, 999),
            max,
            ..Self::default()
        };
        let (mut primaries, mut won) = (0, 0);
        for Record { requests, waited, answer, .. } in records {
            summary.calls += 1;
            summary.requests += requests;
            summary.waited += u32::from(*waited);
            primaries += requests.min(&1);
            match answer {
                None => summary.unanswered += 1,
                Some(answer) => {
                    summary.errors += u32::from(answer.failure.is_some());
                    won += u32::from(answer.won_by_hedge);
                }
            }
        }
        summary.extra_load = share(summary.requests - primaries, primaries);
        summary.hedges_won = share(won, summary.calls);
        Some(summary)
    }

    /// Calls that ended with a good answer.
    pub(super) fn answered_well(&self) -> u32 {
        self.calls - self.errors - self.unanswered
    }

    /// Calls that failed, over all calls.
    pub(super) fn error_share(&self) -> f64 {
        share(self.errors, self.calls)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

/// The smallest sample that at least `permille` thousandths of all samples do not exceed. Whole
/// numbers keep the rank exact where a product such as 0.999 * n would be rounded across it.
fn quantile(sorted: &[Duration], permille: usize) -> Duration {
    let rank = (sorted.len() * permille).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::client::{Answer, Failure};

    fn millis(numbers: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        numbers.into_iter().map(Duration::from_millis).collect()
    }

    fn record(latency: u64, requests: u32, won_by_hedge: bool, failure: Option<Failure>) -> Record {
        let answer = Some(Answer { failure, won_by_hedge });
        Record { latency: Duration::from_millis(latency), waited: false, requests, answer }
    }

    #[test]
    fn quantiles_are_samples_at_the_nearest_rank() {
        let thousand = millis(1..=1000);
        let table = [(500, 500), (900, 900), (990, 990), (999, 999), (1000, 1000), (1, 1), (0, 1)];
        for (permille, expected) in table {
            assert_eq!(quantile(&thousand, permille), Duration::from_millis(expected));
        }
        assert_eq!(quantile(&millis(1..=10), 990), Duration::from_millis(10));
        assert_eq!(quantile(&millis([7]), 500), Duration::from_millis(7));
        assert_eq!(quantile(&[], 500), Duration::ZERO);
    }

    #[test]
    fn counts_and_shares_come_from_all_calls() {
        let records = [
            record(30, 2, true, None),
            record(10, 1, false, None),
            record(20, 2, false, Some(Failure::TimedOut)),
            record(40, 0, false, Some(Failure::TimedOut)),
        ];
        let summary = Summary::of(&records).unwrap();
        assert_eq!((summary.calls, summary.errors, summary.requests), (4, 2, 5));
        assert_eq!(summary.p50, Duration::from_millis(20));
        assert_eq!(summary.max, Duration::from_millis(40));
        // The call that was never sent is no primary: 2 hedges over 3 primaries.
        assert!((summary.extra_load - 2.0 / 3.0).abs() < 1e-9);
        assert!((summary.hedges_won - 0.25).abs() < 1e-9);
    }

    #[test]
    fn calls_without_an_answer_count_with_their_age_and_their_requests() {
        let unanswered = Record { answer: None, ..record(90, 2, false, None) };
        let records = [record(10, 1, false, None), unanswered];
        let summary = Summary::of(&records).unwrap();
        assert_eq!((summary.calls, summary.errors, summary.unanswered), (2, 0, 1));
        assert_eq!((summary.requests, summary.max), (3, Duration::from_millis(90)));
        assert!((summary.extra_load - 0.5).abs() < 1e-9);
    }

    #[test]
    fn no_calls_have_no_figures() {
        assert!(Summary::of(&[]).is_none());
    }
}
