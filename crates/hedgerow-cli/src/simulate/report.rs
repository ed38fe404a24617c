//! `--report`: what came out as a page of its own, with its curves.

use hedgerow_sim::{Outcome, Stats};

use super::result::{Answer, Figures, Policy};
use super::table;
use crate::page::{Axis, FIRST, LEAST, Line, Page, Plot, Stroke, latency, share};

/// Survival curves of more steps than this are too many to look at: there is one of all.
const MOST_CURVES: usize = 12;
/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;

/// The page: plots, tables, and the spec as it is written.
pub(super) fn page(answer: &Answer, outcomes: &[Vec<Outcome>], spec: &str) -> String {
    let mut page = Page::new(answer.title.as_deref().unwrap_or("Simulated policies"));
    page.paragraph(&said(answer));
    let steps = steps(answer);
    if steps.len() > 1 {
        page.heading("Step by step");
        page.plots(&by_step(answer, &steps));
        if answer.policies.iter().flat_map(|policy| &policy.steps).all(is_complete) {
            page.paragraph(
                "All requests were answered in time, in every step and by every policy.",
            );
        }
    }
    page.heading("How many take longer");
    page.plots(&survival(answer, outcomes, &steps));
    page.heading("Figures");
    page.paragraph(table::LEGEND);
    for table in table::tables(answer) {
        page.table(&table.caption, &table.heads, table.rows.into_iter());
    }
    page.folded("The spec", spec);
    page.finish()
}

fn said(answer: &Answer) -> String {
    let requests = answer.policies.first().map_or(0, |policy| policy.total.requests);
    format!("{}: {requests} requests under each policy.", table::runs(answer))
}

fn steps(answer: &Answer) -> Vec<&str> {
    let first = answer.policies.first().map_or(&[][..], |policy| policy.steps.as_slice());
    first.iter().map(|figures| figures.step.as_str()).collect()
}

fn is_complete(figures: &Figures) -> bool {
    figures.completed >= 1.0
}

/// Without hedging comes first, and everything is compared with it.
fn stroke(policy: usize) -> Stroke {
    policy.checked_sub(1).map_or(Stroke::Base, Stroke::Number)
}

/// p99, extra load and completion over the steps.
fn by_step(answer: &Answer, steps: &[&str]) -> Vec<Plot> {
    let of = |figure: fn(&Figures) -> f64| -> Vec<Line> { lines(answer, figure) };
    let values = |lines: &[Line]| -> Vec<f64> {
        lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value).collect()
    };
    let plot = |title: &str, y, lines| Plot {
        title: title.to_owned(),
        x: Axis::named("", steps),
        y,
        lines,
    };
    let p99 = of(|figures| figures.p99_ms * MS);
    let extra = of(|figures| figures.extra_load);
    let mut plots = vec![
        plot("p99", latencies(&values(&p99)), p99),
        plot(
            "Extra load",
            Axis::log_and_zero("hedges for each call", values(&extra).into_iter(), share),
            extra,
        ),
    ];
    let completed = of(|figures| figures.completed);
    let least = values(&completed).into_iter().fold(1.0, f64::min);
    if least < 1.0 {
        let from = if least >= 0.9 { 0.9 } else { 0.0 };
        let y = Axis::linear("share of requests", from, 1.0, share);
        plots.push(plot("Answered in time", y, completed));
    }
    plots
}

/// An axis for latencies, of which some may be zero.
fn latencies(values: &[f64]) -> Axis {
    let has_zero = values.iter().any(|nanos| *nanos <= 0.0);
    let axis = if has_zero { Axis::log_and_zero } else { Axis::log };
    axis("latency", values.iter().copied(), latency)
}

/// A line for each policy over the steps. Where no request arrived there is no figure.
fn lines(answer: &Answer, figure: fn(&Figures) -> f64) -> Vec<Line> {
    let line = |(index, policy): (usize, &Policy)| {
        let steps = policy.steps.iter().enumerate().filter(|(_, step)| step.requests > 0);
        #[expect(clippy::cast_precision_loss, reason = "steps are few")]
        let points = steps.map(|(step, figures)| (step as f64, figure(figures)));
        Line { name: policy.name.clone(), stroke: stroke(index), points: points.collect() }
    };
    answer.policies.iter().enumerate().map(line).collect()
}

/// The survival curves of each step on the same axes, or of all steps together if they are many.
fn survival(answer: &Answer, outcomes: &[Vec<Outcome>], steps: &[&str]) -> Vec<Plot> {
    let mut merged: Vec<Outcome> = Vec::new();
    for runs in outcomes {
        let mut whole = Outcome::default();
        for run in runs {
            whole.merge(run);
        }
        merged.push(whole);
    }
    let panels: Vec<(String, Vec<Stats>)> = if (2..=MOST_CURVES).contains(&steps.len()) {
        let of = |index: usize| merged.iter().map(|whole| whole.steps[index].clone()).collect();
        steps.iter().enumerate().map(|(index, name)| ((*name).to_owned(), of(index))).collect()
    } else {
        let title = if steps.len() > 1 { "All steps" } else { "All requests" };
        vec![(title.to_owned(), merged.iter().map(Outcome::total).collect())]
    };
    let all: Vec<&Stats> = panels.iter().flat_map(|(_, stats)| stats).collect();
    let panel = |(title, stats): &(String, Vec<Stats>)| {
        let named = answer.policies.iter().enumerate().zip(stats);
        let line = |((index, policy), stats): ((usize, &Policy), &Stats)| Line {
            name: policy.name.clone(),
            stroke: stroke(index),
            points: stats.latency.survival().map(|(ms, share)| (ms * MS, share)).collect(),
        };
        Plot {
            title: title.clone(),
            x: Axis::log("latency", all.iter().flat_map(|stats| ends(stats)), latency),
            y: Axis::log("share of requests", lowest(&all), share),
            lines: named.map(line).collect(),
        }
    };
    panels.iter().map(panel).collect()
}

/// Between which latencies a curve is looked at.
fn ends(stats: &Stats) -> [f64; 2] {
    let last = (least(stats).min(FIRST / 2.0), FIRST);
    [last.1, last.0].map(|share| stats.latency.quantile_ms(1.0 - share) * MS)
}

/// The smallest share that is no accident.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn least(stats: &Stats) -> f64 {
    LEAST / (stats.requests() as f64).max(1.0)
}

fn lowest(all: &[&Stats]) -> impl Iterator<Item = f64> {
    let counted = all.iter().filter(|stats| stats.requests() > 0).map(|stats| least(stats));
    [counted.fold(0.1, f64::min), 1.0].into_iter()
}
