//! What a plan does to servers that are busy already, tried in the simulator.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::latency::{Learner, Learning, Percentile, Rule};
use hedgerow_core::{
    Budget, Delay, ExtraLoad, InvalidOption, MaxHedges, Policy, RatioBudget, Schedule,
};

use super::advice::Choice;
use super::backend::Backend;
use super::curve::FineCurve;
use super::decide::Question;
use super::figures::Quantiles;
use super::ratio::Ratio;
use crate::{
    Arrivals, Distribution, Histogram, Load, Model, OnCancel, Outcome, Progress, Servers, Stats,
    Step, Strategy, Work, run_all,
};

/// How many values stand for the log.
const VALUES: u32 = 50_000;
/// How many runs there are, each with luck of its own that all policies share. [`Ratio`] knows the
/// number too.
const RUNS: u32 = 5;
/// Calls beyond the target in a run, and the least and the most calls of a run.
const BEYOND: f64 = 1_000.0;
const CALLS: (f64, f64) = (50_000.0, 200_000.0);
/// How much of that comes before, until queues are what they will be.
const WARM_UP: f64 = 0.25;
/// Fewer calls by this share in time are fewer.
const FEWER: f64 = 0.001;
/// Calls a second that can be simulated.
const RATES: (f64, f64) = (1e-4, 1e9);
/// Points of a curve that are closer than this factor are one.
const NEAR: f64 = 1.02;

/// What servers that are busy made of an advice.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulated {
    /// The servers.
    pub backend: Backend,
    /// How many runs there were.
    pub runs: u32,
    /// How many calls each policy had, in all runs together.
    pub calls: u64,
    /// Without hedging.
    pub without: Trial,
    /// With the recommended plan under a budget of the extra load that was asked for.
    pub with: Trial,
    /// With the learned policy, the default of programs, under the same budget; none if the
    /// [`Backend`] is brief.
    pub adaptive: Option<Trial>,
    /// The survival curves of these three: nanoseconds, and which share of calls takes longer.
    pub survival: [Vec<(f64, f64)>; 3],
}

/// What came of one policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trial {
    /// Latencies in nanoseconds.
    pub quantiles: Quantiles,
    /// The target, in nanoseconds.
    pub reached: f64,
    /// Hedges for each call.
    pub extra_load: f64,
    /// The share of their time that the servers are busy; more than 1 is more than they can do.
    pub utilisation: f64,
    /// The share of the calls that were answered before the end of the run, or a p99.9 later.
    pub completed: f64,
    /// The target over that without hedging, by runs.
    pub ratio: Ratio,
    /// Whether the target comes sooner than without hedging, beyond what is chance among the runs,
    /// and no fewer calls are answered in time.
    pub pays: bool,
}

