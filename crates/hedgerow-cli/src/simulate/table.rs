//! What came out, for a person.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::result::{Answer, Figures, Policy};
use crate::output::is_unseen;

/// How much of a name is shown.
const NAME: usize = 40;

/// The head of the column with what was learned.
const LEARNED: &str = "learned";

/// What the columns mean, where there is room to say so.
pub(super) const LEGEND: &str = "Latencies in milliseconds. extra: hedges for each call; won: the \
    share of the hedges that answered their call; in time: the share of the requests that were \
    answered until the grace of their step was over; learned: the delay that was learned, on \
    average over all calls; p99 to none: the p99 of each run over that of \
    the same run without hedging, its median and the worst.";

/// The figures of a step, or of all steps, as text.
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A table for each step, and one for all if there are several.
pub(super) fn tables(answer: &Answer) -> Vec<Table> {
    let steps = answer.policies.first().map_or(0, |policy| policy.steps.len());
    let mut tables: Vec<_> =
        (0..steps).map(|index| table(answer, |policy| &policy.steps[index])).collect();
    if steps > 1 {
        tables.push(table(answer, |policy| &policy.total));
    }
    tables
}

fn table(answer: &Answer, of: impl Fn(&Policy) -> &Figures) -> Table {
    let several = answer.runs > 1;
    let ratio = if several { "p99 to none (worst)" } else { "p99 to none" };
    let learns = learns(answer);
    let mut heads = vec!["policy", "extra", "p50", "p90", "p95", "p99", "p99.9", "max", "mean"];
    // A column that says nothing where nothing is learned.
    heads.extend(learns.then_some(LEARNED));
    heads.extend(["won", "in time", ratio]);
    let caption = answer.policies.first().map(|first| {
        let figures = of(first);
        format!("{}, {} requests", plain(&figures.step), figures.requests)
    });
    let row = |policy: &Policy| {
        let cells = cells(of(policy), several, learns);
        [plain(&policy.name)].into_iter().chain(cells).collect()
    };
    Table {
        caption: caption.unwrap_or_default(),
        heads,
        rows: answer.policies.iter().map(row).collect(),
    }
}

fn cells(figures: &Figures, several: bool, learns: bool) -> Vec<String> {
    let latencies = [
        figures.p50_ms,
        figures.p90_ms,
        figures.p95_ms,
        figures.p99_ms,
        figures.p999_ms,
        figures.max_ms,
        figures.mean_ms,
    ];
    let won = if figures.hedges == 0 { "-".to_owned() } else { percent(figures.win_rate) };
    let (ratio, worst) = (figures.p99_to_none.median, figures.p99_to_none.worst);
    let ratio = if several { format!("{ratio:.3} ({worst:.3})") } else { format!("{ratio:.3}") };
    let mut cells = vec![format!("{:.2} %", figures.extra_load * 100.0)];
    cells.extend(latencies.map(millis));
    let learned = || figures.learned_ms.map_or_else(|| "-".to_owned(), millis);
    cells.extend(learns.then(learned));
    cells.extend([won, percent(figures.completed), ratio]);
    cells
}

/// How many runs there were.
pub(super) fn runs(answer: &Answer) -> String {
    match answer.runs {
        1 => format!("seed {}", answer.seed),
        runs => format!("{runs} runs, seeds from {}", answer.seed),
    }
}

/// Writes all tables.
pub(super) fn write(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let title = answer.title.as_deref().map(|title| format!("{}: ", plain(title)));
    writeln!(out, "{}{}; latencies in ms", title.unwrap_or_default(), runs(answer))?;
    for Table { caption, heads, rows } in tables(answer) {
        writeln!(out, "\n{caption}")?;
        let names = rows.iter().filter_map(|row| row.first());
        let width = names.map(|name| short(name).width()).max().unwrap_or(0).max(6);
        let last_wide = if heads.contains(&LEARNED) { 9 } else { 8 };
        let heads = heads.into_iter().map(str::to_owned).collect();
        [heads].iter().chain(&rows).try_for_each(|row| line(out, row, width, last_wide))?;
    }
    Ok(())
}

/// One line of a table: the name, and figures in columns, those up to `last_wide` latencies.
fn line(out: &mut impl Write, row: &[String], width: usize, last_wide: usize) -> io::Result<()> {
    let last = row.len().saturating_sub(1);
    for (index, cell) in row.iter().enumerate() {
        match index {
            0 => {
                let name = short(cell);
                write!(out, "  {name}{:pad$}", "", pad = width.saturating_sub(name.width()))?;
            }
            index if (2..=last_wide).contains(&index) => write!(out, " {cell:>8}")?,
            _ if index == last => write!(out, "  {cell}")?,
            _ => write!(out, " {cell:>7}")?,
        }
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
    if name.width() <= NAME {
        return name.to_owned();
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width < NAME
    };
    name.chars().take_while(fits).collect::<String>() + "…"
}

/// Without what would move the cursor or turn the text around.
fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_column() {
        assert_eq!(short("d = 10"), "d = 10");
        assert_eq!(plain("a\nb\u{202e}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(short(&"x".repeat(41)).width(), NAME);
        // Wide characters take two places; 19 of them and the dots leave one empty.
        assert_eq!(short(&"日".repeat(21)), "日".repeat(19) + "…");
    }

    #[test]
    fn latencies_have_digits_that_mean_something() {
        let figures = [0.0123, 4.7612, 1799.5, 21_347.4].map(millis);
        assert_eq!(figures, ["0.0123", "4.76", "1799.50", "21347"]);
    }
}
