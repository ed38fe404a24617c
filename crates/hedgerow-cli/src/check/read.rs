//! The policy and the pipelines in a file, whatever its format and whatever else is in it.

use std::path::Path;

use hedgerow::config::{Fields, Value};
use hedgerow::registry::PipelinesConfig;
use hedgerow::{ConfigError, HedgeConfig, InvalidOption};

use crate::input;

/// What a file says, and where.
#[derive(Debug)]
pub(super) struct Found {
    /// The file.
    pub(super) file: String,
    /// The file, and the table in it where the policy stands.
    pub(super) place: String,
    /// The policy, if the file has one.
    pub(super) config: Option<HedgeConfig>,
    /// The pipelines, if the file has any.
    pub(super) pipelines: Option<PipelinesConfig>,
    /// What is beside them and belongs to somebody else.
    pub(super) beside: Vec<String>,
}

/// The formats of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Toml,
    Json,
    Yaml,
}

/// The tables that are ours in a program's own file.
const SECTIONS: [&str; 2] = ["hedge", "pipelines"];

/// Reads the file, or says all that is wrong with it.
pub(super) fn read(path: &Path) -> Result<Found, Vec<String>> {
    let name = input::name(path);
    let text = input::text(path).map_err(|error| vec![input::unreadable(&name, &error)])?;
    let value = parse(Format::of(path, &text), &name, &text).map_err(|error| vec![error])?;
    contents(&name, &value).map_err(|error| {
        let mistakes = error.to_string();
        mistakes.lines().map(|mistake| format!("{name}: {mistake}")).collect()
    })
}

impl Format {
    /// By the ending of the file's name. Standard input is JSON if it begins like it.
    fn of(path: &Path, text: &str) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "json" => Self::Json,
            "yaml" | "yml" => Self::Yaml,
            "" if text.trim_start().starts_with('{') => Self::Json,
            _ => Self::Toml,
        }
    }
}

fn parse(format: Format, name: &str, text: &str) -> Result<Value, String> {
    match format {
        Format::Toml => input::toml(name, text),
        Format::Json => serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("{name}:{line}:{column}: not JSON: {error}")
        }),
        Format::Yaml if is_too_deep(text) => {
            Err(format!("{name}: not YAML: brackets in brackets, more than {DEEPEST} deep"))
        }
        Format::Yaml => serde_norway::from_str(text).map_err(|error| {
            let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column()));
            format!("{name}{}: not YAML: {error}", place.unwrap_or_default())
        }),
    }
}

/// Far more brackets than any file opens without closing them, quoted or not. The reader of YAML
/// refuses a tenth of that, but only after it has taken minutes to find them all.
const DEEPEST: usize = 1_000;

/// Whether so many brackets are open at once.
fn is_too_deep(text: &str) -> bool {
    let open = text.bytes().scan(0_usize, |open, byte| {
        match byte {
            b'[' | b'{' => *open += 1,
            b']' | b'}' => *open = open.saturating_sub(1),
            _ => {}
        }
        Some(*open)
    });
    open.max().unwrap_or(0) > DEEPEST
}

/// A file in which nothing looks like a policy is told where one is looked for.
fn where_to_look(error: ConfigError) -> ConfigError {
    let unlike = |mistake: &InvalidOption| mistake.remedy().starts_with("unknown key; use ");
    if !error.mistakes().iter().all(unlike) {
        return error;
    }
    let remedy = "missing; write the policy in a table [hedge] or alone in a file, and pipelines in \
                  tables [pipelines.NAME]";
    InvalidOption::new("hedge", "", remedy).into()
}

/// The policy in the table `[hedge]` and the pipelines in `[pipelines]`, or a policy in the whole
/// file.
fn contents(name: &str, value: &Value) -> Result<Found, ConfigError> {
    let sections = match value {
        Value::Table(entries) if entries.iter().any(|(key, _)| SECTIONS.contains(&&**key)) => {
            Some(entries)
        }
        // YAML's empty file, and one with comments alone.
        Value::Null => return contents(name, &Value::Table(Vec::new())),
        _ => None,
    };
    let (file, place) = (name.to_owned(), name.to_owned());
    let Some(entries) = sections else {
        let config = Some(HedgeConfig::try_from(value).map_err(where_to_look)?);
        return Ok(Found { file, place, config, pipelines: None, beside: Vec::new() });
    };
    // Others' keys are theirs; ours at the wrong place are a mistake.
    let is_ours = |key: &str| SECTIONS.contains(&key) || HedgeConfig::KEYS.contains(&key);
    let (ours, others): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|(key, _)| is_ours(key));
    let ours = Value::Table(ours);
    let mut fields = Fields::new(&ours)?;
    let config = fields.take("hedge", HedgeConfig::try_from);
    let pipelines = fields.take("pipelines", PipelinesConfig::try_from);
    fields.misplaced(&HedgeConfig::KEYS, "not at the top; it belongs into the table [hedge]");
    let (config, pipelines) = fields.finish((config, pipelines))?;
    let beside = others.into_iter().map(|(key, _)| key).collect();
    Ok(Found { place: format!("{name}, [hedge]"), file, config, pipelines, beside })
}
