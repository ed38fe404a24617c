//! What each key of a policy takes, and how its value is written.

use std::time::Duration;

use hedgerow_core::latency::Learning;
use hedgerow_core::{
    Delay, Exhausted, ExtraLoad, FailureStart, Losers, MaxHedges, Panics, RejectedHedge, Schedule,
    text,
};

use super::hints::question;
use super::learning::{self, DelayConfig};
use super::{ConfigError, Fields, HedgeConfig, Value};
use crate::span::SpanMode;

const ADAPTIVE: &str = "only the whole delay can be adaptive, not one step of it";
const TABLE: &str = "the keys of a policy stand at the top here; read the table [hedge] into a field \
                     of type HedgeConfig";

const FAILURE_STARTS: [FailureStart; 3] =
    [FailureStart::Launch, FailureStart::LaunchWhenIdle, FailureStart::Wait];
const EXHAUSTED: [Exhausted; 3] = [Exhausted::Primary, Exhausted::First, Exhausted::Last];
const LOSERS: [Losers; 3] = [Losers::Drop, Losers::Join { grace: None }, Losers::Detach];
const REJECTED_HEDGES: [RejectedHedge; 3] =
    [RejectedHedge::Stop, RejectedHedge::Decide, RejectedHedge::Hedge];
const SPANS: [SpanMode; 3] = [SpanMode::IfParent, SpanMode::Always, SpanMode::Never];
const PANICS: [Panics; 2] = [Panics::Propagate, Panics::AsFailure];

/// Reads every key of a policy.
pub(super) fn read(fields: &mut Fields<'_>) -> HedgeConfig {
    let config = HedgeConfig {
        delay: fields.take("delay", whole_delay),
        max_hedges: fields.take("max_hedges", max_hedges),
        failure_start: fields
            .take("failure_start", |value| value.choice(&FAILURE_STARTS, failure_start_name)),
        exhausted: fields.take("exhausted", |value| value.choice(&EXHAUSTED, exhausted_name)),
        losers: fields.take("losers", losers),
        rejected_hedge: fields
            .take("rejected_hedge", |value| value.choice(&REJECTED_HEDGES, rejected_hedge_name)),
        hedge_rejections: fields.take("hedge_rejections", Value::flag),
        panics: fields.take("panics", |value| value.choice(&PANICS, panics_name)),
        max_extra_load: fields.take("max_extra_load", max_extra_load),
        dry_run: fields.take("dry_run", Value::flag),
        span: fields.take("span", |value| value.choice(&SPANS, span_name)),
    };
    fields.misplaced(&["hedge"], TABLE);
    config
}

fn whole_delay(value: &Value) -> Result<DelayConfig, ConfigError> {
    match value {
        Value::Table(_) => learning::read(value).map(DelayConfig::Learned),
        Value::Text(text) if text == "adaptive" => Ok(DelayConfig::Learned(Learning::default())),
        _ => schedule(value).map(DelayConfig::Scheduled),
    }
}

fn schedule(value: &Value) -> Result<Schedule, ConfigError> {
    match value {
        Value::List(steps) if steps.is_empty() => {
            Err(value.refused("list at least one delay; the last one repeats"))
        }
        Value::List(_) => value.list(delay).map(Schedule::from),
        _ => delay(value).map(Schedule::Every),
    }
}

fn delay(value: &Value) -> Result<Delay, ConfigError> {
    match value {
        Value::Table(_) => Err(value.refused(ADAPTIVE)),
        Value::Text(text) => match text.as_str() {
            "immediately" => Ok(Delay::Immediately),
            "on-failure" => Ok(Delay::OnFailure),
            "adaptive" => Err(value.refused(ADAPTIVE)),
            _ => duration_or_mode(value, text),
        },
        _ => value.duration().map(Delay::After),
    }
}

