//! What a scenario came to, as `--json` writes it and `expect` names it.

use std::fmt;

use hedgerow::Moment;
use hedgerow::testing::Timeline;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

/// An attempt and a moment.
pub(super) type Mark = (u8, Millis);

/// The result of one scenario. The order of the fields is the documented one.
#[derive(Debug, Serialize)]
pub(super) struct Facts<'a> {
    pub(super) starts: Vec<Mark>,
    pub(super) events: Vec<String>,
    pub(super) returned: Returned<'a>,
    pub(super) cancelled: Vec<Mark>,
    pub(super) suppressed: &'a [u8],
}

/// What the call returned.
#[derive(Debug, Serialize)]
pub(super) struct Returned<'a> {
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u8>,
    /// `null` says that the call hangs.
    pub(super) at: Option<Millis>,
}

/// A moment in milliseconds: a whole number where it is one, and an exact decimal elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Millis(pub(super) Moment);

/// Nanoseconds in a millisecond, and its digits after the point.
const MILLI: u64 = 1_000_000;
const DIGITS: usize = 6;

impl Millis {
    /// Reads a number of milliseconds, to the nearest nanosecond; what is past the range of a
    /// moment is its end.
    pub(super) fn read(text: &str) -> Option<Self> {
        match decimal(text.strip_prefix('+').unwrap_or(text)) {
            Some(nanos) => Some(Self(Moment::from_nanos(nanos))),
            None => Self::from_f64(text.parse().ok()?),
        }
    }

    /// The same from a number that has been read already: the shortest decimal that stands for it.
    pub(super) fn from_f64(millis: f64) -> Option<Self> {
        let is_time = millis.is_finite() && millis >= 0.0;
        let nanos = is_time.then(|| decimal(&format!("{}", millis.abs())))?;
        nanos.map(|nanos| Self(Moment::from_nanos(nanos)))
    }

    /// As readers of JSON keep it.
    fn nearest_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::INFINITY)
    }
}

impl PartialEq for Millis {
    /// Whether both stand for the same number: a double, which is what numbers are in JSON, keeps
    /// nanoseconds apart for fifty days, and not much longer.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.nearest_f64().to_bits() == other.nearest_f64().to_bits()
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.as_nanos() / MILLI, self.0.as_nanos() % MILLI);
        match rest {
            0 => write!(f, "{whole}"),
            _ => write!(f, "{whole}.{}", format!("{rest:0DIGITS$}").trim_end_matches('0')),
        }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = self.0.as_nanos();
        if nanos.is_multiple_of(MILLI) {
            return serializer.serialize_u64(nanos / MILLI);
        }
        RawValue::from_string(self.to_string()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

/// Milliseconds without sign or exponent, in nanoseconds.
fn decimal(millis: &str) -> Option<u64> {
    let (whole, fraction) = millis.split_once('.').unwrap_or((millis, ""));
    let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !numeric(whole) || !numeric(fraction) {
        return None;
    }
    let digit = |index: usize| fraction.as_bytes().get(index).map_or(0, |digit| digit - b'0');
    let rest = (0..DIGITS).fold(0, |rest, index| rest * 10 + u64::from(digit(index)));
    let rest = rest + u64::from(digit(DIGITS) >= 5);
    let whole = match whole.trim_start_matches('0') {
        "" => 0,
        // The only thing that can be wrong with digits is that they are too many.
        digits => digits.parse().unwrap_or(u64::MAX),
    };
    Some(whole.saturating_mul(MILLI).saturating_add(rest))
}

impl<'a> From<&'a Timeline> for Facts<'a> {
    fn from(timeline: &'a Timeline) -> Self {
        let marks = |marks: &[(u8, Moment)]| {
            let mark = |(attempt, at): &(u8, Moment)| (*attempt, Millis(*at));
            marks.iter().map(mark).collect()
        };
        let returned = &timeline.returned;
        Self {
            starts: marks(&timeline.starts),
            events: timeline.events_text(),
            returned: Returned {
                outcome: returned.kind.name(),
                value: returned.value.as_deref(),
                attempt: returned.attempt,
                at: returned.at.map(Millis),
            },
            cancelled: marks(&timeline.cancelled),
            suppressed: &timeline.suppressed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<u64> {
        Millis::read(text).map(|millis| millis.0.as_nanos())
    }

    #[test]
    fn milliseconds_are_read_to_the_nearest_nanosecond() {
        for (text, expected) in [
            ("50", Some(50_000_000)),
            ("+50.0", Some(50_000_000)),
            ("0.0000005", Some(1)),
            ("0.00000049", Some(0)),
            (".5", Some(500_000)),
            ("5.", Some(5_000_000)),
            ("1e3", Some(1_000_000_000)),
            ("-0", Some(0)),
            ("18446744073709.551614", Some(u64::MAX - 1)),
            ("18446744073710", Some(u64::MAX)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("1e300", Some(u64::MAX)),
            ("-1", None),
            ("inf", None),
            ("NaN", None),
            ("1e999", None),
            ("", None),
            (".", None),
            ("1 ", None),
            ("٣", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_the_same_when_it_is_read() {
        let mut moments = vec![0, 1, 999_999, 1_000_000, 33_333_333, u64::MAX, u64::MAX - 1];
        // Of every size, with all digits in use.
        for shift in 0..60 {
            let odd = (u64::MAX - 0x1234_5678_9abc_def1) >> shift;
            moments.extend((0..50).map(|step| odd.wrapping_sub(step * 7_919)));
        }
        for nanos in moments {
            let millis = Millis(Moment::from_nanos(nanos));
            assert_eq!(Millis::read(&millis.to_string()).map(|read| read.0), Some(millis.0));
            let json = serde_json::to_string(&millis).unwrap();
            assert_eq!(json, millis.to_string());
            let read: f64 = serde_json::from_str(&json).unwrap();
            assert_eq!(Millis::from_f64(read), Some(millis), "{json}");
        }
    }

    #[test]
    fn nanoseconds_are_kept_apart() {
        let close = [1_000_000, 4_000_000_000_000_000].map(|nanos| [nanos, nanos + 1]);
        for moments in close {
            let [one, other] = moments.map(|nanos| Millis(Moment::from_nanos(nanos)));
            assert_ne!(one, other);
        }
    }
}
