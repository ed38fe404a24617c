//! Durations and ratios as people write them: `50ms`, `1.5s`, `5%`.
//!
//! A bare number is refused: whether 100 means milliseconds or seconds is the kind of guess that
//! ends in an incident (PR-92).

use std::time::Duration;

/// How the longest duration is written.
const NEVER: &str = "never";

/// The units of a duration, each with its length in nanoseconds. Both letters that look like a
/// micro sign are one.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration with its unit (`ns`, `us`, `ms`, `s`, `m`, `h`), with or without a fraction.
///
/// A value that is too large to be held becomes [`Duration::MAX`], which means "never" and can be
/// written so.
///
/// # Errors
///
/// Says what is wrong and what would be right: no unit, an unknown unit, a negative number, more
/// than nothing but less than a nanosecond.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_core::text::parse_duration;
///
/// assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
/// assert!(parse_duration("100").unwrap_err().contains("unit"));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const EXAMPLE: &str = r#"write a number with a unit, such as "50ms" or "1.5s""#;
    let text = text.trim();
    if text == NEVER {
        return Ok(Duration::MAX);
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim();
    let negative = number.starts_with('-');
    let digits = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if number.len() - digits.len() > 1
        || whole.len() + fraction.len() == 0
        || !(numeric(whole) && numeric(fraction))
    {
        return Err(format!("not a duration; {EXAMPLE}"));
    }
    if unit.is_empty() {
        return Err(format!("a duration needs a unit; {EXAMPLE}"));
    }
    let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let unit: String = unit.chars().take(20).collect();
        return Err(format!("unknown unit {unit:?}; use ns, us, ms, s, m or h"));
    };
    let is_zero = digits.bytes().all(|byte| b"0.".contains(&byte));
    if negative && !is_zero {
        return Err(format!("a duration cannot be negative; {EXAMPLE}"));
    }
    let nanos = nanoseconds(whole, fraction, *length);
    if nanos == Some(0) && !is_zero {
        return Err("the shortest duration is 1ns; write 0ns for none at all".to_owned());
    }
    Ok(nanos.map_or(Duration::MAX, Duration::from_nanos))
}

/// The number in nanoseconds, exactly; what is finer than one of them is rounded, but less than
/// the first of them is nothing. `None` if that is too much to be held.
fn nanoseconds(whole: &str, fraction: &str, length: u64) -> Option<u64> {
    let whole = whole.trim_start_matches('0');
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Nineteen digits after the point are finer than a nanosecond of any unit.
    let (mut rest, mut scale) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(19) {
        rest = rest * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let rest = rest * u128::from(length);
    if whole == 0 && rest < scale {
        return Some(0);
    }
    let rest = (rest + scale / 2) / scale;
    whole.checked_mul(length)?.checked_add(u64::try_from(rest).ok()?)
}

/// Writes a duration so that [`parse_duration`] reads the same value back.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_core::text::format_duration;
///
/// assert_eq!(format_duration(Duration::from_millis(1500)), "1.5s");
/// assert_eq!(format_duration(Duration::from_micros(2500)), "2.5ms");
/// ```
pub fn format_duration(duration: Duration) -> String {
    let Ok(nanos) = u64::try_from(duration.as_nanos()) else { return NEVER.to_owned() };
    let (unit, length) = match nanos {
        0 => return "0ms".to_owned(),
        1..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let (whole, rest) = (nanos / length, nanos % length);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = length.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// Reads a ratio: a number (`0.05`) or a percentage (`5%`).
///
/// # Errors
///
/// Says that the text is neither.
pub fn parse_ratio(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let value: f64 = number.parse().map_err(|_| r#"not a ratio; write "5%" or 0.05"#.to_owned())?;
    Ok(value / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_92_durations_carry_units() {
        let ms = |n| Ok(Duration::from_millis(n));
        assert_eq!(parse_duration("100ms"), ms(100));
        assert_eq!(parse_duration("1.5s"), ms(1_500));
        assert_eq!(parse_duration("1m"), ms(60_000));
        assert_eq!(parse_duration("0ms"), ms(0));
        assert_eq!(parse_duration("-0ms"), ms(0));
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("1ns"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn pr_92_everything_else_is_refused_with_a_hint() {
        for (text, word) in [
            ("100", "unit"),
            ("0", "unit"),
            ("-5ms", "negative"),
            ("5 parsecs", "parsecs"),
            ("", "not a duration"),
            ("ms", "not a duration"),
            ("NaNms", "not a duration"),
            ("1..5s", "not a duration"),
            ("1e3ms", "e3ms"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_duration_is_nothing_or_at_least_a_nanosecond() {
        let digits = format!("0.{}1s", "0".repeat(30));
        for text in ["0.1ns", "0.9ns", ".5ns", "0.0009us", "0.0000000009s", &digits] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("shortest duration is 1ns"), "{text}: {error}");
        }
        assert!(parse_duration("-0.1ns").unwrap_err().contains("negative"));
        for (text, nanos) in [
            ("0.0ns", 0),
            ("-0.00s", 0),
            ("0ns", 0),
            ("0.001us", 1),
            ("0.000000001s", 1),
            ("1.4ns", 1),
            ("1.5ns", 2),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn huge_durations_mean_never() {
        assert_eq!(parse_duration("999999999999h"), Ok(Duration::MAX));
    }

    #[test]
    fn durations_survive_a_round_trip() {
        for nanos in [
            0,
            1,
            999,
            1_000,
            1_500,
            2_000_000,
            2_500_000,
            999_999_999,
            90_000_000_000,
            9_007_199_254_740_993,
            123_456_789_123_456_789,
            u64::MAX,
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
        assert_eq!(parse_duration(&format_duration(Duration::MAX)), Ok(Duration::MAX));
    }

    #[test]
    fn ratios_are_numbers_or_percentages() {
        assert_eq!(parse_ratio("5%"), Ok(0.05));
        assert_eq!(parse_ratio("0.05"), Ok(0.05));
        assert!(parse_ratio("five").is_err());
    }
}
