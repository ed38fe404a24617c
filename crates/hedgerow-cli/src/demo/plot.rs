//! The tail as bars in the terminal, on a logarithmic scale because a tail spans decades.

use std::{
    env,
    fmt::{self, Display, Formatter, Write},
    io::{IsTerminal, stdout},
    time::Duration,
};

use super::report::millis;

/// Length of the longest bar, so that a line with its label fits into 80 columns.
const WIDTH: usize = 48;
/// Parts of a character cell, by eighths.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// One quantile in both phases.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) direct: Duration,
    pub(super) hedged: Duration,
}

/// Colour, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(bool);

impl Paint {
    /// Colour only where a person sees it and has not asked for none (`NO_COLOR`, or a terminal
    /// that has none).
    pub(super) fn for_stdout() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let unable = env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(stdout().is_terminal() && !refused && !unable)
    }

    fn apply(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A pair of bars per row, above an axis.
pub(super) fn bars(rows: &[Row], paint: Paint) -> String {
    let axis = Axis::over(rows);
    let mut plot = String::from("latency, on a log scale\n");
    for row in rows {
        for (label, phase, value, colour) in
            [(row.name, "direct", row.direct, "33"), ("", "hedged", row.hedged, "32")]
        {
            let bar = paint.apply(colour, &axis.bar(value));
            // Writing to a string cannot fail.
            let _ = writeln!(plot, "{label:<6} {phase} {bar} {}", millis(value));
        }
    }
    plot + &axis.to_string()
}

/// Whole decades of milliseconds, as powers of ten.
#[derive(Debug)]
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the logarithm of a duration in milliseconds is within -6..=23"
    )]
    fn over(rows: &[Row]) -> Self {
        let logs = || rows.iter().flat_map(|row| [row.direct, row.hedged]).map(log);
        let first = logs().fold(f64::INFINITY, f64::min).floor().clamp(-6.0, 23.0) as i32;
        let last = logs().fold(f64::NEG_INFINITY, f64::max).ceil().clamp(-6.0, 23.0) as i32;
        Self { first, last: last.max(first + 1) }
    }

    /// Where a power of ten stands, in eighths of a cell from the left.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the width of the plot"
    )]
    fn position(&self, log: f64) -> usize {
        let fraction = (log - f64::from(self.first)) / f64::from(self.last - self.first);
        (fraction.clamp(0.0, 1.0) * f64::from(WIDTH as u32 * 8)).round() as usize
    }

    /// At least the thinnest of bars, so that the smallest value is still seen.
    fn bar(&self, value: Duration) -> String {
        let eighths = self.position(log(value)).max(1);
        "█".repeat(eighths / 8) + PARTS[eighths % 8]
    }
}

impl Display for Axis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (mut ticks, mut labels) = (String::new(), String::new());
        for power in self.first..=self.last {
            let column = self.position(f64::from(power)) / 8;
            let label = decade(power);
            let _ = write!(ticks, "{:─<1$}┴", "", column.saturating_sub(ticks.chars().count()));
            let _ =
                write!(labels, "{:<1$}{label}", "", column.saturating_sub(labels.chars().count()));
        }
        writeln!(f, "{:14}{ticks}\n{:14}{labels}", "", "")
    }
}

/// A power of ten of milliseconds, in the unit that keeps it short.
fn decade(power: i32) -> String {
    match power {
        ..-3 => format!("{} ns", 10_f64.powi(power + 6)),
        -3..0 => format!("{} µs", 10_f64.powi(power + 3)),
        0..3 => format!("{} ms", 10_f64.powi(power)),
        _ => format!("{} s", 10_f64.powi(power - 3)),
    }
}

/// The power of ten of a latency in milliseconds; what is too short to measure counts as a
/// nanosecond.
fn log(value: Duration) -> f64 {
    (value.as_secs_f64() * 1e3).max(1e-6).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, direct: u64, hedged: u64) -> Row {
        Row { name, direct: Duration::from_micros(direct), hedged: Duration::from_micros(hedged) }
    }

    #[test]
    fn bars_grow_with_the_logarithm() {
        let axis = Axis { first: 0, last: 3 };
        let cells = |micros| axis.bar(Duration::from_micros(micros)).chars().count();
        assert_eq!((cells(10_000), cells(100_000), cells(1_000_000)), (16, 32, 48));
        assert_eq!(axis.bar(Duration::from_millis(1)), "▏");
        assert_eq!(cells(90_000_000), WIDTH);
    }

    #[test]
    fn the_axis_covers_all_values_in_whole_decades() {
        let axis = Axis::over(&[row("p50", 4_100, 4_200), row("max", 380_000, 21_000)]);
        assert_eq!((axis.first, axis.last), (0, 3));
        let flat = Axis::over(&[row("p50", 1_000, 1_000)]);
        assert!(flat.last > flat.first);
        let nothing = Axis::over(&[row("p50", 0, 0)]);
        assert!(nothing.last > nothing.first);
    }

    #[test]
    fn no_colour_unless_wanted_and_no_line_past_80_columns() {
        let rows = [row("p50", 4_100, 4_200), row("p99.9", 1_000_000, 1_000_000)];
        let plain = bars(&rows, Paint(false));
        assert!(!plain.contains('\x1b') && plain.contains("p99.9  direct "), "{plain}");
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        assert!(bars(&rows, Paint(true)).contains("\x1b[32m"));
    }
}
