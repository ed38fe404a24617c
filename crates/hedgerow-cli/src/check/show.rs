//! The settings in effect, where each came from, and what they mean.

use std::io::{self, Write};

use hedgerow::HedgeConfig;
use hedgerow::config::{Setting, Value};
use serde::Serialize;

use super::{PREFIX, words};

/// What came of a check.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    policy: String,
    settings: Vec<Shown>,
    meaning: Vec<String>,
    /// Tables beside the policy, which nobody looked at.
    beside: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Shown {
    key: &'static str,
    value: Value,
    source: String,
}

impl Checked {
    pub(super) fn new(
        policy: String,
        file: &HedgeConfig,
        environment: &HedgeConfig,
        beside: Vec<String>,
    ) -> Self {
        let config = environment.clone().or(file.clone());
        let by_environment = environment.settings().into_iter().map(|setting| setting.given);
        let shown = |(Setting { key, value, given, .. }, by_environment)| Shown {
            key,
            value,
            source: match (given, by_environment) {
                (_, true) => format!("environment, {PREFIX}{}", key.to_uppercase()),
                (true, false) => policy.clone(),
                (false, false) => "default".to_owned(),
            },
        };
        let settings = config.settings().into_iter().zip(by_environment).map(shown).collect();
        Self { meaning: words::meaning(&config), settings, policy, beside }
    }
}

/// Writes it for a person.
pub(super) fn write(out: &mut impl Write, checked: &Checked) -> io::Result<()> {
    writeln!(out, "{}: fine\n", checked.policy)?;
    let rows: Vec<_> = checked.settings.iter().map(|row| (row, plain(&row.value))).collect();
    let keys = rows.iter().map(|(row, _)| row.key.len()).max().unwrap_or(0);
    let values = rows.iter().map(|(_, value)| value.chars().count()).max().unwrap_or(0).min(40);
    for (row, value) in rows {
        writeln!(out, "  {:keys$}  {value:values$}  {}", row.key, row.source)?;
    }
    writeln!(out, "\nWhat it means:")?;
    for sentence in &checked.meaning {
        writeln!(out, "  - {sentence}")?;
    }
    if !checked.beside.is_empty() {
        let beside: Vec<_> =
            checked.beside.iter().map(|key| key.escape_debug().to_string()).collect();
        writeln!(out, "\nNot looked at: {}", beside.join(", "))?;
    }
    Ok(())
}

/// A value without the quotes that a file needs.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Text(text) => text.clone(),
        Value::Table(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key} = {value}"));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
