//! What a learner is told, what it records, and what it says of itself.

use std::fmt;
use std::time::Duration;

use super::keys::MaxKeys;
use super::percentile::Percentile;
use super::plan::Plan;
use super::prediction::Prediction;
use crate::gate::Gate;
use crate::text::format_duration;

/// What a [`Learner`](super::Learner) is to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Learning {
    /// What the delay is chosen for.
    pub rule: Rule,
    /// The extra load that is allowed: hedges for each call.
    pub load: f64,
    /// After this time an attempt counts half (but a thousand calls are never forgotten).
    pub half_life: Duration,
    /// No delay is shorter.
    pub min: Duration,
    /// No delay is longer.
    pub max: Duration,
    /// The delay while nothing is known; `None`: no hedge until then.
    pub initial: Option<Duration>,
    /// How many keys are told apart at most; see [`Keys`](super::Keys).
    pub max_keys: MaxKeys,
}

/// How the delay follows from the latencies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// The delay and the probability that make this percentile lowest under the allowed load.
    Target(Percentile),
    /// The delay is this percentile.
    Percentile(Percentile),
}

impl Default for Learning {
    /// p99 under 5 % extra load, a half-life of two seconds, at least one millisecond of delay, 256
    /// keys.
    fn default() -> Self {
        Self {
            rule: Rule::Target(Percentile::P99),
            load: 0.05,
            half_life: Duration::from_secs(2),
            min: Duration::from_millis(1),
            max: Duration::MAX,
            initial: None,
            max_keys: MaxKeys::default(),
        }
    }
}

/// What became of a primary, and how long it ran.
///
/// Only primaries are recorded: hedges start in bad moments, and often go elsewhere. A primary that
/// returned an accepted outcome is finished. One that was cut short (a hedge won, the caller gave
/// up) is known to take at least so long; so is one that failed, if it took longer than the
/// median. A quick failure says nothing of how long an answer takes and is not recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// It finished.
    Finished(Duration),
    /// It was stopped before it had finished.
    Cut(Duration),
    /// It failed.
    Failed(Duration),
}

/// What a learner knows and has decided, and what kept it from hedging.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// Whether it has seen too little to decide by itself, so that its parent decides; false for a
    /// policy without a key.
    pub young: bool,
    /// When calls are hedged.
    pub plan: Plan,
    /// The latency that half of the calls stay under, to 3 %; `None` while it is not known.
    pub median: Option<Duration>,
    /// Whether nearly all calls are slow just now, so that none is hedged.
    pub slow: bool,
    /// The share of hedges that win; 1 until there is one that does not.
    pub win_rate: f64,
    /// What the plan is predicted to bring; `None` while too little is known. It speaks of the
    /// backend as it was without the hedges, and of hedges that are as quick as primaries.
    pub prediction: Option<Prediction>,
    /// How often each gate spoke against a hedge: `cold` and `probability` for every call that its
    /// primary did not answer at once, the others for those that were pending when a hedge was due,
    /// or had earned one by a failure; each once a call. Gates that never did are left out.
    pub refused: Vec<(Gate, u64)>,
}

impl Explanation {
    /// How often this gate spoke against a hedge. For [`Gate::DryRun`]: how many calls would have
    /// been hedged.
    pub fn refused_by(&self, gate: Gate) -> u64 {
        self.refused.iter().find(|(each, _)| *each == gate).map_or(0, |(_, count)| *count)
    }
}

impl fmt::Display for Explanation {
    /// In a sentence or two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.young {
            f.write_str("like its parent, for want of calls of its own: ")?;
        }
        match self.plan.delay {
            None => f.write_str("no hedges yet: too few calls have been seen")?,
            Some(delay) => {
                let (delay, percent) = (rounded(delay), self.plan.probability * 100.0);
                write!(f, "{percent:.0} % of calls pending after {delay} are hedged")?;
            }
        }
        if self.slow {
            f.write_str("; not now, because nearly all calls are slow")?;
        }
        // Before one has lost nobody can tell whether any was sent.
        if self.win_rate < 1.0 {
            write!(f, "; {:.0} % of hedges win", self.win_rate * 100.0)?;
        }
        if let Some(prediction) = &self.prediction {
            write!(f, "; {prediction}")?;
        }
        self.refused.iter().try_for_each(|(gate, count)| match gate {
            Gate::DryRun => write!(f, "; dry run: {count} calls would have been hedged"),
            _ => write!(f, "; {gate}: {count}"),
        })
    }
}

/// A learned duration for people: three digits of it, as more are not known.
pub(super) fn rounded(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let unit = 10_u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    format_duration(Duration::from_nanos((nanos / unit) * unit))
}
