//! The figures of an advice in tables, for whoever shows them.

use hedgerow::text::format_duration;
use hedgerow_sim::tune::{Advice, Choice, Interval, Quantiles, Simulated, Trial, rounded};

const NAMES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// A table. The first cell of each row is its head.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// All that there are, in order.
pub(super) fn tables(advice: &Advice) -> Vec<Table> {
    let simulated = advice.simulated.as_ref().map(|simulated| trials(advice, simulated));
    [Some(latencies(advice)), choices(advice), simulated].into_iter().flatten().collect()
}

/// The log, and what the plan makes of it.
fn latencies(advice: &Advice) -> Table {
    let (without, predicted) = (advice.without.each(), advice.predicted.each());
    let intervals = advice.intervals;
    let row = |(place, name): (usize, &str)| {
        let left = figure(without[place], intervals.without.each()[place]);
        let right = figure(predicted[place], intervals.predicted.each()[place]);
        let right = advice.verdict.is_ok().then_some(right);
        [name.to_owned(), left].into_iter().chain(right).collect()
    };
    let heads = ["", "without hedging", "with hedging"];
    let heads = heads.into_iter().take(if advice.verdict.is_ok() { 3 } else { 2 });
    Table {
        title: "Latencies, and where they lie in 19 of 20 cases".to_owned(),
        heads: heads.map(str::to_owned).collect(),
        rows: NAMES.into_iter().enumerate().map(row).collect(),
    }
}

/// A latency and where it lies in 19 of 20 cases.
fn figure(nanos: f64, interval: Interval) -> String {
    let high = interval.high.map_or_else(|| "?".to_owned(), show);
    format!("{} [{}, {high}]", show(nanos), show(interval.low))
}

/// What other extra loads would give.
fn choices(advice: &Advice) -> Option<Table> {
    if advice.choices.len() < 2 {
        return None;
    }
    let target = advice.target.to_string();
    let mut heads =
        ["extra load", "delay", "probability", &target, "p99.9"].map(str::to_owned).to_vec();
    if let Some(simulated) = &advice.simulated {
        heads.push(format!("{target} at {} busy", percent(simulated.backend.load())));
    }
    Some(Table {
        title: "What more and fewer hedges give".to_owned(),
        heads,
        rows: advice.choices.iter().map(choice).collect(),
    })
}

fn choice(choice: &Choice) -> Vec<String> {
    let load = format!("{} %", choice.max_extra_load * 100.0);
    let Some(plan) = choice.plan else { return vec![load, "no gain".to_owned()] };
    let probability = format!("{:.3}", plan.probability);
    let (reached, p999) = (show(choice.reached), show(choice.predicted.p999));
    let mut row = vec![load, show(plan.delay), probability, reached, p999];
    row.extend(choice.simulated.map(|trial| {
        let note = if trial.pays { "" } else { ", too busy" };
        show(trial.reached) + note
    }));
    row
}

/// What busy servers make of it.
fn trials(advice: &Advice, simulated: &Simulated) -> Table {
    let Simulated { backend, runs, calls, without, with, adaptive, .. } = simulated;
    let count =
        |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let title = format!(
        "Simulated: {} with {}{}, {} busy without hedges; {calls} calls in {runs} runs",
        count(backend.servers(), "server"),
        count(backend.workers(), "worker"),
        if backend.servers() == 1 { "" } else { " each" },
        percent(backend.load()),
    );
    let each: Vec<&Trial> =
        [Some(without), Some(with), adaptive.as_ref()].into_iter().flatten().collect();
    let heads = ["", "without hedging", "with hedging", "learned policy"];
    let heads = heads.into_iter().take(1 + each.len());
    let row = |name: &str, cell: &dyn Fn(&Trial) -> String| {
        [name.to_owned()].into_iter().chain(each.iter().map(|trial| cell(trial))).collect()
    };
    let quantile = |place: usize| move |trial: &Trial| show(of(&trial.quantiles, place));
    let mut rows: Vec<Vec<String>> =
        NAMES.into_iter().enumerate().map(|(place, name)| row(name, &quantile(place))).collect();
    rows.push(row("extra load", &|trial| percent(trial.extra_load)));
    rows.push(row("busy", &|trial| percent(trial.utilisation)));
    rows.push(row("in time", &|trial| percent(trial.completed)));
    let ratio = |trial: &Trial| {
        if std::ptr::eq(trial, without) {
            return "1".to_owned();
        }
        let ratio = trial.ratio;
        format!("{:.2} [{:.2}, {:.2}]", ratio.mean, ratio.low, ratio.high)
    };
    rows.push(row(&format!("{} to without", advice.target), &ratio));
    Table { title, heads: heads.map(str::to_owned).collect(), rows }
}

fn of(quantiles: &Quantiles, place: usize) -> f64 {
    quantiles.each()[place]
}

/// A latency for people.
pub(super) fn show(nanos: f64) -> String {
    format_duration(rounded(nanos))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
