//! What the tuner answers.

use std::fmt;

use hedgerow_core::latency::Percentile;
use hedgerow_core::text::format_duration;

use super::copies::Copies;
use super::figures::{Intervals, Quantiles, rounded};
use super::solve::Plan;
use super::trial::{Simulated, Trial};

/// What to set and what it will give, or why not to.
#[derive(Clone, Debug)]
pub struct Advice {
    /// How many latencies it rests on.
    pub samples: u64,
    /// Which share of calls is to end sooner.
    pub target: Percentile,
    /// The plan, or why not to hedge.
    pub verdict: Result<Plan, Reason>,
    /// The latencies in the log, in nanoseconds.
    pub without: Quantiles,
    /// Those with the plan; the same as without it if the advice is not to hedge.
    pub predicted: Quantiles,
    /// How sure both are.
    pub intervals: Intervals,
    /// The best plan for each extra load that was asked about.
    pub choices: Vec<Choice>,
    /// What pairs of copies say of the plan, if there were any.
    pub copies: Option<Copies>,
    /// What servers as busy as the question says made of the plan; none if it names no servers, or
    /// if there is another reason not to hedge.
    pub simulated: Option<Simulated>,
    /// What the figures do not tell.
    pub warnings: Vec<Warning>,
}

/// The best plan under one extra load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choice {
    /// The most hedges for each call.
    pub max_extra_load: f64,
    /// None if no hedge makes the target come sooner.
    pub plan: Option<Plan>,
    /// What it gives, in nanoseconds, while the servers have room.
    pub predicted: Quantiles,
    /// The target with it, in nanoseconds.
    pub reached: f64,
    /// By how much the target comes sooner, as a share.
    pub gain: f64,
    /// What the servers made of it, if it was tried.
    pub simulated: Option<Trial>,
}

/// Why not to hedge.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The target lies where the log has hardly any calls.
    TooFew {
        /// How many there are.
        samples: u64,
        /// How many it takes.
        needed: u64,
        /// For this target.
        target: Percentile,
    },
    /// The best hedge gains too little.
    NoTail {
        /// How much, as a share.
        gain: f64,
        /// Of this target.
        target: Percentile,
    },
    /// The gain may be chance.
    Noise {
        /// The gain is not below this share, in 19 of 20 cases.
        low: f64,
        /// And not above this.
        high: f64,
        /// Of this target.
        target: Percentile,
    },
    /// Pairs show that the second copy is slow as well.
    Copies(Copies),
    /// The servers are so busy that the extra load costs more than the hedges gain.
    Load {
        /// The share of their time that the servers are busy.
        load: f64,
        /// Hedges for each call, as planned.
        extra: f64,
        /// What is not made sooner.
        target: Percentile,
        /// As simulated without hedging, in nanoseconds.
        without: f64,
        /// As simulated with the plan.
        with: f64,
        /// Which share of the calls is answered in time, without hedging and with the plan, if that
        /// is what is made worse.
        completed: Option<(f64, f64)>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { samples, needed, target } => {
                write!(f, "too few samples: {samples}, and {target} takes at least {needed}")
            }
            Self::NoTail { gain, target } => write!(
                f,
                "no tail to cut: the best hedge makes {target} only {} shorter, and less than 4 % is \
                 not worth it",
                percent(*gain)
            ),
            Self::Noise { low, high, target } => write!(
                f,
                "the gain is within the noise: {target} would be shorter by {} to {}; more samples \
                 may tell",
                percent(*low),
                percent(*high)
            ),
            Self::Copies(copies) => write!(
                f,
                "a second copy is slow as well: it would win {} of {} times (at most {}, and it takes \
                 10 %), with a rank correlation of {:.2} between copies; the size of the request \
                 explains its latency, or both copies share the cause",
                copies.won,
                copies.hedged,
                percent(copies.high),
                copies.correlation
            ),
            Self::Load { load, extra, target, without, with, completed } => {
                let (load, extra) = (percent(*load), percent(*extra));
                write!(f, "the load is too high: simulated at {load} busy, {extra} more ")?;
                if let Some((without, with)) = completed {
                    let (without, with) = (percent(*without), percent(*with));
                    return write!(f, "leaves {with} of the calls answered in time, not {without}");
                }
                let beside = if with < without { "within the noise of" } else { "not better than" };
                let [with, without] = [with, without].map(|nanos| format_duration(rounded(*nanos)));
                write!(f, "makes {target} {with}, {beside} the {without} without hedging")
            }
        }
    }
}

/// What the figures do not tell.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// No pairs: correlation and size are unknown.
    NoPairs,
    /// No load was named: what the hedges do to the servers is unknown.
    NoLoad,
    /// Without due times, calls that waited to be sent look quicker than they were.
    NoDueTimes,
    /// Hardly any call lies beyond this percentile.
    FewBeyond {
        /// The percentile.
        percentile: Percentile,
        /// How many calls lie beyond it.
        samples: u64,
    },
    /// The log's clock is too coarse.
    Zeros {
        /// The share of latencies that are 0.
        share: f64,
    },
    /// Too few pairs are slow enough to say whether a second copy helps.
    Unclear(Copies),
    /// Copies are alike: the target as the pairs have it is later than predicted.
    Alike {
        /// As predicted for independent copies, in nanoseconds.
        predicted: f64,
        /// As the pairs have it.
        paired: f64,
    },
    /// The servers that were named could not be simulated with these latencies.
    NotSimulated {
        /// So many calls a second would keep them so busy.
        rate: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPairs => f.write_str(
                "single latencies cannot tell whether a second copy would be quicker: if large \
                 requests are slow, or both copies share the cause, hedging gains less or nothing; \
                 log both latencies of 200 calls slower than p95 that are sent twice (4,000 calls) \
                 to find out",
            ),
            Self::NoLoad => f.write_str(
                "the log cannot tell what the extra load does to the servers; say how busy they are \
                 (--load) to have it simulated",
            ),
            Self::NoDueTimes => f.write_str(
                "without due times the tail may be longer than it looks: a call that waited to be \
                 sent is only counted from when it was",
            ),
            Self::FewBeyond { percentile, samples } => {
                write!(f, "{percentile} is a guess: it rests on {samples} slower calls")
            }
            Self::Zeros { share } => write!(
                f,
                "{} of the latencies are 0: the log's clock is too coarse for them",
                percent(*share)
            ),
            Self::Unclear(copies) => write!(
                f,
                "the pairs do not say whether a second copy helps: it would win {} of {} times, \
                 between {} and {}; it takes more than 10 % for certain, of at least 200",
                copies.won,
                copies.hedged,
                percent(copies.low),
                percent(copies.high)
            ),
            Self::Alike { predicted, paired } => write!(
                f,
                "copies are alike: by the pairs the target is {}, not the {} of independent copies",
                format_duration(rounded(*paired)),
                format_duration(rounded(*predicted))
            ),
            Self::NotSimulated { rate } => write!(
                f,
                "the load was not checked: it would take {rate:.0e} calls a second to keep the \
                 servers so busy; check the unit of the latencies"
            ),
        }
    }
}

/// A share as people read it.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
