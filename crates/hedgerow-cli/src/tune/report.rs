//! `--report`: the advice as a page of its own, with its curves.

use hedgerow_sim::tune::{Advice, Curves, Simulated};

use super::tables::tables;
use super::text;
use crate::page::{Axis, FIRST, LEAST, Line, Page, Plot, Stroke, latency, share};

const ALONE: &str = "without hedging";
const HEDGED: &str = "with hedging";

/// The page.
pub(super) fn page(advice: &Advice, curves: &Curves, notes: &[String]) -> String {
    let mut page = Page::new(&text::verdict(advice));
    page.paragraph(&text::basis(advice));
    let mut plots = vec![survival(advice, curves)];
    let last = curves.survival.last().map_or(0.0, |(_, without, _)| *without);
    plots.extend(advice.simulated.as_ref().map(|tried| simulated(tried, last)));
    plots.extend(trade(advice, curves));
    page.plots(&plots);
    for table in tables(advice) {
        page.heading(&table.title);
        page.table("", &table.heads, table.rows.into_iter());
    }
    if let Some(pairs) = text::pairs(advice) {
        page.paragraph(&pairs);
    }
    page.heading("Mind that");
    page.list(text::warnings(advice.warnings.iter(), notes));
    page.finish()
}

/// How likely a call is to take longer than a latency.
fn survival(advice: &Advice, curves: &Curves) -> Plot {
    let points = &curves.survival;
    let mut lines = vec![Line {
        name: ALONE.to_owned(),
        stroke: Stroke::Base,
        points: points.iter().map(|(nanos, without, _)| (*nanos, *without)).collect(),
    }];
    if advice.verdict.is_ok() {
        lines.push(Line {
            name: HEDGED.to_owned(),
            stroke: Stroke::Number(0),
            points: points.iter().map(|(nanos, _, with)| (*nanos, *with)).collect(),
        });
    }
    // The predicted curve may fall far below what the log can tell.
    let lowest = points.iter().map(|(_, without, _)| *without);
    Plot {
        title: "Calls that take longer, as predicted".to_owned(),
        x: Axis::log("latency", points.iter().map(|(nanos, ..)| *nanos), latency),
        y: Axis::log("share of calls", lowest, share),
        lines,
    }
}

/// The same as simulated, down to the share that the log knows of.
fn simulated(simulated: &Simulated, last: f64) -> Plot {
    let strokes = [Stroke::Base, Stroke::Number(0), Stroke::Number(1)];
    let named = [ALONE, HEDGED, "learned policy"].into_iter().zip(strokes);
    let told = simulated.survival.iter().zip(named).filter(|(points, _)| !points.is_empty());
    let line = |(points, (name, stroke)): (&Vec<(f64, f64)>, (&str, Stroke))| Line {
        name: name.to_owned(),
        stroke,
        points: points.clone(),
    };
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let foot = (LEAST / simulated.calls.max(1) as f64).max(last);
    let seen = simulated.survival.iter().flatten();
    let seen = seen.filter(|(_, share)| (foot..=FIRST).contains(share));
    Plot {
        title: format!("As simulated, servers {} busy", share(simulated.backend.load())),
        x: Axis::log("latency", seen.map(|(nanos, _)| *nanos), latency),
        y: Axis::log("share of calls", [foot, 1.0].into_iter(), share),
        lines: told.map(line).collect(),
    }
}

/// What each extra load buys.
fn trade(advice: &Advice, curves: &Curves) -> Option<Plot> {
    let plans: Vec<_> =
        curves.trade.iter().filter_map(|choice| Some((choice, choice.plan?))).collect();
    if plans.len() < 2 {
        return None;
    }
    let reached: Vec<_> =
        plans.iter().map(|(choice, _)| (choice.max_extra_load, choice.reached)).collect();
    let delays: Vec<_> =
        plans.iter().map(|(choice, plan)| (choice.max_extra_load, plan.delay)).collect();
    let latencies = reached.iter().chain(&delays).map(|(_, nanos)| *nanos);
    Some(Plot {
        title: "What extra load buys".to_owned(),
        x: Axis::log("extra load", reached.iter().map(|(load, _)| *load), share),
        y: Axis::log("latency", latencies, latency),
        lines: vec![
            Line {
                name: format!("{} with hedging", advice.target),
                stroke: Stroke::Number(2),
                points: reached,
            },
            Line { name: "best delay".to_owned(), stroke: Stroke::Number(3), points: delays },
        ],
    })
}
