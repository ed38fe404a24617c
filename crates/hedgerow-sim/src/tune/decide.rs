//! From counts to advice.

use hedgerow_core::ExtraLoad;
use hedgerow_core::latency::{Curve, Percentile};

use super::advice::{Advice, Choice, Reason, Warning};
use super::copies::{Copies, Finding, Pairs};
use super::curve::FineCurve;
use super::figures::{Intervals, Quantiles};
use super::latencies::{Latencies, real};
use super::load::growth;
use super::noise::{gain, ranks, resample};
use super::solve::{Plan, coarse, solve};

/// How many samples must lie beyond the target.
const BEYOND: f64 = 10.0;
/// A smaller gain is not worth the trouble.
const LEAST_GAIN: f64 = 0.04;
/// The gain's lower bound must be at least this.
const SURE_GAIN: f64 = LEAST_GAIN / 2.0;
/// The extra loads that are shown where none is asked about.
const LOADS: [f64; 4] = [0.01, 0.02, 0.05, 0.10];
/// The one among them that is recommended.
const USUAL: f64 = 0.05;
/// Figures that differ by more than this are told.
const NOTABLE: f64 = 0.05;

/// What is asked of the tuner.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Question {
    /// Which share of calls is to end sooner.
    pub target: Percentile,
    /// The most hedges for each call. None: 5 %, and 1, 2 and 10 % are shown beside it.
    pub max_extra_load: Option<ExtraLoad>,
    /// The share of their time that the servers are busy, if known.
    pub load: Option<f64>,
    /// Whether the latencies count from when each call was due.
    pub due: bool,
    /// What the resampling draws from.
    pub seed: u64,
}

impl Default for Question {
    /// For p99.
    fn default() -> Self {
        Self { target: Percentile::P99, max_extra_load: None, load: None, due: false, seed: 1 }
    }
}

impl Question {
    /// The chance that the target is exceeded with.
    fn allowed(&self) -> f64 {
        1.0 - self.target.share()
    }

    fn max_extra_load(&self) -> f64 {
        self.max_extra_load.map_or(USUAL, ExtraLoad::get)
    }

    /// How many samples it takes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    fn needed(&self) -> u64 {
        (BEYOND / self.allowed() - 1e-6).ceil() as u64
    }
}

/// What to set, what it will give, and how sure that is; or why not to hedge.
pub fn tune(latencies: &Latencies, pairs: Option<&Pairs>, question: &Question) -> Advice {
    Case { latencies, question, curve: FineCurve::new(latencies) }.advice(pairs)
}

/// The best plan for each of these extra loads.
pub(super) fn choose(latencies: &Latencies, question: &Question, loads: &[f64]) -> Vec<Choice> {
    Case { latencies, question, curve: FineCurve::new(latencies) }.choices(loads)
}

/// What is being decided.
struct Case<'a> {
    latencies: &'a Latencies,
    question: &'a Question,
    curve: FineCurve,
}

