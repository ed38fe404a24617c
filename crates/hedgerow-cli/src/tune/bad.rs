//! Lines that hold no latency: why, how many, and which came first.

use std::fmt;

use crate::output;

/// How many bad lines of an input are told one by one.
const TOLD: usize = 5;
/// More bad lines than this share mean that the input is not what it was said to be.
const MOST: f64 = 0.05;

/// Why a line is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    NotANumber,
    NotFinite,
    Negative,
    Endless,
    NoUnit,
    UnknownUnit,
    Nothing,
    TooLong,
    NotJson,
    NoField,
    NoText,
    NoMatch,
    NoGroup,
    Narrow,
    NoTime,
    NoDuration,
    EarlyStart,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Self::NotANumber => "not a number",
            Self::NotFinite => "not a finite number",
            Self::Negative => "a negative latency",
            Self::Endless => "longer than a day; check the unit",
            Self::NoUnit => "a number without a unit; say which with --unit",
            Self::UnknownUnit => "an unknown unit; use ns, us, ms, s, m or h",
            Self::Nothing => "no value",
            Self::TooLong => "a line of more than 1 MiB",
            Self::NotJson => "not a JSON object",
            Self::NoField => "the field is missing",
            Self::NoText => "the field is neither a number nor text",
            Self::NoMatch => "the pattern does not match",
            Self::NoGroup => "the group took no part in the match",
            Self::Narrow => "too few columns",
            Self::NoTime => "no $request_time at the end",
            Self::NoDuration => "not Envoy's default format",
            Self::EarlyStart => "it started before it was due",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The bad lines of one input.
#[derive(Debug, Default)]
pub(super) struct BadLines {
    count: u64,
    first: Vec<(u64, Why)>,
}

impl BadLines {
    #[cold]
    pub(super) fn add(&mut self, line: u64, why: Why) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push((line, why));
        }
    }

    /// Whether there are too many beside this many good ones. A single one may be a header.
    pub(super) fn are_too_many(&self, good: u64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = self.count as f64 / (self.count + good).max(1) as f64;
        self.count > 0 && good == 0 || self.count > 1 && share > MOST
    }

    /// Says which lines were skipped.
    pub(super) fn tell(&self, input: &str) {
        for (line, why) in &self.first {
            output::complain(&format!("{input}:{line}: {why}"));
        }
        if self.count > 0 {
            let lines = if self.count == 1 { "line was" } else { "lines were" };
            output::complain(&format!("{input}: {} {lines} skipped", self.count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_may_be_bad_and_a_header_always() {
        let mut bad = BadLines::default();
        assert!(!bad.are_too_many(0));
        bad.add(1, Why::NotANumber);
        assert!(bad.are_too_many(0) && !bad.are_too_many(1));
        bad.add(2, Why::NotANumber);
        assert!(bad.are_too_many(37) && !bad.are_too_many(38));
    }
}
