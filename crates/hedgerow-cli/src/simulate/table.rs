//! What came out, for a person.

use std::io::{self, Write};

use super::result::{Answer, Figures, Policy};

/// How much of a name is shown.
const NAME: usize = 40;

/// Writes a table for each step, and one for all if there are several.
pub(super) fn write(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let title = answer.title.as_deref().map(|title| format!("{}: ", plain(title)));
    let runs = match answer.runs {
        1 => format!("seed {}", answer.seed),
        runs => format!("{runs} runs, seeds from {}", answer.seed),
    };
    writeln!(out, "{}{runs}; latencies in ms", title.unwrap_or_default())?;
    let steps = answer.policies.first().map_or(0, |policy| policy.steps.len());
    let names = answer.policies.iter().map(|policy| short(&policy.name).chars().count());
    let width = names.max().unwrap_or(0).max(6);
    for index in 0..steps {
        one(out, answer, width, |policy| &policy.steps[index])?;
    }
    if steps > 1 {
        one(out, answer, width, |policy| &policy.total)?;
    }
    Ok(())
}

fn one(
    out: &mut impl Write,
    answer: &Answer,
    width: usize,
    of: impl Fn(&Policy) -> &Figures,
) -> io::Result<()> {
    let Some(first) = answer.policies.first() else { return Ok(()) };
    let figures = of(first);
    writeln!(out, "\n{}, {} requests", plain(&figures.step), figures.requests)?;
    let heads = ["p50", "p90", "p95", "p99", "p99.9", "max", "mean"];
    write!(out, "  {:width$} {:>7}", "policy", "extra")?;
    heads.iter().try_for_each(|head| write!(out, " {head:>8}"))?;
    let ratio = if answer.runs > 1 { "p99 to none (worst)" } else { "p99 to none" };
    // A column that says nothing where nothing is learned.
    let learned = if learns(answer) { format!(" {:>8}", "learned") } else { String::new() };
    writeln!(out, "{learned} {:>7} {:>7}  {ratio}", "won", "in time")?;
    for policy in &answer.policies {
        let figures = of(policy);
        row(out, answer, &short(&policy.name), width, figures)?;
    }
    Ok(())
}

fn row(
    out: &mut impl Write,
    answer: &Answer,
    name: &str,
    width: usize,
    figures: &Figures,
) -> io::Result<()> {
    let share = |share: f64| format!("{:.2} %", share * 100.0);
    let pad = width - name.chars().count();
    write!(out, "  {name}{:pad$} {:>7}", "", share(figures.extra_load))?;
    let latencies = [
        figures.p50_ms,
        figures.p90_ms,
        figures.p95_ms,
        figures.p99_ms,
        figures.p999_ms,
        figures.max_ms,
        figures.mean_ms,
    ];
    latencies.iter().try_for_each(|latency| write!(out, " {:>8}", millis(*latency)))?;
    if learns(answer) {
        write!(out, " {:>8}", figures.learned_ms.map_or_else(|| "-".to_owned(), millis))?;
    }
    let won = if figures.hedges == 0 { "-".to_owned() } else { percent(figures.win_rate) };
    write!(out, " {won:>7} {:>7}  {:.3}", percent(figures.completed), figures.p99_to_none.median)?;
    if answer.runs > 1 {
        write!(out, " ({:.3})", figures.p99_to_none.worst)?;
    }
    writeln!(out)
}

/// Whether any policy learns its delay.
fn learns(answer: &Answer) -> bool {
    answer.policies.iter().any(|policy| policy.total.learned_ms.is_some())
}

/// Milliseconds with as many digits as fit and mean something.
fn millis(value: f64) -> String {
    match value {
        ..0.1 => format!("{value:.4}"),
        ..10_000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A name that fits its column.
fn short(name: &str) -> String {
    let name = plain(name);
    if name.chars().count() <= NAME {
        return name;
    }
    name.chars().take(NAME - 1).collect::<String>() + "…"
}

/// Without what would move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_column() {
        assert_eq!(short("d = 10"), "d = 10");
        assert_eq!(short("a\nb"), "a\u{fffd}b");
        assert_eq!(short(&"x".repeat(41)).chars().count(), NAME);
    }

    #[test]
    fn latencies_have_digits_that_mean_something() {
        let figures = [0.0123, 4.7612, 1799.5, 21_347.4].map(millis);
        assert_eq!(figures, ["0.0123", "4.76", "1799.50", "21347"]);
    }
}