/// How many calls trying takes in all, at most: for who watches the [`Progress`].
pub(super) fn expected(question: &Question) -> u64 {
    let Some(backend) = question.backend else { return 0 };
    let policies = if backend.is_brief() { 2 } else { 2 + question.loads().len() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    let calls = (calls(question) * (1.0 + WARM_UP)).round() as u64;
    calls * u64::from(RUNS) * policies as u64
}

/// How many calls a run counts.
fn calls(question: &Question) -> f64 {
    (BEYOND / question.allowed()).clamp(CALLS.0, CALLS.1)
}

/// Tries the choices, and puts what came of each into it. `recommended` is the place of the
/// recommended one. `Err`: the rate that cannot be simulated.
pub(super) fn simulate(
    curve: &FineCurve,
    question: &Question,
    backend: Backend,
    choices: &mut [Choice],
    recommended: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Simulated, f64> {
    let trials = Trials::new(curve, question, backend)?;
    let is_tried = |index: usize| !backend.is_brief() || index == recommended;
    let planned = |(index, choice): (usize, &Choice)| {
        let plan = choice.plan.filter(|_| is_tried(index))?;
        let probability = plan.probability;
        Some((index, fixed(plan.delay, probability, choice.max_extra_load)))
    };
    let planned: Vec<_> = choices.iter().enumerate().filter_map(planned).collect();
    let wanted = choices.get(recommended).map_or(0.0, |choice| choice.max_extra_load);
    let mut makers: Vec<Maker> = vec![Box::new(none)];
    let (places, plans): (Vec<usize>, Vec<Maker>) = planned.into_iter().unzip();
    makers.extend(plans);
    if !backend.is_brief() {
        makers.push(adaptive(question.target, wanted));
    }
    let outcomes = trials.run(&makers, threads, progress);
    let stats: Vec<Stats> = outcomes.iter().map(|runs| whole(runs)).collect();
    let trial = |index: usize| trials.trial(&outcomes[index], &stats[index], &outcomes[0]);
    for (made, place) in places.iter().enumerate() {
        choices[*place].simulated = Some(trial(made + 1));
    }
    let with = places.iter().position(|place| *place == recommended).map_or(0, |made| made + 1);
    let learned = (!backend.is_brief()).then(|| makers.len() - 1);
    let curve = |index: usize| thinned(&stats[index].latency);
    Ok(Simulated {
        backend,
        runs: RUNS,
        calls: stats[0].calls,
        without: trial(0),
        with: trial(with),
        adaptive: learned.map(trial),
        survival: [curve(0), curve(with), learned.map(curve).unwrap_or_default()],
    })
}

/// What makes a strategy for a run.
type Maker = Box<dyn Fn() -> Strategy + Sync>;

fn none() -> Strategy {
    let max_hedges = MaxHedges::new(0).unwrap_or(Policy::default().max_hedges);
    Strategy::new(Policy { max_hedges, ..Policy::default() })
}

/// A fixed delay and a probability, and a budget as a program would have it.
fn fixed(delay: f64, probability: f64, load: f64) -> Maker {
    let delay = Duration::try_from_secs_f64(delay / 1e9).unwrap_or(Duration::MAX);
    let delay = if delay.is_zero() { Delay::Immediately } else { Delay::After(delay) };
    Box::new(move || {
        let schedule = Schedule::Every(delay);
        let strategy =
            Strategy::new(Policy { schedule, budget: budget(load), ..Policy::default() });
        // A plan's probability is a share.
        strategy.clone().with_probability(probability).unwrap_or(strategy)
    })
}

fn adaptive(target: Percentile, load: f64) -> Maker {
    Box::new(move || {
        let learning = Learning { rule: Rule::Target(target), load, ..Learning::default() };
        let learner = Some(Arc::new(Learner::new(learning)));
        Strategy::new(Policy { learner, budget: budget(load), ..Policy::default() })
    })
}

fn budget(load: f64) -> Option<Arc<dyn Budget>> {
    Some(Arc::new(RatioBudget::new(ExtraLoad::new(load).ok()?)))
}

/// The model of all trials.
struct Trials {
    model: Model,
    target: Percentile,
    backend: Backend,
    seeds: Vec<u64>,
}

impl Trials {
    fn new(curve: &FineCurve, question: &Question, backend: Backend) -> Result<Self, f64> {
        let values: Vec<f64> = (0..VALUES)
            .map(|place| curve.exceeded_with((f64::from(place) + 0.5) / f64::from(VALUES)) / 1e6)
            .collect();
        let mean = values.iter().sum::<f64>() / f64::from(VALUES) * 1e6;
        let rate = backend.rate(mean);
        if !(RATES.0..=RATES.1).contains(&rate) {
            return Err(rate);
        }
        let grace = curve.exceeded_with(1.0 - Percentile::P99_9.share());
        let model = model(&values, rate, calls(question), grace, backend);
        let seeds = (0..u64::from(RUNS)).map(|run| question.seed.wrapping_add(run)).collect();
        // Everything was checked: latencies are finite, and the rate and the servers are in range.
        let model = model.map_err(|_| rate)?;
        Ok(Self { model, target: question.target, backend, seeds })
    }

    fn run(&self, makers: &[Maker], threads: usize, progress: &Progress) -> Vec<Vec<Outcome>> {
        run_all(&self.model, makers, &self.seeds, threads, progress)
    }

    fn trial(&self, runs: &[Outcome], stats: &Stats, none: &[Outcome]) -> Trial {
        let nanos = |share: f64| stats.latency.quantile_ms(share) * 1e6;
        let reached = |run: &Outcome| measured(run).latency.quantile_ms(self.target.share());
        let ratio =
            Ratio::of(runs.iter().zip(none).map(|(run, none)| reached(run) / reached(none)));
        let is_complete = stats.completed() >= whole(none).completed() - FEWER;
        Trial {
            quantiles: Quantiles::of(|chance| nanos(1.0 - chance)),
            reached: nanos(self.target.share()),
            extra_load: stats.extra_load(),
            // Copies are as long as their primaries on average, and nobody stops them.
            utilisation: self.backend.load() * (1.0 + stats.extra_load()),
            completed: stats.completed(),
            ratio,
            pays: ratio.is_gain() && is_complete,
        }
    }
}

/// All runs of a policy as one, without their beginnings.
fn whole(runs: &[Outcome]) -> Stats {
    let mut whole = Stats::default();
    for run in runs {
        whole.merge(measured(run));
    }
    whole
}

fn model(
    values: &[f64],
    rate: f64,
    calls: f64,
    grace: f64,
    backend: Backend,
) -> Result<Model, InvalidOption> {
    let lasting = |calls: f64| {
        Step::lasting(rate, Duration::try_from_secs_f64(calls / rate).unwrap_or(Duration::MAX))
    };
    let load = Load::new(Arrivals::Poisson, [lasting(calls * WARM_UP)?, lasting(calls)?])?;
    let grace = Duration::try_from_secs_f64(grace / 1e9).unwrap_or(Duration::MAX);
    let servers = Servers::limited(backend.servers(), backend.workers())?;
    let servers = servers.on_cancel(OnCancel::Ignore, Duration::ZERO);
    Ok(Model::new(Work::new(Distribution::samples(values)?), servers, load.grace(grace)))
}

/// What a run counts: its first step is the beginning.
fn measured(run: &Outcome) -> &Stats {
    &run.steps[1]
}

/// The corners of a survival curve, but for those that are hardly apart.
fn thinned(latency: &Histogram) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (ms, share) in latency.survival() {
        let is_apart = |(nanos, before): &(f64, f64)| {
            ms * 1e6 > nanos * NEAR || share * NEAR < *before || share <= 0.0
        };
        if kept.last().is_none_or(is_apart) {
            kept.push((ms * 1e6, share));
        }
    }
    kept
}
