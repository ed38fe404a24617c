//! The timeline as text, for terminals and bug reports.
//!
//! ```text
//!              0                           50   60        80 ms
//! primary @0   ├───────────────────────────────────────────┤  told to stop at 80
//! hedge 1 @50                              ├────×             failed at 60
//! hedge 2 @60                                   ├──────────●  won at 80
//! returned ok "c" from hedge 2 at 80 ms
//! cancelled at 80 ms: primary
//! suppressed failures: hedge 1
//! ```

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use hedgerow_core::{End, Gate, Moment};
use unicode_width::UnicodeWidthStr;

use super::scenario::Scripted;
use super::timeline::{ReturnedKind, Timeline, TimelineEvent, millis};

/// The columns of a drawing, between its parts, and of the bars.
const WIDTH: usize = 78;
const GAP: usize = 2;
const BARS: std::ops::RangeInclusive<usize> = 12..=50;

/// How many columns of a returned value are shown, where there is room.
const VALUE: usize = 32;

impl fmt::Display for Timeline {
    /// One bar per attempt on a common axis in milliseconds, what became of each, and what the call
    /// returned: at most 78 columns, no line end after the last line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = rows(self);
        if rows.is_empty() {
            writeln!(f, "no attempt started")?;
        } else {
            draw(&rows, f)?;
        }
        f.write_str(&returned(self))?;
        for line in cancelled(self) {
            write!(f, "\n{line}")?;
        }
        if !self.suppressed.is_empty() {
            let names = self.suppressed.iter().map(|attempt| name(*attempt));
            write!(f, "\n{}", wrapped("suppressed failures:", names))?;
        }
        Ok(())
    }
}

/// What there is to draw of one attempt.
struct Row {
    attempt: u8,
    start: Option<Moment>,
    denied: Option<(Moment, Gate)>,
    told: Option<Moment>,
    end: Option<(Moment, End)>,
    /// What is said of an attempt whose outcome was accepted.
    accepted: &'static str,
    /// What an attempt without an end does.
    forever: &'static str,
}

fn rows(timeline: &Timeline) -> Vec<Row> {
    let denied = timeline.events.iter().filter_map(|event| match event {
        TimelineEvent::Denied(attempt, at, gate) => Some((*attempt, *at, *gate)),
        _ => None,
    });
    let started = timeline.starts.iter().map(|(attempt, _)| *attempt);
    let attempts: BTreeSet<u8> =
        started.chain(denied.clone().map(|(attempt, ..)| attempt)).collect();
    let at = |marks: &[(u8, Moment)], attempt| {
        let mark = marks.iter().find(|(marked, _)| *marked == attempt);
        mark.map(|(_, at)| *at)
    };
    let row = |attempt| Row {
        attempt,
        start: at(&timeline.starts, attempt),
        denied: denied
            .clone()
            .find(|(denied, ..)| *denied == attempt)
            .map(|(_, at, gate)| (at, gate)),
        told: at(&timeline.cancelled, attempt),
        end: timeline
            .ended
            .iter()
            .find(|(ended, ..)| *ended == attempt)
            .map(|(_, at, end)| (*at, *end)),
        accepted: match timeline.returned.kind {
            // Neither an error nor a refusal is a victory.
            ReturnedKind::Outcome(outcome) if outcome != Scripted::Ok => "decided",
            _ => "won",
        },
        forever: match timeline.returned.at {
            Some(_) => "runs on",
            None => "never ends",
        },
    };
    attempts.into_iter().map(row).collect()
}

fn draw(rows: &[Row], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let longest = |text: fn(&Row) -> String| {
        let widths = rows.iter().map(|row| text(row).len());
        widths.max().unwrap_or_default() + GAP
    };
    let names = longest(Row::name);
    let notes = longest(Row::note);
    // Times can be so long that a note takes a line of its own.
    let beside = names + BARS.start() + notes <= WIDTH;
    let room = WIDTH.saturating_sub(names + if beside { notes } else { 0 });
    let scale = Scale::new(rows, room.clamp(*BARS.start(), *BARS.end()));
    writeln!(f, "{:names$}{}", "", scale.axis(rows, WIDTH.saturating_sub(names)))?;
    for row in rows {
        let bar: String = row.bar(&scale).into_iter().collect();
        let name = row.name();
        if beside {
            writeln!(f, "{name:names$}{bar}{:GAP$}{}", "", row.note())?;
        } else {
            writeln!(f, "{}", format!("{name:names$}{bar}").trim_end())?;
            writeln!(f, "{}", wrapped("   ", row.notes().into_iter()))?;
        }
    }
    Ok(())
}

impl Row {
    /// Every moment of it that is known.
    fn moments(&self) -> impl Iterator<Item = Moment> {
        let denied = self.denied.map(|(at, _)| at);
        let end = self.end.map(|(at, _)| at);
        [self.start, denied, self.told, end].into_iter().flatten()
    }

    fn runs_on(&self) -> bool {
        self.start.is_some() && self.end.is_none()
    }

    fn name(&self) -> String {
        let start = self.start.map(|at| format!(" @{}", millis(at)));
        name(self.attempt) + &start.unwrap_or_default()
    }

    fn bar(&self, scale: &Scale) -> Vec<char> {
        let mut bar = vec![' '; scale.bars];
        if let Some((at, _)) = self.denied {
            bar[scale.column(at)] = '#';
        }
        let Some(start) = self.start.map(|at| scale.column(at)) else {
            return bar;
        };
        let (end, mark) = match self.end {
            None => (scale.bars - 1, '>'),
            Some((at, End::Discarded)) if self.told == Some(at) => (scale.column(at), '┤'),
            Some((at, end)) => (scale.column(at), end_mark(end)),
        };
        bar[start..=end].fill('─');
        if let Some(told) = self.told.map(|at| scale.column(at)) {
            bar[told..=end].fill('╌');
            bar[told] = '┤';
        }
        bar[start] = '├';
        bar[end] = mark;
        bar
    }

