//! What should come out of a scenario, and how the result differs from it.

use hedgerow::config::{ConfigError, Fields, Value};
use serde::Serialize;

use super::facts::{Facts, Mark, Millis};

/// The last attempt that a policy can have: ten hedges after the primary.
const LAST_ATTEMPT: u32 = 10;

const OUTCOMES: [&str; 8] =
    ["ok", "error", "bad", "fatal", "rejected", "panic", "cancelled", "hangs"];

/// What a scenario expects. What is not given is not compared.
#[derive(Debug)]
pub(super) struct Expect {
    starts: Option<Vec<Mark>>,
    events: Option<Vec<String>>,
    returned: Option<Returned>,
    cancelled: Option<Vec<Mark>>,
    suppressed: Option<Vec<u8>>,
}

/// The expected return.
#[derive(Debug)]
#[expect(clippy::option_option, reason = "not compared, `null` expected, or a value expected")]
struct Returned {
    outcome: Option<&'static str>,
    value: Option<Option<String>>,
    attempt: Option<Option<u8>>,
    at: Option<Option<Millis>>,
}

/// One field that did not come out as expected.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) field: &'static str,
    pub(super) expected: String,
    pub(super) got: String,
}

impl Expect {
    /// How the result differs; empty if the expectation is met.
    pub(super) fn differences(&self, facts: &Facts<'_>) -> Vec<Difference> {
        let mut differences = vec![
            difference("starts", self.starts.as_ref(), &facts.starts),
            difference("events", self.events.as_ref(), &facts.events),
        ];
        if let Some(expected) = &self.returned {
            let got = &facts.returned;
            let value = expected.value.as_ref().map(Option::as_deref);
            differences.extend([
                difference("returned.outcome", expected.outcome.as_ref(), &got.outcome),
                difference("returned.value", value.as_ref(), &got.value),
                difference("returned.attempt", expected.attempt.as_ref(), &got.attempt),
                difference("returned.at", expected.at.as_ref(), &got.at),
            ]);
        }
        let suppressed = self.suppressed.as_deref();
        differences.extend([
            difference("cancelled", self.cancelled.as_ref(), &facts.cancelled),
            difference("suppressed", suppressed.as_ref(), &facts.suppressed),
        ]);
        differences.into_iter().flatten().collect()
    }
}

fn difference<T: PartialEq + Serialize>(
    field: &'static str,
    expected: Option<&T>,
    got: &T,
) -> Option<Difference> {
    let expected = expected.filter(|expected| *expected != got)?;
    // Numbers and texts can always be written.
    let json = |value: &T| serde_json::to_string(value).unwrap_or_default();
    Some(Difference { field, expected: json(expected), got: json(got) })
}

impl TryFrom<&Value> for Expect {
    type Error = ConfigError;

    fn try_from(value: &Value) -> Result<Self, ConfigError> {
        let mut fields = Fields::new(value)?;
        let expect = Self {
            starts: fields.take("starts", |value| value.list(mark)),
            events: fields.take("events", |value| value.list(event)),
            returned: fields.take("returned", returned),
            cancelled: fields.take("cancelled", |value| value.list(mark)),
            suppressed: fields.take("suppressed", |value| value.list(attempt)),
        };
        fields.finish(expect)
    }
}

fn returned(value: &Value) -> Result<Returned, ConfigError> {
    let mut fields = Fields::new(value)?;
    let returned = Returned {
        outcome: fields.take("outcome", |value| value.choice(&OUTCOMES, |name| name)),
        value: fields
            .take("value", |value| or_null(value, |value| value.text().map(str::to_owned))),
        attempt: fields.take("attempt", |value| or_null(value, attempt)),
        at: fields.take("at", |value| or_null(value, millis)),
    };
    fields.finish(returned)
}

fn or_null<T>(
    value: &Value,
    read: impl FnOnce(&Value) -> Result<T, ConfigError>,
) -> Result<Option<T>, ConfigError> {
    match value {
        Value::Null => Ok(None),
        _ => read(value).map(Some),
    }
}

fn mark(value: &Value) -> Result<Mark, ConfigError> {
    match value {
        Value::List(pair) if pair.len() == 2 => Ok((attempt(&pair[0])?, millis(&pair[1])?)),
        _ => Err(value.refused("write [attempt, milliseconds], such as [1, 50]")),
    }
}

fn attempt(value: &Value) -> Result<u8, ConfigError> {
    let number = value.count(LAST_ATTEMPT)?;
    u8::try_from(number).map_err(|_| value.refused("no attempt has this number"))
}

fn millis(value: &Value) -> Result<Millis, ConfigError> {
    let millis = match value {
        Value::Integer(millis) if *millis >= 0 => Millis::read(&millis.to_string()),
        Value::Float(millis) => Millis::from_f64(*millis),
        _ => None,
    };
    millis.ok_or_else(|| value.refused("write a number of milliseconds, such as 50 or 1.5"))
}

/// An event as the library spells it, however its time is written.
fn event(value: &Value) -> Result<String, ConfigError> {
    let text = value.text()?;
    spelled(text)
        .ok_or_else(|| value.refused("write hedge(1)@50, denied(1)@50, win(1)@80 or exhausted@80"))
}

fn spelled(event: &str) -> Option<String> {
    let (what, at) = event.split_once('@')?;
    let at = Millis::read(at)?;
    if what == "exhausted" {
        return Some(format!("exhausted@{at}"));
    }
    let (kind, attempt) = what.strip_suffix(')')?.split_once('(')?;
    let attempt: u8 = attempt.parse().ok()?;
    let is_known = ["hedge", "denied", "win"].contains(&kind);
    is_known.then(|| format!("{kind}({attempt})@{at}"))
}
