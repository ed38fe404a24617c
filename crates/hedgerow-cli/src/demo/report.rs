//! The result for a person: a table, a plot, and one sentence.

use std::{fmt::Write, time::Duration};

use super::{
    args::DemoArgs,
    error::cut,
    plot::{self, Paint},
    stats::Summary,
};

/// Both phases side by side.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) direct: Summary,
    pub(super) hedged: Summary,
}

/// What the figures were measured on.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub(super) args: &'a DemoArgs,
    pub(super) interrupted: bool,
    pub(super) calls_in_flight: usize,
    /// What became of the last call that failed.
    pub(super) last_failure: Option<String>,
}

/// The columns of the report.
const WIDTH: usize = 78;

/// The whole report for a person.
pub(super) fn text(setting: &Setting<'_>, both: &Comparison, paint: Paint) -> String {
    let plot = plot::bars(&rows(both), paint);
    let mut text = format!("{}\n\n{}\n{plot}\n", headline(setting), table(both));
    for note in notes(setting, both) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", wrapped(&format!("note: {note}"), "      "));
    }
    // Half a phase proves nothing.
    if !setting.interrupted {
        text += &wrapped(&verdict(both), "");
    }
    text
}

/// A sentence on as many lines as it takes.
fn wrapped(sentence: &str, indent: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in sentence.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            text = text + "\n" + indent;
            column = indent.len();
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

fn headline(Setting { args, .. }: &Setting<'_>) -> String {
    let servers = match args.url.as_slice() {
        [] => format!("{} embedded servers on 127.0.0.1", args.upstreams),
        [only] => cut(&only.to_string()),
        [first, .., last] => {
            let [first, last] = [first, last].map(|url| cut(&url.to_string()));
            format!("{} servers, {first} to {last}", args.url.len())
        }
    };
    let load = format!("{servers}, {} calls/s for {:?}", args.rate, args.seconds);
    let phases = format!(
        "first direct, then hedged: {} more after {:?} without an answer (seed {})",
        args.max_hedges, args.delay, args.seed
    );
    format!("{}\n{}", wrapped(&load, ""), wrapped(&phases, ""))
}

/// The latencies shown, from the middle to the end of the tail.
fn rows(both: &Comparison) -> [plot::Row; 5] {
    let row = |name, figure: fn(&Summary) -> Duration| plot::Row {
        name,
        direct: figure(&both.direct),
        hedged: figure(&both.hedged),
    };
    [
        row("p50", |summary| summary.p50),
        row("p90", |summary| summary.p90),
        row("p99", |summary| summary.p99),
        row("p99.9", |summary| summary.p999),
        row("max", |summary| summary.max),
    ]
}

fn table(both: &Comparison) -> String {
    let mut table = String::new();
    let mut line = |name: &str, direct: &str, hedged: &str, change: &str| {
        let _ = writeln!(
            table,
            "{}",
            format!("{name:<12}{direct:>12}{hedged:>12}   {change}").trim_end()
        );
    };
    line("", "direct", "hedged", "");
    for row in rows(both) {
        line(row.name, &millis(row.direct), &millis(row.hedged), &change(row.direct, row.hedged));
    }
    let Comparison { direct, hedged } = both;
    line("errors", &direct.errors.to_string(), &hedged.errors.to_string(), "");
    line("requests", &direct.requests.to_string(), &hedged.requests.to_string(), "");
    line("extra load", "-", &percent(hedged.extra_load), "");
    line("hedges won", "-", &percent(hedged.hedges_won), "");
    table
}

/// How the second compares with the first; nothing where they are as good as equal.
fn change(direct: Duration, hedged: Duration) -> String {
    match ratio(direct, hedged) {
        fall if fall >= 1.1 => format!("{} lower", times(fall)),
        fall if fall <= 1.0 / 1.1 => format!("{} higher", times(1.0 / fall)),
        _ => String::new(),
    }
}

/// What a reader should know before believing the table.
fn notes(setting: &Setting<'_>, both: &Comparison) -> Vec<String> {
    let mut notes = warnings(setting, both);
    let waited = both.direct.waited + both.hedged.waited;
    if waited > 0 {
        notes.push(format!(
            "{waited} calls waited for their turn, because {} were in flight; \
             their wait is part of their latency",
            setting.calls_in_flight
        ));
    }
    if both.hedged.extra_load > 0.1 && !failing(both) {
        notes.push(format!(
            "hedges were frequent; a --delay near the direct p95 ({}) costs fewer",
            millis(both.direct.p95)
        ));
    }
    notes
}

/// What a reader should know who sees the figures and nothing else.
pub(super) fn warnings(setting: &Setting<'_>, both: &Comparison) -> Vec<String> {
    let interruption = setting.interrupted.then(|| interruption(both));
    let failure = setting.last_failure.as_ref();
    let failure = failure.map(|failure| format!("the last call that failed had: {failure}"));
    interruption.into_iter().chain(failure).collect()
}

/// Says that the hedged phase was cut short.
fn interruption(Comparison { direct, hedged }: &Comparison) -> String {
    let calls = format!(
        "stopped early: {} direct calls stand against {} hedged ones",
        direct.calls, hedged.calls
    );
    match hedged.unanswered {
        0 => calls,
        waiting => format!(
            "{calls}, {waiting} of which still waited for an answer and count as if it had come then"
        ),
    }
}

/// The result in one sentence.
fn verdict(both: &Comparison) -> String {
    let Comparison { direct, hedged } = both;
    if failing(both) {
        return format!(
            "{} of the direct calls and {} of the hedged calls failed, \
             so the tails are partly those of failures.",
            percent(direct.error_share()),
            percent(hedged.error_share())
        );
    }
    let (before, after) = (millis(direct.p99), millis(hedged.p99));
    if hedged.extra_load == 0.0 {
        return format!(
            "No hedge was sent, so no difference is due to hedging \
             (p99 {before} direct, {after} in the second phase)."
        );
    }
    let load = percent(hedged.extra_load);
    match ratio(direct.p99, hedged.p99) {
        fall if fall >= 1.1 => format!(
            "p99 fell from {before} to {after} ({}) for {load} extra requests.",
            times(fall)
        ),
        rise if rise <= 1.0 / 1.1 => format!(
            "p99 rose from {before} to {after}, with {load} extra requests: hedging did not pay."
        ),
        _ => format!(
            "p99 stayed at {before} ({after} hedged), with {load} extra requests: \
             hedging did not pay."
        ),
    }
}

/// Whether so many calls failed that failures take part in the p99.
fn failing(both: &Comparison) -> bool {
    both.direct.error_share().max(both.hedged.error_share()) >= 0.01
}

fn ratio(direct: Duration, hedged: Duration) -> f64 {
    direct.as_secs_f64() / hedged.as_secs_f64().max(1e-9)
}

/// A latency with three digits, which is as far as a run can be trusted.
pub(super) fn millis(duration: Duration) -> String {
    let value = duration.as_secs_f64() * 1e3;
    match value {
        ..9.995 => format!("{value:.2} ms"),
        ..99.95 => format!("{value:.1} ms"),
        ..9999.5 => format!("{value:.0} ms"),
        _ => format!("{:.1} s", value / 1e3),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn times(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1}x") } else { format!("{factor:.0}x") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn both(direct_p99: u64, hedged_p99: u64) -> Comparison {
        let summary = |p99| Summary {
            calls: 1000,
            requests: 1000,
            p50: Duration::from_micros(4123),
            p99: Duration::from_millis(p99),
            max: Duration::from_millis(400),
            ..Summary::default()
        };
        let hedged = Summary {
            requests: 1031,
            extra_load: 0.031_04,
            hedges_won: 0.03,
            ..summary(hedged_p99)
        };
        Comparison { direct: summary(direct_p99), hedged }
    }

    #[test]
    fn the_verdict_says_what_happened() {
        assert_eq!(
            verdict(&both(312, 18)),
            "p99 fell from 312 ms to 18.0 ms (17x) for 3.1 % extra requests."
        );
        assert!(verdict(&both(18, 18)).starts_with("p99 stayed at 18.0 ms"));
        assert!(verdict(&both(18, 40)).starts_with("p99 rose from 18.0 ms to 40.0 ms"));
        let mut unhedged = both(18, 40);
        unhedged.hedged.extra_load = 0.0;
        assert!(verdict(&unhedged).starts_with("No hedge was sent"));
        let mut failing = both(312, 18);
        failing.hedged.errors = 500;
        assert!(
            verdict(&failing)
                .starts_with("0.0 % of the direct calls and 50.0 % of the hedged calls failed")
        );
    }

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        demo: DemoArgs,
    }

    fn said(both: &Comparison, setting: impl FnOnce(&mut Setting<'_>)) -> String {
        let long = "http://a.host.with.a.long.name.example.com/and/a/path";
        let Cli { demo: args } = Cli::parse_from(["demo", "--url", long, long]);
        let mut with =
            Setting { args: &args, interrupted: false, calls_in_flight: 256, last_failure: None };
        setting(&mut with);
        text(&with, both, Paint::for_stdout())
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut worst = both(10, 5);
        worst.hedged.extra_load = 0.123;
        worst.hedged.waited = 123_456;
        worst.hedged.unanswered = 123_456;
        let mut unhedged = both(18, 40);
        unhedged.hedged.extra_load = 0.0;
        let mut failing = both(312, 18);
        failing.hedged.errors = 500;
        for both in [worst, unhedged, failing, both(99_999, 100), both(100, 99_999), both(10, 10)] {
            for interrupted in [true, false] {
                let text = said(&both, |setting| {
                    setting.interrupted = interrupted;
                    setting.last_failure =
                        Some("connection closed before message completed".to_owned());
                });
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(78), "{text}");
            }
        }
    }

    #[test]
    fn half_a_phase_has_no_verdict() {
        let mut both = both(312, 18);
        assert!(said(&both, |_| {}).ends_with("for 3.1 % extra requests."));
        both.hedged.unanswered = 7;
        let text = said(&both, |setting| setting.interrupted = true);
        assert!(!text.contains("p99 fell") && !text.contains("No hedge"), "{text}");
        let note = "note: stopped early: 1000 direct calls stand against 1000 hedged ones, 7 of\n";
        assert!(text.contains(note), "{text}");
    }

    #[test]
    fn what_a_call_failed_with_is_told() {
        let text = said(&both(312, 18), |setting| {
            setting.last_failure = Some("status 503 Service Unavailable".to_owned());
        });
        assert!(text.contains("note: the last call that failed had: status 503"), "{text}");
    }

    #[test]
    fn the_table_lines_up() {
        let table = table(&both(312, 18));
        assert!(table.contains("p99               312 ms     18.0 ms   17x lower\n"), "{table}");
        assert!(table.contains("max               400 ms      400 ms\n"), "{table}");
        assert!(table.contains("extra load             -       3.1 %\n"), "{table}");
    }

    #[test]
    fn latencies_keep_three_digits() {
        let table = [
            (4_123, "4.12 ms"),
            (9_999, "10.0 ms"),
            (24_910, "24.9 ms"),
            (312_400, "312 ms"),
            (10_000_000, "10.0 s"),
        ];
        for (micros, expected) in table {
            assert_eq!(millis(Duration::from_micros(micros)), expected);
        }
    }
}