    fn note(&self) -> String {
        self.notes().join(", ")
    }

    fn notes(&self) -> Vec<String> {
        let denied = |(at, gate)| format!("denied at {}: {gate}", millis(at));
        let told = |at| format!("told to stop at {}", millis(at));
        let end = match self.end {
            None => self.start.map(|_| self.forever.to_owned()),
            Some((at, End::Cancelled | End::Discarded)) if self.told == Some(at) => None,
            Some((at, end)) => Some(format!("{} at {}", self.end_word(end), millis(at))),
        };
        let parts = [self.denied.map(denied), self.told.map(told), end];
        parts.into_iter().flatten().collect()
    }

    fn end_word(&self, end: End) -> &'static str {
        match end {
            End::Won => self.accepted,
            End::Failed => "failed",
            End::Rejected => "rejected",
            End::Panicked => "panicked",
            End::Cancelled => "dropped",
            End::Discarded => "ended",
        }
    }
}

fn end_mark(end: End) -> char {
    match end {
        End::Won => '●',
        End::Failed | End::Rejected => '×',
        End::Panicked => '!',
        End::Cancelled => '┤',
        End::Discarded => '○',
    }
}

/// Where a moment is drawn.
struct Scale {
    /// How many columns all bars have.
    bars: usize,
    /// How many of them the known moments have; the others are for what comes later.
    known: usize,
    last: Moment,
}

impl Scale {
    fn new(rows: &[Row], bars: usize) -> Self {
        let moments = rows.iter().flat_map(Row::moments);
        let last = moments.max().unwrap_or_default();
        let later = if rows.iter().any(Row::runs_on) { bars / 4 } else { 0 };
        Self { bars, known: bars - later, last }
    }

    fn column(&self, at: Moment) -> usize {
        let columns = self.known as u128 - 1;
        let (at, last) = (u128::from(at.as_nanos()), u128::from(self.last.as_nanos()).max(1));
        let column = (at * columns + last / 2) / last;
        usize::try_from(column.min(columns)).unwrap_or_default()
    }

    /// The moments that fit, the last always.
    fn axis(&self, rows: &[Row], room: usize) -> String {
        let moments: BTreeSet<Moment> = rows.iter().flat_map(Row::moments).collect();
        let last = format!("{} ms", millis(self.last));
        let end = self.column(self.last).min(room.saturating_sub(last.len()));
        let mut axis = String::new();
        for at in moments.into_iter().filter(|at| *at != self.last) {
            let (label, column) = (millis(at), self.column(at));
            let fits_before = axis.is_empty() || column >= axis.len() + 2;
            if fits_before && column + label.len() + 2 <= end {
                axis = format!("{axis:column$}{label}");
            }
        }
        format!("{axis:end$}{last}")
    }
}

fn name(attempt: u8) -> String {
    match attempt {
        0 => "primary".to_owned(),
        hedge => format!("hedge {hedge}"),
    }
}

fn returned(timeline: &Timeline) -> String {
    let returned = &timeline.returned;
    let Some(at) = returned.at else {
        return "hangs: nothing can end this call".to_owned();
    };
    let head = format!("returned {}", returned.kind.name());
    let from = returned.attempt.map(|attempt| format!(" from {}", name(attempt)));
    let tail = format!("{} at {} ms", from.unwrap_or_default(), millis(at));
    // A space, the quotes, and the sign that there is more.
    let room = WIDTH.saturating_sub(head.len() + tail.len() + 4).min(VALUE);
    let value = returned.value.as_deref().map(|value| shown(value, room));
    format!("{head}{}{tail}", value.unwrap_or_default())
}

/// A value in quotes, on one line, and not all of a long one. What cannot be seen, or would move
/// what can, is escaped.
fn shown(value: &str, room: usize) -> String {
    let mut text = String::new();
    for c in value.chars() {
        let before = text.len();
        text.push_str(&escaped(c));
        // Some letters have no width, and a value may be nothing else.
        if text.width() > room || text.len() > 8 * VALUE {
            text.truncate(before);
            return format!(" \"{text}\"…");
        }
    }
    format!(" \"{text}\"")
}

/// A character as it is escaped inside a text: at the start, a mark that joins the letter before it
/// would be too.
fn escaped(c: char) -> String {
    match c {
        // Nothing special between double quotes.
        '\'' => c.to_string(),
        _ => String::from_iter(['x', c]).escape_debug().skip(1).collect(),
    }
}

/// Who was told to stop, by moment.
fn cancelled(timeline: &Timeline) -> Vec<String> {
    let told = timeline.cancelled.chunk_by(|(_, one), (_, other)| one == other);
    told.map(|attempts| {
        let head = format!("cancelled at {} ms:", millis(attempts[0].1));
        wrapped(&head, attempts.iter().map(|(attempt, _)| name(*attempt)))
    })
    .collect()
}

/// A list after its heading, on as many lines as it takes.
fn wrapped(head: &str, names: impl Iterator<Item = String>) -> String {
    let mut text = head.to_owned();
    let mut column = text.len();
    let mut names = names.peekable();
    while let Some(name) = names.next() {
        let comma = if names.peek().is_some() { "," } else { "" };
        let word = format!(" {name}{comma}");
        if column + word.len() > WIDTH {
            text.push_str("\n   ");
            column = 3;
        }
        column += word.len();
        text.push_str(&word);
    }
    text
}