/// What is neither a mode nor a duration is refused as the one that it looks like.
fn duration_or_mode(value: &Value, text: &str) -> Result<Delay, ConfigError> {
    let duration = value.duration();
    if duration.is_ok() || !text.trim_start().starts_with(char::is_alphabetic) {
        return duration.map(Delay::After);
    }
    Err(match question(text, &["immediately", "on-failure", "adaptive"], &[]) {
        Some(question) => value.refused(question),
        None => {
            value.refused(r#"write a duration such as "50ms", immediately, on-failure or adaptive"#)
        }
    })
}

fn max_hedges(value: &Value) -> Result<MaxHedges, ConfigError> {
    let most = hedgerow_core::MOST_HEDGES.into();
    let count = match value {
        // Too many hedges have a remedy of their own.
        Value::Integer(count) if *count > i128::from(most) => {
            u32::try_from(*count).unwrap_or(u32::MAX)
        }
        _ => value.count(most)?,
    };
    MaxHedges::new(count).map_err(|error| value.refused(error.remedy()))
}

fn losers(value: &Value) -> Result<Losers, ConfigError> {
    let Value::Table(_) = value else {
        return value.choice(&LOSERS, losers_name);
    };
    let mut fields = Fields::new(value)?;
    let example = r#"write how long to wait for the losers, such as "50ms""#;
    let grace = fields.require("join", example, Value::duration);
    fields.finish(Losers::Join { grace })
}

fn max_extra_load(value: &Value) -> Result<ExtraLoad, ConfigError> {
    ExtraLoad::at_most_one(value.ratio()?).map_err(|error| value.refused(error.remedy()))
}

impl HedgeConfig {
    /// The keys that were given and their values, as a file would hold them.
    pub(super) fn to_value(&self) -> Value {
        let word = |name: &str| Value::Text(name.to_owned());
        let entries = [
            self.delay.as_ref().map(|delay| match delay {
                DelayConfig::Scheduled(schedule) => schedule_value(schedule),
                DelayConfig::Learned(learning) => learning::to_value(learning),
            }),
            self.max_hedges.map(|count| Value::Integer(count.get().into())),
            self.failure_start.map(failure_start_name).map(word),
            self.exhausted.map(exhausted_name).map(word),
            self.losers.map(losers_value),
            self.rejected_hedge.map(rejected_hedge_name).map(word),
            self.hedge_rejections.map(Value::Bool),
            self.panics.map(panics_name).map(word),
            self.max_extra_load.map(|ratio| Value::Float(ratio.get())),
            self.dry_run.map(Value::Bool),
            self.span.map(span_name).map(word),
        ];
        let given = |(key, value): (&str, Option<Value>)| Some((key.to_owned(), value?));
        Value::Table(Self::KEYS.into_iter().zip(entries).filter_map(given).collect())
    }
}

fn schedule_value(schedule: &Schedule) -> Value {
    match schedule {
        Schedule::Every(delay) => delay_value(*delay),
        Schedule::Steps(steps) => Value::List(steps.iter().copied().map(delay_value).collect()),
    }
}

fn delay_value(delay: Delay) -> Value {
    match delay {
        Delay::After(delay) => duration_value(delay),
        mode => Value::Text(mode.to_string()),
    }
}

fn losers_value(losers: Losers) -> Value {
    match losers {
        Losers::Join { grace: Some(grace) } => {
            Value::Table(vec![("join".to_owned(), duration_value(grace))])
        }
        _ => Value::Text(losers_name(losers).to_owned()),
    }
}

/// A duration that is read as the same one: what is past the range is a number of seconds past it.
fn duration_value(duration: Duration) -> Value {
    Value::Text(match duration {
        Duration::MAX => format!("{}s", duration.as_secs()),
        _ => text::format_duration(duration),
    })
}

fn failure_start_name(failure_start: FailureStart) -> &'static str {
    match failure_start {
        FailureStart::Launch => "launch",
        FailureStart::LaunchWhenIdle => "launch-when-idle",
        FailureStart::Wait => "wait",
    }
}

fn exhausted_name(exhausted: Exhausted) -> &'static str {
    match exhausted {
        Exhausted::Primary => "primary",
        Exhausted::First => "first",
        Exhausted::Last => "last",
    }
}

fn losers_name(losers: Losers) -> &'static str {
    match losers {
        Losers::Drop => "drop",
        Losers::Join { .. } => "join",
        Losers::Detach => "detach",
    }
}

fn rejected_hedge_name(rejected_hedge: RejectedHedge) -> &'static str {
    match rejected_hedge {
        RejectedHedge::Stop => "stop",
        RejectedHedge::Decide => "decide",
        RejectedHedge::Hedge => "hedge",
    }
}

fn span_name(span: SpanMode) -> &'static str {
    match span {
        SpanMode::IfParent => "if-parent",
        SpanMode::Always => "always",
        SpanMode::Never => "never",
    }
}

fn panics_name(panics: Panics) -> &'static str {
    match panics {
        Panics::Propagate => "propagate",
        Panics::AsFailure => "as-failure",
    }
}
