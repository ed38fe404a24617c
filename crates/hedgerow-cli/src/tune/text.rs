//! The advice for people.

use std::io::{self, Write};

use hedgerow_sim::tune::{Advice, Plan, Warning};

use super::tables::{Table, show, tables};

/// Writes the advice for one log.
pub(super) fn write(out: &mut impl Write, advice: &Advice, notes: &[String]) -> io::Result<()> {
    figures(out, advice)?;
    list(out, warnings(advice.warnings.iter(), notes))
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
        let own = advice.warnings.iter().filter(|warning| !is_common(warning));
        list(out, warnings(own, &[]))?;
        writeln!(out)?;
    }
    let first = keys.iter().take(1).flat_map(|(_, advice)| &advice.warnings);
    list(out, warnings(first.filter(|warning| is_common(warning)), notes))
}

fn figures(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    writeln!(out, "{}\n{}", verdict(advice), basis(advice))?;
    tables(advice).iter().try_for_each(|each| table(out, each))?;
    pairs(advice).map_or(Ok(()), |pairs| writeln!(out, "\n{pairs}"))
}

/// What to do.
pub(super) fn verdict(advice: &Advice) -> String {
    match &advice.verdict {
        Ok(plan) => format!("Hedge {}.", said(plan)),
        Err(reason) => format!("Do not hedge, because {reason}."),
    }
}

/// What that rests on.
pub(super) fn basis(advice: &Advice) -> String {
    let latencies = if advice.samples == 1 { "latency" } else { "latencies" };
    format!("From {} {latencies}, for {}.", advice.samples, advice.target)
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

/// A table in columns that are as wide as they have to be.
fn table(out: &mut impl Write, table: &Table) -> io::Result<()> {
    writeln!(out, "\n{}", table.title)?;
    let lines: Vec<&Vec<String>> = [&table.heads].into_iter().chain(&table.rows).collect();
    let wide = |cell: Option<&String>| cell.map_or(0, |cell| cell.chars().count());
    let width = |column| lines.iter().map(|line| wide(line.get(column))).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.heads.len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("   ").trim_end())?;
    }
    Ok(())
}

/// What pairs of copies say.
pub(super) fn pairs(advice: &Advice) -> Option<String> {
    let copies = advice.copies?;
    Some(format!(
        "Pairs: {} of {} hedges would win (between {:.1} and {:.1} %); rank correlation of copies \
         {:.2}.",
        copies.won,
        copies.hedged,
        copies.low * 100.0,
        copies.high * 100.0,
        copies.correlation
    ))
}

/// What the figures do not tell.
pub(super) fn warnings<'a>(
    warnings: impl Iterator<Item = &'a Warning>,
    notes: &[String],
) -> impl Iterator<Item = String> {
    warnings.map(ToString::to_string).chain(notes.iter().cloned())
}

fn list(out: &mut impl Write, warnings: impl Iterator<Item = String>) -> io::Result<()> {
    let mut warnings = warnings.peekable();
    if warnings.peek().is_some() {
        writeln!(out, "\nMind that:")?;
    }
    warnings.try_for_each(|warning| writeln!(out, "- {warning}"))
}
