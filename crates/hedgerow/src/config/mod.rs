//! Policies from configuration files: TOML, JSON, YAML, or any other format that serde reads.
//!
//! [`HedgeConfig`] is all that most programs need. [`Value`] and [`Fields`] are what it is read
//! with: programs with more settings read theirs in the same way, so that all mistakes are told at
//! once, each with its key, its value and the remedy.

pub(crate) mod fields;
mod format;
pub(crate) mod hints;
mod layers;
mod learning;
mod options;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;

use hedgerow_core::latency::Learning;
use hedgerow_core::{
    Exhausted, ExtraLoad, FailureStart, InvalidOption, Losers, MaxHedges, Panics, Policy,
    RejectedHedge,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::hedge::Hedge;
use crate::span::SpanMode;
use learning::DelayConfig;

pub use fields::Fields;
pub use layers::Setting;
pub use value::Value;

/// A policy as a configuration file spells it.
///
/// | key | values | default |
/// |---|---|---|
/// | `delay` | `"50ms"`, `"immediately"`, `"on-failure"`, a list with one of them per hedge, `"adaptive"`, or a table (below) | `"2s"` |
/// | `max_hedges` | 0 to 10 | 1 |
/// | `failure_start` | `"launch"`, `"launch-when-idle"`, `"wait"` | `"launch"` |
/// | `exhausted` | `"primary"`, `"first"`, `"last"` | `"primary"` |
/// | `losers` | `"drop"`, `"join"`, `{ join = "50ms" }`, `"detach"` | `"drop"` |
/// | `rejected_hedge` | `"stop"`, `"decide"`, `"hedge"` | `"stop"` |
/// | `hedge_rejections` | `true`, `false` | `false` |
/// | `panics` | `"propagate"`, `"as-failure"` | `"propagate"` |
/// | `max_extra_load` | `"5%"`, `0.05` | no bound; `"5%"` if the delay is adaptive |
/// | `span` | `"if-parent"`, `"always"`, `"never"`: a span for each call, with feature `tracing` | `"if-parent"` |
/// | `dry_run` | `true`, `false`: decide and count, but send no hedge | `false` |
///
/// An adaptive delay may say more:
/// `{ percentile = 95, min = "1ms", max = "1s", initial = "100ms", half_life = "2s", max_keys = 256 }`,
/// each of which may be left out. With a percentile the delay is that percentile; without, delay and
/// probability are chosen together for the lowest 99th percentile, or for the one that
/// `{ target = 99.9 }` names (what a caller of many services at once needs).
///
/// A key that is left out has its default. Durations carry units, unknown keys are refused with the
/// nearest known one, and all mistakes are told at once.
///
/// ```
/// use hedgerow::HedgeConfig;
///
/// let text = r#"{ "delay": ["100ms", "on-failure"], "max_hedges": 2, "max_extra_load": "5%" }"#;
/// let config: HedgeConfig = serde_json::from_str(text)?;
/// let hedge = config.hedge();
///
/// let error = serde_json::from_str::<HedgeConfig>(r#"{ "dealy": "50ms", "max_hedges": 11 }"#);
/// let error = error.unwrap_err().to_string();
/// assert!(error.contains("max_hedges = 11: at most 10 hedges may start"));
/// assert!(error.contains(r#"dealy = "50ms": unknown key; did you mean delay?"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// In a file it usually has a table of its own, `[hedge]`, which is a field of the program's own
/// configuration:
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Config {
///     hedge: hedgerow::HedgeConfig,
/// }
///
/// let config: Config = serde_json::from_str(r#"{ "hedge": { "delay": "50ms" } }"#)?;
/// let hedge = config.hedge.hedge();
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HedgeConfig {
    delay: Option<DelayConfig>,
    max_hedges: Option<MaxHedges>,
    failure_start: Option<FailureStart>,
    exhausted: Option<Exhausted>,
    losers: Option<Losers>,
    rejected_hedge: Option<RejectedHedge>,
    hedge_rejections: Option<bool>,
    panics: Option<Panics>,
    max_extra_load: Option<ExtraLoad>,
    dry_run: Option<bool>,
    span: Option<SpanMode>,
}

impl HedgeConfig {
    /// The keys, in the order of the table above.
    pub const KEYS: [&'static str; 11] = [
        "delay",
        "max_hedges",
        "failure_start",
        "exhausted",
        "losers",
        "rejected_hedge",
        "hedge_rejections",
        "panics",
        "max_extra_load",
        "dry_run",
        "span",
    ];

    /// The JSON Schema of a policy, for editors and validators. It knows keys, types and ranges;
    /// only reading a configuration finds everything (that `max` is not less than `min`, say).
    pub const JSON_SCHEMA: &'static str = include_str!("../../schema/hedge.schema.json");

    /// The policy. Every call of this method makes a budget of its own, where the configuration
    /// asks for one: keep the policy, and clone it to share the budget.
    pub fn hedge(&self) -> Hedge {
        let defaults = Policy::default();
        let (schedule, learning) = match &self.delay {
            None => (defaults.schedule, None),
            Some(DelayConfig::Scheduled(schedule)) => (schedule.clone(), None),
            Some(DelayConfig::Learned(learning)) => (defaults.schedule, Some(*learning)),
        };
        let hedge = Hedge::from_policy(Policy {
            schedule,
            max_hedges: self.max_hedges.unwrap_or(defaults.max_hedges),
            failure_start: self.failure_start.unwrap_or(defaults.failure_start),
            exhausted: self.exhausted.unwrap_or(defaults.exhausted),
            losers: self.losers.unwrap_or(defaults.losers),
            rejected_hedge: self.rejected_hedge.unwrap_or(defaults.rejected_hedge),
            hedge_rejections: self.hedge_rejections.unwrap_or(defaults.hedge_rejections),
            panics: self.panics.unwrap_or(defaults.panics),
            learner: defaults.learner,
            budget: defaults.budget,
            pays: defaults.pays,
            quiet: defaults.quiet,
            dry_run: self.dry_run.unwrap_or(defaults.dry_run),
            observer: defaults.observer,
        });
        let hedge = hedge.span(self.span.unwrap_or_default());
        match (learning, self.max_extra_load) {
            (Some(learning), Some(load)) => {
                hedge.learning(Learning { load: load.get(), ..learning })
            }
            (Some(learning), None) => hedge.learning(learning),
            (None, Some(load)) => hedge.bounded(load),
            (None, None) => hedge,
        }
    }
}

impl From<&HedgeConfig> for Hedge {
    fn from(config: &HedgeConfig) -> Self {
        config.hedge()
    }
}

impl TryFrom<&Value> for HedgeConfig {
    type Error = ConfigError;

    fn try_from(value: &Value) -> Result<Self, ConfigError> {
        let mut fields = Fields::new(value)?;
        let config = Self::take_from(&mut fields);
        fields.finish(config)
    }
}

impl<'de> Deserialize<'de> for HedgeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::try_from(&value).map_err(de::Error::custom)
    }
}

