//! One line of input, understood.

use std::{fmt, str};

use hedgerow::config::{ConfigError, Fields, Value};
use hedgerow::testing::{Scenario, Script, Scripted};
use hedgerow::{HedgeConfig, Pushback};

use super::expect::Expect;

/// How many mistakes of one line are told.
const TOLD: usize = 20;

const OUTCOMES: [Scripted; 7] = [
    Scripted::Ok,
    Scripted::Error,
    Scripted::Bad,
    Scripted::Fatal,
    Scripted::Rejected,
    Scripted::Never,
    Scripted::Panic,
];

/// The keys that are about the call and not about the policy.
const BESIDE: [&str; 6] = ["tokens", "idempotent", "cancel_at", "attempts", "expect", "id"];

/// A scenario and what should come out of it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) scenario: Scenario,
    pub(super) expect: Option<Expect>,
}

impl Case {
    /// Reads a line; none if it is blank.
    pub(super) fn read(line: &[u8]) -> Result<Option<Self>, BadLine> {
        let text = str::from_utf8(line).map_err(BadLine::NotUtf8)?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(None);
        }
        let value: Value = serde_json::from_str(text).map_err(BadLine::NotJson)?;
        Self::try_from(&value).map(Some).map_err(BadLine::Mistakes)
    }
}

impl TryFrom<&Value> for Case {
    type Error = ConfigError;

    fn try_from(line: &Value) -> Result<Self, ConfigError> {
        let Value::Table(_) = line else {
            return Err(line.refused(r#"write one object, such as {"policy": {}, "attempts": []}"#));
        };
        let mut fields = Fields::new(line)?;
        let text = |value: &Value| value.text().map(str::to_owned);
        let id = fields.take("id", text);
        let title = fields.take("title", text);
        fields.take("group", Value::text);
        let policy = fields.take("policy", policy).unwrap_or_default();
        let mut scenario = Scenario::new(policy.hedge())
            .tokens(fields.take("tokens", |value| value.count(u32::MAX)))
            .cancel_at(fields.take("cancel_at", Value::duration));
        if let Some(idempotent) = fields.take("idempotent", Value::flag) {
            scenario = scenario.idempotent(idempotent);
        }
        let remedy = "write a list of what each attempt does; it may be empty";
        let script = fields.require("attempts", remedy, |value| value.list(attempt));
        let expect = fields.take("expect", Expect::try_from);
        let remedy = "an option of the policy; move it into policy";
        fields.misplaced(&HedgeConfig::KEYS, remedy);
        fields.finish(Self {
            id,
            title,
            scenario: scenario.script(script.unwrap_or_default()),
            expect,
        })
    }
}

fn policy(value: &Value) -> Result<HedgeConfig, ConfigError> {
    let mut fields = Fields::new(value)?;
    let config = HedgeConfig::take_from(&mut fields);
    fields.misplaced(&BESIDE, "not an option of the policy; write it beside policy");
    fields.finish(config)
}

fn attempt(value: &Value) -> Result<Script, ConfigError> {
    let Value::Table(_) = value else {
        let keys = r#"write what it does, such as {"after": "50ms", "outcome": "ok"}"#;
        return Err(value.refused(keys));
    };
    let mut fields = Fields::new(value)?;
    let names = OUTCOMES.map(Scripted::name).join(", ");
    let outcome = fields.require("outcome", &format!("use one of {names}"), |value| {
        value.choice(&OUTCOMES, Scripted::name)
    });
    let outcome = outcome.unwrap_or(Scripted::Never);
    let after = if outcome == Scripted::Never {
        fields.take("after", Value::duration)
    } else {
        let remedy = r#"write how long the attempt runs, such as "50ms""#;
        fields.require("after", remedy, Value::duration)
    };
    let value = fields.take("value", |value| value.text().map(str::to_owned));
    let cleanup = fields.take("cleanup", Value::duration);
    let script = Script::new(after.unwrap_or_default(), outcome, value)
        .cleanup(cleanup.unwrap_or_default())
        .pushback(fields.take("pushback", pushback));
    fields.finish(script)
}

fn pushback(value: &Value) -> Result<Pushback, ConfigError> {
    match value {
        Value::Text(text) if text == "stop" => Ok(Pushback::Stop),
        Value::Text(text) if text.trim_start().starts_with(char::is_alphabetic) => {
            Err(value.refused(r#"write stop, or a duration such as "50ms""#))
        }
        _ => value.duration().map(Pushback::For),
    }
}

/// Why a line is not played.
#[derive(Debug)]
pub(super) enum BadLine {
    TooLong,
    NotUtf8(str::Utf8Error),
    NotJson(serde_json::Error),
    Mistakes(ConfigError),
}

impl BadLine {
    /// What is wrong, one line each.
    pub(super) fn complaints(&self) -> Vec<String> {
        let Self::Mistakes(error) = self else {
            return vec![self.to_string()];
        };
        let mistakes = error.mistakes();
        let told = mistakes.iter().take(TOLD).map(ToString::to_string);
        let more = match mistakes.len().saturating_sub(TOLD) + error.untold() {
            0 => None,
            1 => Some("and 1 more mistake".to_owned()),
            more => Some(format!("and {more} more mistakes")),
        };
        told.chain(more).collect()
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("longer than 4 MiB; write one scenario a line"),
            Self::NotUtf8(error) => {
                let byte = error.valid_up_to() + 1;
                write!(f, "not text at byte {byte}; write JSON in UTF-8")
            }
            Self::NotJson(error) => {
                // The parser counts lines within the text that it was given, which is one.
                let place = format!(" at line {} column {}", error.line(), error.column());
                let what = error.to_string();
                let what = what.strip_suffix(&place).unwrap_or(&what);
                let column = error.column();
                write!(f, "not JSON at column {column}: {what}; write one object a line")
            }
            Self::Mistakes(error) => error.fmt(f),
        }
    }
}