impl Case<'_> {
    fn advice(&self, pairs: Option<&Pairs>) -> Advice {
        let only = self.question.max_extra_load.map(|load| [load.get()]);
        let choices = self.choices(only.as_ref().map_or(&LOADS[..], |load| &load[..]));
        let wanted = self.question.max_extra_load();
        let choice = choices.iter().find(|choice| choice.max_extra_load >= wanted);
        let plan = choice.and_then(|choice| choice.plan);
        let copies =
            plan.zip(pairs).map(|(plan, pairs)| pairs.judge(&plan, self.question.allowed()));
        let without = Quantiles::of(|chance| self.curve.exceeded_with(chance));
        let ranks = ranks(&self.curve, self.latencies.count());
        let mut advice = Advice {
            samples: self.latencies.count(),
            target: self.question.target,
            verdict: Err(self.no_tail(0.0)),
            without,
            predicted: without,
            intervals: Intervals { without: ranks, predicted: ranks },
            copies,
            warnings: self.warnings(pairs.is_some()),
            choices: Vec::new(),
        };
        advice.verdict = self.verdict(choice, &mut advice);
        advice.choices = choices;
        advice
    }

    /// The best plan under each extra load; none at all from too few samples.
    fn choices(&self, loads: &[f64]) -> Vec<Choice> {
        if self.latencies.count() < self.question.needed() {
            return Vec::new();
        }
        let buckets = self.latencies.buckets();
        let coarse = coarse(buckets.map(|(lower, upper, count)| (lower, upper, real(count))));
        loads.iter().map(|load| self.choice(&coarse, *load)).collect()
    }

    fn choice(&self, coarse: &Curve, load: f64) -> Choice {
        let allowed = self.question.allowed();
        let plan = solve(&self.curve, coarse, allowed, load);
        let gain = plan.map_or(0.0, |plan| gain(&self.curve, &plan, allowed));
        let predicted = Quantiles::of(|chance| match &plan {
            Some(plan) => self.curve.hedged(chance, plan),
            None => self.curve.exceeded_with(chance),
        });
        let too_busy = plan.is_some_and(|plan| self.overload(&plan, gain).is_some());
        let reached = self.curve.exceeded_with(allowed) * (1.0 - gain);
        Choice { max_extra_load: load, plan, predicted, reached, gain, too_busy }
    }

    /// Decides, and fills in what the plan gives.
    fn verdict(&self, choice: Option<&Choice>, advice: &mut Advice) -> Result<Plan, Reason> {
        let question = self.question;
        let target = question.target;
        let Some(choice) = choice else {
            let (samples, needed) = (self.latencies.count(), question.needed());
            return Err(Reason::TooFew { samples, needed, target });
        };
        let plan = match choice.plan {
            Some(plan) if choice.gain >= LEAST_GAIN => plan,
            _ => return Err(self.no_tail(choice.gain)),
        };
        let resampled =
            resample(self.latencies, &self.curve, &plan, question.allowed(), question.seed);
        let (low, high) = resampled.gain;
        if low < SURE_GAIN {
            return Err(Reason::Noise { low, high, target });
        }
        if let Some(copies) = advice.copies {
            self.hear(&copies, &plan, &mut advice.warnings)?;
        }
        if let Some(reason) = self.overload(&plan, choice.gain) {
            return Err(reason);
        }
        let growth = question.load.and_then(|load| growth(load, plan.extra_load));
        let slower = growth.filter(|growth| *growth > 1.0 + NOTABLE);
        advice.warnings.extend(slower.map(|growth| Warning::Slower { growth }));
        advice.predicted = choice.predicted;
        advice.intervals.predicted = resampled.quantiles;
        Ok(plan)
    }

    fn no_tail(&self, gain: f64) -> Reason {
        Reason::NoTail { gain, target: self.question.target }
    }

    /// What pairs of copies have to say.
    fn hear(
        &self,
        copies: &Copies,
        plan: &Plan,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Reason> {
        match copies.finding {
            Finding::DoNotHedge => return Err(Reason::Copies(*copies)),
            Finding::Unclear => warnings.push(Warning::Unclear(*copies)),
            Finding::Helps => {}
        }
        let predicted = self.curve.hedged(self.question.allowed(), plan);
        let later = copies.reached.filter(|paired| *paired > predicted * (1.0 + 2.0 * NOTABLE));
        warnings.extend(later.map(|paired| Warning::Alike { predicted, paired }));
        Ok(())
    }

    /// Whether the servers are so busy that the target comes later with the plan than without.
    fn overload(&self, plan: &Plan, gain: f64) -> Option<Reason> {
        let (load, extra) = (self.question.load?, plan.extra_load);
        let growth = growth(load, extra);
        let worse = growth.is_none_or(|growth| (1.0 - gain) * growth >= 1.0);
        worse.then_some(Reason::Load { load, extra, growth, target: self.question.target })
    }

    fn warnings(&self, has_pairs: bool) -> Vec<Warning> {
        let samples = self.latencies.count();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let beyond = (real(samples) * 0.001).round() as u64;
        let zeros = real(self.latencies.zeros()) / real(samples.max(1));
        let told = [
            (!has_pairs, Warning::NoPairs),
            (self.question.load.is_none(), Warning::NoLoad),
            (!self.question.due, Warning::NoDueTimes),
            (beyond < 10, Warning::FewBeyond { percentile: Percentile::P99_9, samples: beyond }),
            (zeros > NOTABLE, Warning::Zeros { share: zeros }),
        ];
        told.into_iter().filter_map(|(applies, warning)| applies.then_some(warning)).collect()
    }
}
