//! From counts to advice.

use hedgerow_core::ExtraLoad;
use hedgerow_core::latency::{Curve, Percentile};

use super::advice::{Advice, Choice, Reason, Warning};
use super::backend::Backend;
use super::copies::{Copies, Finding, Pairs};
use super::curve::FineCurve;
use super::figures::{Intervals, Quantiles};
use super::latencies::{Latencies, real};
use super::noise::{gain, ranks, resample};
use super::solve::{Plan, coarse, solve};
use super::trial::{self, Simulated, simulate};
use crate::Progress;

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
    /// Servers on which the plan is tried, if one knows how busy they are.
    pub backend: Option<Backend>,
    /// Whether the latencies count from when each call was due.
    pub due: bool,
    /// What the resampling draws from.
    pub seed: u64,
}

impl Default for Question {
    /// For p99.
    fn default() -> Self {
        Self { target: Percentile::P99, max_extra_load: None, backend: None, due: false, seed: 1 }
    }
}

impl Question {
    /// The chance that the target is exceeded with.
    pub(super) fn allowed(&self) -> f64 {
        1.0 - self.target.share()
    }

    fn max_extra_load(&self) -> f64 {
        self.max_extra_load.map_or(USUAL, ExtraLoad::get)
    }

    /// The extra loads that are looked at.
    pub(super) fn loads(&self) -> Vec<f64> {
        self.max_extra_load.map_or(LOADS.to_vec(), |load| vec![load.get()])
    }

    /// About how many calls are simulated for an answer, at most; 0 without a backend.
    pub fn simulated_calls(&self) -> u64 {
        trial::expected(self)
    }

    /// How many samples it takes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    fn needed(&self) -> u64 {
        (BEYOND / self.allowed() - 1e-6).ceil() as u64
    }
}

/// What to set, what it will give, and how sure that is; or why not to hedge.
pub fn tune(latencies: &Latencies, pairs: Option<&Pairs>, question: &Question) -> Advice {
    tune_watched(latencies, pairs, question, 1, &Progress::default())
}

/// The same, simulated by at most so many threads and watched from another one. Neither changes the
/// answer.
pub fn tune_watched(
    latencies: &Latencies,
    pairs: Option<&Pairs>,
    question: &Question,
    threads: usize,
    progress: &Progress,
) -> Advice {
    let case = Case { latencies, question, curve: FineCurve::new(latencies) };
    let mut advice = case.advice(pairs);
    case.try_out(&mut advice, threads, progress);
    advice
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
        let choices = self.choices(&self.question.loads());
        let choice = self.recommended(&choices).map(|place| &choices[place]);
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
            simulated: None,
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
        let reached = self.curve.exceeded_with(allowed) * (1.0 - gain);
        Choice { max_extra_load: load, plan, predicted, reached, gain, simulated: None }
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

    /// The place of the choice that is recommended, among those for [`Question::loads`].
    fn recommended(&self, choices: &[Choice]) -> Option<usize> {
        let wanted = self.question.max_extra_load();
        choices.iter().position(|choice| choice.max_extra_load >= wanted)
    }

    /// Tries a plan on the servers that were named, and takes the advice back if they are too busy
    /// for it.
    fn try_out(&self, advice: &mut Advice, threads: usize, progress: &Progress) {
        let (Ok(plan), Some(backend)) = (advice.verdict, self.question.backend) else { return };
        let Some(place) = self.recommended(&advice.choices) else { return };
        let (curve, choices) = (&self.curve, &mut advice.choices);
        match simulate(curve, self.question, backend, choices, place, threads, progress) {
            Ok(simulated) => {
                if !simulated.with.pays {
                    advice.verdict = Err(self.too_busy(&plan, &simulated));
                    advice.predicted = advice.without;
                    advice.intervals.predicted = advice.intervals.without;
                }
                advice.simulated = Some(simulated);
            }
            Err(rate) => advice.warnings.push(Warning::NotSimulated { rate }),
        }
    }

    fn too_busy(&self, plan: &Plan, simulated: &Simulated) -> Reason {
        let Simulated { backend, without, with, .. } = simulated;
        Reason::Load {
            load: backend.load(),
            extra: plan.extra_load,
            target: self.question.target,
            without: without.reached,
            with: with.reached,
            completed: with.ratio.is_gain().then_some((without.completed, with.completed)),
        }
    }

    fn warnings(&self, has_pairs: bool) -> Vec<Warning> {
        let samples = self.latencies.count();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let beyond = (real(samples) * 0.001).round() as u64;
        let zeros = real(self.latencies.zeros()) / real(samples.max(1));
        let told = [
            (!has_pairs, Warning::NoPairs),
            (self.question.backend.is_none(), Warning::NoLoad),
            (!self.question.due, Warning::NoDueTimes),
            (beyond < 10, Warning::FewBeyond { percentile: Percentile::P99_9, samples: beyond }),
            (zeros > NOTABLE, Warning::Zeros { share: zeros }),
        ];
        told.into_iter().filter_map(|(applies, warning)| applies.then_some(warning)).collect()
    }
}
