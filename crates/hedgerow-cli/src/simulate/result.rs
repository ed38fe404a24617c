//! What came out, as figures.

use hedgerow_sim::{Outcome, Stats, Step};
use serde::Serialize;

use super::spec::Spec;

/// The whole answer.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) policies: Vec<Policy>,
}

/// What came of one policy.
#[derive(Debug, Serialize)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) steps: Vec<Figures>,
    pub(super) total: Figures,
    pub(super) events: u64,
}

/// The figures of a step, or of all.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) step: String,
    pub(super) requests: u64,
    pub(super) calls: u64,
    pub(super) hedges: u64,
    pub(super) refused: u64,
    pub(super) extra_load: f64,
    pub(super) win_rate: f64,
    /// The share of the requests that were answered until the grace of their step was over.
    pub(super) completed: f64,
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p90_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
    /// The learned delay on average, before any bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) learned_ms: Option<f64>,
    /// The p99 of each run over the p99 of the run with the same seed without hedging.
    pub(super) p99_to_none: Spread,
    /// The p99 of each run.
    pub(super) p99_of_runs_ms: Spread,
}

/// A figure over all runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) worst: f64,
}

impl Answer {
    /// What the outcomes say: for each policy those of its runs; the first has no hedging.
    pub(super) fn new(spec: &Spec, outcomes: &[Vec<Outcome>]) -> Self {
        let steps: Vec<_> = spec.model.load().steps().iter().map(Step::name).collect();
        let none = outcomes.first().map_or(&[][..], Vec::as_slice);
        let policy = |(plan, runs): (&super::spec::Plan, &Vec<Outcome>)| {
            let mut whole = Outcome::default();
            for run in runs {
                whole.merge(run);
            }
            let step = |(index, name): (usize, &&str)| {
                let p99 = |run: &Outcome| run.steps[index].latency.quantile_ms(0.99);
                Figures::new(name, &whole.steps[index], &each(runs, p99), &each(none, p99))
            };
            let p99 = |run: &Outcome| run.total().latency.quantile_ms(0.99);
            Policy {
                name: plan.name.clone(),
                steps: steps.iter().enumerate().map(step).collect(),
                total: Figures::new("all", &whole.total(), &each(runs, p99), &each(none, p99)),
                events: whole.events,
            }
        };
        Self {
            title: spec.title.clone(),
            seed: spec.seed,
            runs: spec.runs,
            policies: spec.plans.iter().zip(outcomes).map(policy).collect(),
        }
    }
}

impl Figures {
    /// `p99` is that of each run, `none` the same without hedging.
    fn new(step: &str, stats: &Stats, p99: &[f64], none: &[f64]) -> Self {
        let quantile = |share| round(stats.latency.quantile_ms(share), 1e4);
        Self {
            step: step.to_owned(),
            requests: stats.requests(),
            calls: stats.calls,
            hedges: stats.hedges,
            refused: stats.refused,
            extra_load: round(stats.extra_load(), 1e6),
            win_rate: round(stats.win_rate(), 1e6),
            completed: round(stats.completed(), 1e6),
            mean_ms: round(stats.latency.mean_ms(), 1e4),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: round(stats.latency.max_ms(), 1e4),
            learned_ms: (stats.learned.count() > 0).then(|| round(stats.learned.mean_ms(), 1e4)),
            p99_to_none: Spread::of(p99.iter().zip(none).map(|(p99, none)| p99 / none.max(1e-9))),
            p99_of_runs_ms: Spread::of(p99.iter().copied()),
        }
    }
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(0.0);
        let (middle, last) = (figures.len() / 2, figures.len().saturating_sub(1));
        let median = f64::midpoint(at(last - middle.min(last)), at(middle));
        Self { median: round(median, 1e4), worst: round(at(last), 1e4) }
    }
}

/// A figure of each run.
fn each(runs: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    runs.iter().map(figure).collect()
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        let spread = |figures: &[f64]| {
            let Spread { median, worst } = Spread::of(figures.iter().copied());
            (median, worst)
        };
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (2.0, 3.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), (2.5, 4.0));
        assert_eq!(spread(&[7.0]), (7.0, 7.0));
    }
}
