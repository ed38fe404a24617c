//! Estimates of latency other than the deployed one, to see what each leads to.

use std::sync::Arc;

use hedgerow_core::latency::{Learner, Record, Rule};
use hedgerow_core::{Call, End, EventKind, InvalidOption, Moment, Policy};

/// What is made of calls that a hedge cut short, before the delay is taken from it.
///
/// The first is what people deploy. The others are what hedging libraries usually do; each of them
/// takes what hedging has shortened for what attempts take by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Estimator {
    /// Of a primary that was cut short it is known that it would have taken at least so long.
    #[default]
    KaplanMeier,
    /// Only the attempt that answered counts, from its own start; what it beat never was.
    WinnersOnly,
    /// Every attempt counts, those that were stopped as if they had finished then.
    CutsAsComplete,
    /// What counts is how long the caller waited, whoever answered.
    CallersTime,
}

impl Estimator {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::KaplanMeier, Self::WinnersOnly, Self::CutsAsComplete, Self::CallersTime];

    /// The word that specs use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KaplanMeier => "kaplan-meier",
            Self::WinnersOnly => "winners-only",
            Self::CutsAsComplete => "cuts-as-complete",
            Self::CallersTime => "callers-time",
        }
    }
}

/// A second learner, which believes what a biased estimator tells it.
#[derive(Clone, Debug)]
pub(crate) struct Biased {
    learner: Arc<Learner>,
    estimator: Estimator,
}

impl Biased {
    /// One that learns by the policy's rule; `None` for the estimator that the policy has itself.
    pub(crate) fn new(
        estimator: Estimator,
        policy: &Policy,
    ) -> Result<Option<Self>, InvalidOption> {
        if estimator == Estimator::KaplanMeier {
            return Ok(None);
        }
        match policy.learner.as_ref().map(|learner| learner.learning()) {
            // A coin and its second timer come from the policy's own learner: two opinions in one
            // call would mean nothing.
            Some(learning) if matches!(learning.rule, Rule::Percentile(_)) => {
                Ok(Some(Self { learner: Arc::new(Learner::new(learning)), estimator }))
            }
            _ => {
                let remedy = "needs a percentile to estimate: delay = { percentile = 95 }";
                Err(InvalidOption::new("estimator", estimator.name(), remedy))
            }
        }
    }

    pub(crate) fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Believes what became of a call, by its log.
    pub(crate) fn believe(&self, call: &Call) {
        let ends = call.log().iter().filter_map(|event| match event.kind {
            EventKind::Ended { end, ran } => Some((end, event.at, ran)),
            _ => None,
        });
        for (end, at, ran) in ends {
            let ended = matches!(end, End::Won | End::Cancelled | End::Discarded);
            let believed = match self.estimator {
                Estimator::KaplanMeier => None,
                Estimator::WinnersOnly => (end == End::Won).then_some(ran),
                Estimator::CutsAsComplete => ended.then_some(ran),
                Estimator::CallersTime => (end == End::Won).then(|| at.since(Moment::ZERO)),
            };
            if let Some(latency) = believed {
                self.learner.record(Record::Finished(latency));
            }
        }
    }
}
