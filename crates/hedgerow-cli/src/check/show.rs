//! The settings in effect, where each came from, and what they mean.

use std::io::{self, Write};
use std::sync::Arc;

use hedgerow::config::{Setting, Value};
use hedgerow::{ExtraLoad, HedgeConfig};
use serde::Serialize;

use super::read::Found;
use super::{PREFIX, words};

/// What came of a check.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    #[serde(flatten)]
    policy: Option<CheckedPolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pipelines: Vec<CheckedPipeline>,
    /// Tables beside them, which nobody looked at.
    beside: Vec<String>,
    #[serde(skip)]
    file: String,
}

#[derive(Debug, Serialize)]
struct CheckedPolicy {
    policy: String,
    settings: Vec<Shown>,
    meaning: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Shown {
    key: &'static str,
    value: Value,
    source: String,
}

#[derive(Debug, Serialize)]
struct CheckedPipeline {
    pipeline: String,
    strategies: Vec<ShownStrategy>,
    /// How often the work runs at most; none is without bound.
    max_attempts: Option<u64>,
    /// The budget that hedges and retries share.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_extra_load: Option<f64>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShownStrategy {
    name: String,
    kind: &'static str,
    settings: String,
}

impl Checked {
    pub(super) fn new(found: Found, environment: &HedgeConfig) -> Self {
        let Found { file, place, config, pipelines, beside } = found;
        let given = environment.settings().iter().any(|setting| setting.given);
        let config = config.or_else(|| given.then(HedgeConfig::default));
        let policy = config.map(|config| CheckedPolicy::new(place, &config, environment));
        let pipelines = pipelines.unwrap_or_default();
        let pipelines = pipelines.pipelines().map(|(name, config)| {
            let pipeline = config.pipeline(Arc::clone(name));
            let strategies = pipeline.strategies().iter().map(|info| ShownStrategy {
                name: info.name.to_string(),
                kind: info.kind,
                settings: info.settings.clone(),
            });
            CheckedPipeline {
                pipeline: name.to_string(),
                strategies: strategies.collect(),
                max_attempts: pipeline.max_attempts(),
                max_extra_load: config.max_extra_load().map(ExtraLoad::get),
                warnings: pipeline.warnings().to_vec(),
            }
        });
        Self { policy, pipelines: pipelines.collect(), beside, file }
    }
}

impl CheckedPolicy {
    fn new(policy: String, file: &HedgeConfig, environment: &HedgeConfig) -> Self {
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
        Self { meaning: words::meaning(&config), settings, policy }
    }
}

/// Writes it for a person.
pub(super) fn write(out: &mut impl Write, checked: &Checked) -> io::Result<()> {
    if let Some(policy) = &checked.policy {
        write_policy(out, policy)?;
    }
    for (index, pipeline) in checked.pipelines.iter().enumerate() {
        if index > 0 || checked.policy.is_some() {
            writeln!(out)?;
        }
        write_pipeline(out, &checked.file, pipeline)?;
    }
    if !checked.beside.is_empty() {
        let beside: Vec<_> =
            checked.beside.iter().map(|key| key.escape_debug().to_string()).collect();
        writeln!(out, "\nNot looked at: {}", beside.join(", "))?;
    }
    Ok(())
}

fn write_policy(out: &mut impl Write, checked: &CheckedPolicy) -> io::Result<()> {
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
    Ok(())
}

fn write_pipeline(out: &mut impl Write, file: &str, checked: &CheckedPipeline) -> io::Result<()> {
    writeln!(out, "{file}, [pipelines.{}]: fine\n", checked.pipeline.escape_debug())?;
    let names = checked.strategies.iter().map(|strategy| strategy.name.chars().count());
    let names = names.max().unwrap_or(0);
    let kinds = checked.strategies.iter().map(|strategy| strategy.kind.len()).max().unwrap_or(0);
    for (depth, ShownStrategy { name, kind, settings }) in checked.strategies.iter().enumerate() {
        let name = name.escape_debug().to_string();
        let row = format!("  {}. {name:names$}  {kind:kinds$}  {settings}", depth + 1);
        writeln!(out, "{}", row.trim_end())?;
    }
    match checked.max_attempts {
        Some(1) => writeln!(out, "  The work runs once at most.")?,
        // The product of all retries and hedges ends there.
        Some(u64::MAX) => {
            writeln!(out, "  The work runs more often than can be counted, if everything fails.")?;
        }
        Some(most) => {
            writeln!(out, "  The work runs {most} times at most, if everything fails.")?;
        }
        None => writeln!(out, "  Nothing bounds how often the work runs, if everything fails.")?,
    }
    if let Some(load) = checked.max_extra_load {
        let load = words::percent(load);
        writeln!(out, "  Its hedges and retries share a budget: {load} of completed executions.")?;
    }
    for warning in &checked.warnings {
        writeln!(out, "  Probably not meant: {warning}.")?;
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
