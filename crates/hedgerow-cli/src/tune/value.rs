//! Latencies as logs write them: a number, perhaps with its unit.

use clap::ValueEnum;

use super::bad::Why;

/// Longer than any latency: a day. What is longer has the wrong unit.
const LONGEST: f64 = 86_400e9;
/// Digits that a double holds exactly.
const EXACT_DIGITS: usize = 15;

/// What a bare number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Unit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds
    S,
}

impl Unit {
    fn nanos(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }

    /// The unit that a value brings along.
    fn named(name: &[u8]) -> Option<f64> {
        Some(match name {
            b"ns" => 1.0,
            // With the micro sign, or with the Greek letter.
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1e3,
            b"ms" => 1e6,
            b"s" => 1e9,
            b"m" => 60e9,
            b"h" => 3_600e9,
            _ => return None,
        })
    }
}

/// Reads a latency: whole nanoseconds, and whether its unit came with it.
pub(super) fn latency(text: &[u8], unit: Option<Unit>) -> Result<(u64, bool), Why> {
    let (nanos, own) = time(text, unit)?;
    whole(nanos).map(|nanos| (nanos, own))
}

/// A latency in nanoseconds, if it can be one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
pub(super) fn whole(nanos: f64) -> Result<u64, Why> {
    match nanos {
        nanos if nanos < 0.0 => Err(Why::Negative),
        nanos if nanos <= LONGEST => Ok((nanos + 0.5) as u64),
        nanos if nanos.is_finite() => Err(Why::Endless),
        _ => Err(Why::NotFinite),
    }
}

/// Reads a time in nanoseconds, and whether its unit came with it.
pub(super) fn time(text: &[u8], unit: Option<Unit>) -> Result<(f64, bool), Why> {
    let text = text.trim_ascii();
    let (number, rest) = number(text).ok_or_else(|| not_a_number(text))?;
    let rest = rest.trim_ascii_start();
    if rest.is_empty() {
        let unit = unit.ok_or(Why::NoUnit)?;
        return Ok((number * unit.nanos(), false));
    }
    let unit = Unit::named(rest).ok_or_else(|| match rest.first() {
        Some(first) if first.is_ascii_alphabetic() && rest.len() <= 12 => Why::UnknownUnit,
        _ => Why::NotANumber,
    })?;
    Ok((number * unit, true))
}

/// The number that the text begins with, and what follows it. Most numbers are short and plain and
/// take no more than a look at each digit; the others go the long way.
#[inline]
fn number(text: &[u8]) -> Option<(f64, &[u8])> {
    let (mut value, mut digits, mut point) = (0_u64, 0, None);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits < EXACT_DIGITS => {
                value = value * 10 + u64::from(byte - b'0');
                digits += 1;
            }
            b'.' if point.is_none() => point = Some(digits),
            b'n' | b'u' | b'm' | b's' | b'h' | b' ' if digits > 0 => {
                return Some((scaled(value, digits, point), &text[index..]));
            }
            _ => return long_number(text),
        }
    }
    (digits > 0).then(|| (scaled(value, digits, point), &text[text.len()..]))
}

/// A whole number with the decimal point put back.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "at most 15 digits: exact in a double")]
fn scaled(value: u64, digits: usize, point: Option<usize>) -> f64 {
    const POWERS: [f64; EXACT_DIGITS + 1] =
        [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    value as f64 / POWERS[digits - point.unwrap_or(digits)]
}

/// A number with a sign, an exponent or many digits.
#[cold]
fn long_number(text: &[u8]) -> Option<(f64, &[u8])> {
    let is_part = |(index, byte): (usize, &u8)| match byte {
        b'0'..=b'9' | b'.' | b'+' | b'-' => true,
        // Of an exponent, not of a unit.
        b'e' | b'E' => text.get(index + 1).is_some_and(|next| !next.is_ascii_alphabetic()),
        _ => false,
    };
    let end = text.iter().enumerate().position(|part| !is_part(part)).unwrap_or(text.len());
    let number = str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end..]))
}

/// What it is instead.
#[cold]
fn not_a_number(text: &[u8]) -> Why {
    let word = text.trim_ascii_start().to_ascii_lowercase();
    let word = word.strip_prefix(b"-").unwrap_or(&word);
    match word {
        b"nan" | b"inf" | b"infinity" | b"+inf" => Why::NotFinite,
        b"" | b"null" => Why::Nothing,
        _ => Why::NotANumber,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Result<f64, Why> {
        #[expect(clippy::cast_precision_loss, reason = "small")]
        latency(text.as_bytes(), Some(Unit::Ms)).map(|(nanos, _)| nanos as f64 / 1e6)
    }

    #[test]
    fn numbers_are_read_with_and_without_units() {
        for (text, value) in [
            ("12", 12.0),
            ("12.5", 12.5),
            (" 0.25 \r", 0.25),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1_000.0),
            ("+7", 7.0),
            ("0.1234567890123456789", 0.123_457),
            ("12ms", 12.0),
            ("1.5 s", 1_500.0),
            ("250us", 0.25),
            ("250µs", 0.25),
            ("1e3us", 1.0),
            ("2m", 120_000.0),
            ("0", 0.0),
            ("-0", 0.0),
        ] {
            assert_eq!(ms(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_for_what_it_is() {
        for (text, why) in [
            ("NaN", Why::NotFinite),
            ("-inf", Why::NotFinite),
            ("1e999", Why::NotFinite),
            ("-5", Why::Negative),
            ("-5ms", Why::Negative),
            ("1000000000", Why::Endless),
            ("5 parsecs", Why::UnknownUnit),
            ("five", Why::NotANumber),
            ("1,5", Why::NotANumber),
            ("1.2.3", Why::NotANumber),
            ("ms", Why::NotANumber),
            (".", Why::NotANumber),
            ("-", Why::Nothing),
            ("", Why::Nothing),
            ("null", Why::Nothing),
        ] {
            assert_eq!(ms(text), Err(why), "{text}");
        }
        assert_eq!(latency(b"5", None), Err(Why::NoUnit));
        assert_eq!(latency(b"5ms", None), Ok((5_000_000, true)));
    }
}
