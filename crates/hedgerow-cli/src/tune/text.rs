//! The advice for people.

use std::io::{self, Write};

use hedgerow::text::format_duration;
use hedgerow_sim::tune::{Advice, Choice, Interval, Plan, Warning, rounded};

const NAMES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// Writes the advice for one log.
pub(super) fn write(out: &mut impl Write, advice: &Advice, notes: &[String]) -> io::Result<()> {
    figures(out, advice)?;
    list(out, advice.warnings.iter(), notes)
}

/// Writes the advice for each key, and once what is true of all.
pub(super) fn write_keyed(
    out: &mut impl Write,
    keys: &[(String, Advice)],
    notes: &[String],
) -> io::Result<()> {
    let is_common =
        |warning: &Warning| keys.iter().all(|(_, each)| each.warnings.contains(warning));
    for (key, advice) in keys {
        writeln!(out, "== {} ==", key.escape_debug())?;
        figures(out, advice)?;
        list(out, advice.warnings.iter().filter(|warning| !is_common(warning)), &[])?;
        writeln!(out)?;
    }
    let first = keys.iter().take(1).flat_map(|(_, advice)| &advice.warnings);
    list(out, first.filter(|warning| is_common(warning)), notes)
}

fn figures(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    verdict(out, advice)?;
    writeln!(out)?;
    let with = if advice.verdict.is_ok() { "with hedging" } else { "" };
    writeln!(out, "{}", format!("{:7}{:32}{with}", "", "without hedging").trim_end())?;
    let (without, predicted) = (advice.without.each(), advice.predicted.each());
    let intervals = advice.intervals;
    for (place, name) in NAMES.into_iter().enumerate() {
        let left = figure(without[place], intervals.without.each()[place]);
        let right = match advice.verdict {
            Ok(_) => figure(predicted[place], intervals.predicted.each()[place]),
            Err(_) => String::new(),
        };
        writeln!(out, "{}", format!("{name:7}{left:32}{right}").trim_end())?;
    }
    choices(out, advice)?;
    copies(out, advice)
}

fn verdict(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    match &advice.verdict {
        Ok(plan) => writeln!(out, "Hedge {}.", said(plan))?,
        Err(reason) => writeln!(out, "Do not hedge, because {reason}.")?,
    }
    let latencies = if advice.samples == 1 { "latency" } else { "latencies" };
    writeln!(out, "From {} {latencies}, for {}.", advice.samples, advice.target)
}

fn said(plan: &Plan) -> String {
    let delay = show(plan.delay);
    let chance = if plan.probability < 0.9995 {
        format!("with probability {:.3}", plan.probability)
    } else {
        "always".to_owned()
    };
    format!("after {delay}, {chance}: {:.2} % more attempts", plan.extra_load * 100.0)
}

/// A latency and where it lies in 19 of 20 cases.
fn figure(nanos: f64, interval: Interval) -> String {
    let high = interval.high.map_or_else(|| "?".to_owned(), show);
    format!("{} [{}, {high}]", show(nanos), show(interval.low))
}

fn show(nanos: f64) -> String {
    format_duration(rounded(nanos))
}

/// What other extra loads would give.
fn choices(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    if advice.choices.len() < 2 {
        return Ok(());
    }
    let target = advice.target.to_string();
    writeln!(out)?;
    writeln!(out, "{:12}{:12}{:13}{target:10}p99.9", "extra load", "delay", "probability")?;
    for choice in &advice.choices {
        writeln!(out, "{}", row(choice).trim_end())?;
    }
    Ok(())
}

fn row(choice: &Choice) -> String {
    let load = format!("{} %", choice.max_extra_load * 100.0);
    let Some(plan) = choice.plan else { return format!("{load:12}no gain") };
    let note = if choice.too_busy { "  the servers are too busy" } else { "" };
    let (delay, p999) = (show(plan.delay), show(choice.predicted.p999));
    format!("{load:12}{delay:12}{:<13.3}{:10}{p999}{note}", plan.probability, show(choice.reached))
}

fn copies(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    let Some(copies) = &advice.copies else { return Ok(()) };
    writeln!(out)?;
    writeln!(
        out,
        "Pairs: {} of {} hedges would win (between {:.1} and {:.1} %); rank correlation of copies {:.2}.",
        copies.won,
        copies.hedged,
        copies.low * 100.0,
        copies.high * 100.0,
        copies.correlation
    )
}

/// What the figures do not tell.
fn list<'a>(
    out: &mut impl Write,
    warnings: impl Iterator<Item = &'a Warning>,
    notes: &[String],
) -> io::Result<()> {
    let mut warnings = warnings.map(ToString::to_string).chain(notes.iter().cloned()).peekable();
    if warnings.peek().is_some() {
        writeln!(out, "\nMind that:")?;
    }
    warnings.try_for_each(|warning| writeln!(out, "- {warning}"))
}
