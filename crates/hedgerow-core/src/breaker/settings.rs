//! How a breaker is set.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::window::Counts;
use crate::invalid::InvalidOption;

/// When a breaker opens, for how long, and what closes it.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerSettings {
    /// Opens when this share of the calls of the latest `window` failed; `None`: never for that.
    pub ratio: Option<FailureRatio>,
    /// How many calls the window must have seen for that.
    pub min_throughput: u32,
    /// How long a call counts.
    pub window: Duration,
    /// Opens after so many failures one after the other; `None`: never for that.
    pub in_a_row: Option<u32>,
    /// How long it stays open.
    pub open_for: OpenFor,
    /// How many calls go through while it is half-open; all of them must succeed.
    pub probes: u32,
    /// How long a probe may take. One that takes longer makes room for another, and does not count.
    pub probe_lease: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            ratio: Some(FailureRatio(0.1)),
            min_throughput: 100,
            window: Duration::from_secs(30),
            in_a_row: None,
            open_for: OpenFor::Always(Duration::from_secs(5)),
            probes: 1,
            probe_lease: Duration::from_secs(30),
        }
    }
}

impl BreakerSettings {
    /// The highest `min_throughput`: so many calls are counted, whenever in the window they come.
    pub const MOST_THROUGHPUT: u32 = 100_000;

    /// Says which numbers are impossible.
    pub fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        let mut refuse = |option, value: &dyn fmt::Display, remedy| {
            mistakes.push(InvalidOption::new(option, value, remedy));
        };
        if let Some(FailureRatio(ratio)) = self.ratio {
            if !(ratio > 0.0 && ratio <= 1.0) {
                let remedy = "the share of calls that may fail; write more than 0, at most 1";
                refuse("failure_ratio", &ratio, remedy);
            }
            if self.window.is_zero() {
                refuse("window", &"0s", "no call would count; write how long one does");
            }
        }
        match self.min_throughput {
            0 => refuse("min_throughput", &0, "write at least 1"),
            most if most > Self::MOST_THROUGHPUT => {
                refuse("min_throughput", &most, "no more are counted; write at most 100000");
            }
            _ => {}
        }
        if self.in_a_row == Some(0) {
            refuse("consecutive", &0, "it could never close; write at least 1");
        }
        if self.probes == 0 {
            refuse("probes", &0, "it could never close; write at least 1");
        }
        if self.probe_lease.is_zero() {
            refuse("probe_lease", &"0s", "no probe would ever count; write how long one may take");
        }
    }
}

/// The share of failures from which on a breaker opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureRatio(pub f64);

impl FailureRatio {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(super) fn is_passed(self, Counts { calls, failures }: Counts) -> bool {
        failures as f64 >= self.0 * calls as f64
    }
}

/// How long a breaker stays open.
#[derive(Clone)]
pub enum OpenFor {
    /// Each time as long.
    Always(Duration),
    /// By how often it has opened since it was last closed: 1 is the first time. Asked without a
    /// lock, and perhaps by two calls that fail at the same time, of which one opens the breaker. If
    /// it panics the breaker stays as it is.
    By(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

impl OpenFor {
    pub(super) fn after(&self, opened: u32) -> Duration {
        match self {
            Self::Always(duration) => *duration,
            Self::By(by) => by(opened),
        }
    }
}

impl PartialEq for OpenFor {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Always(own), Self::Always(other)) => own == other,
            (Self::By(own), Self::By(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl fmt::Debug for OpenFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(duration) => duration.fmt(f),
            Self::By(_) => f.write_str("by how often it has opened"),
        }
    }
}