impl Serialize for HedgeConfig {
    /// Writes the keys that were given, so that a default stays one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

/// All that is wrong with a configuration: at least one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    mistakes: Vec<InvalidOption>,
    untold: usize,
}

impl ConfigError {
    /// The first mistakes, in the order in which they were found: 20 at most.
    pub fn mistakes(&self) -> &[InvalidOption] {
        &self.mistakes
    }

    /// How many more mistakes there are.
    pub fn untold(&self) -> usize {
        self.untold
    }

    /// The same, said of something inside a larger whole; see [`InvalidOption::within`].
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        let mistakes = self.mistakes.into_iter();
        let mistakes = mistakes.map(|mistake| mistake.within(place)).collect();
        Self { mistakes, untold: self.untold }
    }
}

impl From<InvalidOption> for ConfigError {
    fn from(mistake: InvalidOption) -> Self {
        Self { mistakes: vec![mistake], untold: 0 }
    }
}

/// Mistakes while they are found. Those past the first are counted and not kept: a file can hold
/// millions, each of which takes more room than what it is about.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    told: Vec<InvalidOption>,
    untold: usize,
}

impl Mistakes {
    /// How many are kept.
    const KEPT: usize = 20;

    fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Adds those of a part; `place` says which part it is.
    pub(crate) fn add(&mut self, error: ConfigError, place: impl fmt::Display) {
        let found = error.mistakes.len();
        let room = found.min(Self::KEPT.saturating_sub(self.told.len()));
        self.untold += found - room + error.untold;
        if room > 0 {
            let place = place.to_string();
            let first = error.mistakes.into_iter().take(room);
            self.told.extend(first.map(|mistake| mistake.within(&place)));
        }
    }

    /// The whole, unless something is wrong with it.
    pub(crate) fn unless_any<T>(self, whole: T) -> Result<T, ConfigError> {
        if self.is_empty() {
            Ok(whole)
        } else {
            Err(ConfigError { mistakes: self.told, untold: self.untold })
        }
    }
}

impl fmt::Display for ConfigError {
    /// One mistake a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{mistake}")?;
        }
        match self.untold {
            0 => Ok(()),
            1 => f.write_str("\nand 1 more mistake"),
            more => write!(f, "\nand {more} more mistakes"),
        }
    }
}

impl std::error::Error for ConfigError {}
