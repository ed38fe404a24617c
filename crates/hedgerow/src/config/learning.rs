//! The delay that is learned: `"adaptive"`, or a table that says how.

use std::time::Duration;

use hedgerow_core::latency::{Learning, MaxKeys, Percentile, Rule};
use hedgerow_core::{Schedule, text};

use super::{ConfigError, Fields, Value};

/// What the key `delay` says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DelayConfig {
    /// When each hedge is due.
    Scheduled(Schedule),
    /// How that is learned. The load comes from `max_extra_load`.
    Learned(Learning),
}

/// The keys of the table, which all may be left out.
const KEYS: [&str; 7] = ["target", "percentile", "min", "max", "initial", "half_life", "max_keys"];

/// Reads `{ target = 99.9 }` or `{ percentile = 95, min = "1ms", max = "1s", initial = "100ms", half_life = "2s" }`.
pub(super) fn read(value: &Value) -> Result<Learning, ConfigError> {
    let mut fields = Fields::new(value)?;
    let defaults = Learning::default();
    let [target, percentile, min, max, initial, half_life, most_keys] = KEYS;
    let target = fields.take(target, percentile_of);
    let percentile = fields.take(percentile, |value| match target {
        Some(_) => Err(value.refused("give either a target or a percentile, not both")),
        None => percentile_of(value),
    });
    let rule = percentile.map(Rule::Percentile).or(target.map(Rule::Target));
    let min = fields.take(min, Value::duration).unwrap_or(defaults.min);
    let learning = Learning {
        rule: rule.unwrap_or(defaults.rule),
        min,
        max: fields.take(max, |value| at_least(value, min)).unwrap_or(defaults.max),
        initial: fields.take(initial, Value::duration),
        half_life: fields.take(half_life, some_time).unwrap_or(defaults.half_life),
        max_keys: fields.take(most_keys, max_keys).unwrap_or(defaults.max_keys),
        ..defaults
    };
    fields.finish(learning)
}

fn percentile_of(value: &Value) -> Result<Percentile, ConfigError> {
    #[expect(clippy::cast_precision_loss, reason = "a percentile, or it is refused")]
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(value.refused("write a number above 1 and below 100, such as 95")),
    };
    Percentile::new(number).map_err(|error| value.refused(error.remedy()))
}

fn at_least(value: &Value, min: Duration) -> Result<Duration, ConfigError> {
    let max = value.duration()?;
    if max < min {
        let min = text::format_duration(min);
        return Err(value.refused(format!("must not be less than min, which is {min}")));
    }
    Ok(max)
}

fn some_time(value: &Value) -> Result<Duration, ConfigError> {
    match value.duration()? {
        Duration::ZERO => Err(value.refused(r#"must be more than zero, such as "2s""#)),
        half_life => Ok(half_life),
    }
}

fn max_keys(value: &Value) -> Result<MaxKeys, ConfigError> {
    let count = match value {
        Value::Integer(count) => u32::try_from(*count).unwrap_or(u32::MAX),
        _ => value.count(MaxKeys::MOST)?,
    };
    MaxKeys::new(count).map_err(|error| value.refused(error.remedy()))
}

/// Writes it back: the short form where nothing differs from the default.
pub(super) fn to_value(learning: &Learning) -> Value {
    match table(learning, false) {
        Value::Table(given) if given.is_empty() => Value::Text("adaptive".to_owned()),
        table => table,
    }
}

/// The keys that differ from the defaults, or all of them.
pub(super) fn table(learning: &Learning, all: bool) -> Value {
    let defaults = Learning::default();
    let duration = |duration: Duration| Value::Text(text::format_duration(duration));
    let said = |value: Duration, default| (all || value != default).then(|| duration(value));
    let number = |percentile: Percentile| Some(Value::Float(percentile.get()));
    let (target, percentile) = match learning.rule {
        rule if rule == defaults.rule && !all => (None, None),
        Rule::Percentile(percentile) => (None, number(percentile)),
        Rule::Target(target) => (number(target), None),
    };
    let entries = [
        target,
        percentile,
        said(learning.min, defaults.min),
        said(learning.max, defaults.max),
        learning.initial.map(duration),
        said(learning.half_life, defaults.half_life),
        (all || learning.max_keys != defaults.max_keys)
            .then(|| Value::Integer(learning.max_keys.get().into())),
    ];
    let given = KEYS.into_iter().zip(entries);
    Value::Table(given.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
}
