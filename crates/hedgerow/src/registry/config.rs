//! Pipelines as a configuration file spells them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hedgerow_core::{Budget, ExtraLoad, InvalidOption, RatioBudget};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ConfiguredPipeline;
use super::strategies::{self, Kind};
use crate::config::fields::TWICE;
use crate::config::hints::{question, shown};
use crate::config::{ConfigError, Fields, Mistakes, Value};
use crate::pipeline::{AnyStrategy, Builder, Pipeline};

/// Named pipelines as a configuration file spells them: a table for each.
///
/// | key | what |
/// |---|---|
/// | `strategies` | the names of its strategies, the outermost first: 64 at most |
/// | `max_extra_load` | a budget that all its hedges and retries share: `"5%"` |
/// | the name of a strategy | a table of its settings; all have defaults but what a strategy is about: the limit of a timeout, say |
///
/// The kinds of strategies and their settings:
///
/// | `kind` | settings |
/// |---|---|
/// | `"timeout"` | `limit`; or the limit alone in place of the table: `timeout = "2s"` |
/// | `"retry"` | `backoff`: `"exponential"`, `"constant"`, `"linear"`, `"decorrelated"`, `"immediately"`; `max_retries`: a number or `"forever"`; `base`, `factor`, `max_delay`, `jitter` |
/// | `"hedge"` | those of a [`HedgeConfig`](crate::HedgeConfig) |
/// | `"circuit-breaker"` | `failure_ratio`, `min_throughput`, `window`; `consecutive` in its place or beside it; `open_for`, `probes`, `probe_lease` |
/// | `"rate-limiter"` | `permits` for each `period` (1 s), `burst`, `max_wait` |
/// | `"concurrency-limiter"` | `limit`, `max_queue`, `max_wait` |
/// | `"chaos"` | `latency`, `rate`, `seed`, `enabled` |
///
/// A strategy that is called as its kind needs no `kind`. Every duration has a unit; unknown
/// keys are refused with the nearest known one, and all mistakes are told at once. Options mean what
/// they mean in Rust: see [`Retry`](crate::pipeline::Retry) and the others. Strategies that need
/// values, such as a fallback, go around the pipeline in code: see [`Registry::live`](super::Registry::live).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelinesConfig(Vec<(Arc<str>, PipelineConfig)>);

impl PipelinesConfig {
    /// The pipelines, as they were written.
    pub fn pipelines(&self) -> impl Iterator<Item = (&Arc<str>, &PipelineConfig)> {
        self.0.iter().map(|(name, config)| (name, config))
    }

    /// The pipeline of this name.
    pub fn get(&self, name: &str) -> Option<&PipelineConfig> {
        self.pipelines().find_map(|(known, config)| (**known == *name).then_some(config))
    }
}

impl TryFrom<&Value> for PipelinesConfig {
    type Error = ConfigError;

    fn try_from(value: &Value) -> Result<Self, ConfigError> {
        let Value::Table(entries) = value else {
            return Err(value.refused("write a table for each pipeline"));
        };
        let (mut pipelines, mut mistakes) = (Vec::new(), Mistakes::default());
        let mut names = BTreeSet::new();
        for (name, value) in entries {
            if !names.insert(name) {
                mistakes.add(value.refused(TWICE), shown(name));
            }
            match PipelineConfig::try_from(value) {
                Ok(config) => pipelines.push((Arc::from(name.as_str()), config)),
                Err(error) => mistakes.add(error, shown(name)),
            }
        }
        mistakes.unless_any(Self(pipelines))
    }
}

impl<'de> Deserialize<'de> for PipelinesConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::try_from(&value).map_err(de::Error::custom)
    }
}

impl Serialize for PipelinesConfig {
    /// Writes what was read.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pipelines = self.0.iter();
        let pipelines = pipelines.map(|(name, config)| (name.to_string(), config.written.clone()));
        Value::Table(pipelines.collect()).serialize(serializer)
    }
}

/// One pipeline as a configuration file spells it.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineConfig {
    strategies: Vec<(Arc<str>, Kind, Value)>,
    max_extra_load: Option<ExtraLoad>,
    /// As it was read.
    written: Value,
}

/// With how many keys a name that nobody knows is compared: where there are more the file is not what it
/// should be, and comparing takes its time.
const COMPARED: usize = 64;

const STRATEGIES: &str = "strategies";
const MAX_EXTRA_LOAD: &str = "max_extra_load";

/// The settings of a strategy of which nothing is said.
static NOTHING: Value = Value::Table(Vec::new());

impl TryFrom<&Value> for PipelineConfig {
    type Error = ConfigError;

    fn try_from(value: &Value) -> Result<Self, ConfigError> {
        if !matches!(value, Value::Table(_)) {
            return Err(value.refused("write a table with the key strategies"));
        }
        let mut fields = Fields::new(value)?;
        let listed = listed(&mut fields);
        // Nobody reads a thousand complaints about what is too much anyway.
        if let Some(too_many) = Builder::too_many(listed.unwrap_or_default().len()) {
            return Err(too_many.into());
        }
        let names = names(listed, &mut fields);
        let max_extra_load = fields.take(MAX_EXTRA_LOAD, |value| {
            ExtraLoad::at_most_one(value.ratio()?).map_err(|error| value.refused(error.remedy()))
        });
        let (mut strategies, mut seen) = (Vec::new(), BTreeSet::new());
        for (index, name) in &names {
            if !seen.insert(name) {
                let remedy = "named twice; give each strategy a name of its own, and its kind";
                let twice = Value::Text(name.to_string()).refused(remedy);
                fields.refuse(twice, format_args!("{STRATEGIES}[{index}]"));
                continue;
            }
            if !fields.has(name)
                && let Err(unknown) = strategies::known(name)
            {
                let unknown = meant(name, &names, &mut fields).unwrap_or(unknown);
                fields.refuse(unknown, format_args!("{STRATEGIES}[{index}]"));
                continue;
            }
            let read = |settings| strategies::kind_of(name, settings);
            let Some((kind, settings)) = fields.take_or(name, Some(&NOTHING), read) else {
                continue;
            };
            if let (Some(_), Some(own)) = (max_extra_load, own_load(&settings)) {
                let remedy = "the whole pipeline has one already; leave one of the two out";
                let place = format_args!("{}.{MAX_EXTRA_LOAD}", shown(name));
                fields.refuse(own.refused(remedy), place);
            }
            strategies.push((Arc::clone(name), kind, settings));
        }
        let whole = Self { strategies, max_extra_load, written: value.clone() };
        for mistake in whole.mistakes() {
            fields.refuse(mistake.into(), "");
        }
        fields.finish(whole)
    }
}

/// The list of strategies, if there is one.
fn listed<'a>(fields: &mut Fields<'a>) -> Option<&'a [Value]> {
    let example = r#"name them, the outermost first: ["timeout", "hedge"]"#;
    let read = |value: &'a Value| match value {
        Value::List(entries) => Ok(entries.as_slice()),
        _ => Err(value.refused(example)),
    };
    let mistyped = |key: &str, value: &Value| {
        matches!(value, Value::List(_)) && question(key, &[STRATEGIES], &[]).is_some()
    };
    if fields.any(mistyped) {
        fields.take(STRATEGIES, read) // what is missing is there under another name
    } else {
        fields.require(STRATEGIES, example, read)
    }
}

/// The names in this list, each with its index.
fn names(listed: Option<&[Value]>, fields: &mut Fields<'_>) -> Vec<(usize, Arc<str>)> {
    if listed.is_none() {
        // Without names every table would be unknown, and that is one mistake.
        let own = [STRATEGIES, MAX_EXTRA_LOAD];
        let is_like_one = |key: &str| question(key, &own, &[]).is_some();
        fields.only(|key, value| {
            own.contains(&key) || !matches!(value, Value::Table(_)) && is_like_one(key)
        });
    }
    let entries = listed.unwrap_or_default().iter().enumerate();
    let mut names = Vec::new();
    for (index, entry) in entries {
        match entry.text() {
            Ok(name) => names.push((index, Arc::from(name))),
            Err(error) => fields.refuse(error, format_args!("{STRATEGIES}[{index}]")),
        }
    }
    names
}

/// The load that a hedge is allowed by its own settings.
fn own_load(settings: &Value) -> Option<&Value> {
    let Value::Table(entries) = settings else { return None };
    entries.iter().find_map(|(key, value)| (key == MAX_EXTRA_LOAD).then_some(value))
}

/// That a name of no strategy is like that of a table which no strategy is called by.
fn meant<'a>(
    name: &str,
    names: &[(usize, Arc<str>)],
    fields: &mut Fields<'a>,
) -> Option<ConfigError> {
    let of_a_strategy = |key: &str| names.iter().any(|(_, name)| **name == *key);
    let unread = |key: &&'a str| ![STRATEGIES, MAX_EXTRA_LOAD].contains(key) && !of_a_strategy(key);
    let like = |key: &'a str| Some((key, question(name, &[key], &[])?));
    let (key, hint) = fields.keys().filter(unread).take(COMPARED).find_map(like)?;
    fields.ignore(key); // one mistake is enough
    Some(Value::Text(name.to_owned()).refused(hint))
}

impl PipelineConfig {
    /// The pipeline, with a state of its own, under this name.
    pub fn pipeline(&self, name: impl Into<Arc<str>>) -> ConfiguredPipeline {
        let entry = Entry::new(self, Pipeline::builder().name(name), None);
        entry.pipeline
    }

    /// The budget that its hedges and retries share, if they do: the share of extra load.
    pub fn max_extra_load(&self) -> Option<ExtraLoad> {
        self.max_extra_load
    }

    fn budget(&self) -> Option<Arc<dyn Budget>> {
        let load = self.max_extra_load?;
        Some(Arc::new(RatioBudget::new(load)))
    }

    /// Its strategies, made anew.
    fn made(&self, budget: Option<&Arc<dyn Budget>>) -> Vec<(Arc<str>, AnyStrategy)> {
        let strategies = self.strategies.iter().map(|(name, kind, settings)| {
            let made = strategies::read(*kind, settings).expect("it was read before");
            (Arc::clone(name), made.sharing(budget))
        });
        strategies.collect()
    }

    /// What only the strategies know to be wrong.
    fn mistakes(&self) -> Vec<InvalidOption> {
        let made = self.made(None).into_iter();
        let made = made.map(|(name, strategy)| (shown(&name).into(), strategy));
        let built = Pipeline::builder().build_dynamic(made.collect());
        built.err().map_or_else(Vec::new, |invalid| invalid.mistakes().to_vec())
    }
}

/// A pipeline that is in force.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) pipeline: ConfiguredPipeline,
    max_extra_load: Option<ExtraLoad>,
    /// What its hedges and retries share.
    budget: Option<Arc<dyn Budget>>,
}

impl Entry {
    /// The pipeline of this configuration, which goes on with what an earlier one has.
    pub(super) fn new(
        config: &PipelineConfig,
        builder: Builder<()>,
        earlier: Option<&Self>,
    ) -> Self {
        let max_extra_load = config.max_extra_load;
        let same = earlier.filter(|earlier| earlier.max_extra_load == max_extra_load);
        let budget = same.and_then(|earlier| earlier.budget.clone()).or_else(|| config.budget());
        let mut strategies = config.made(budget.as_ref());
        for (name, strategy) in &mut strategies {
            if let Some(before) = earlier.and_then(|earlier| earlier.strategy(name)) {
                strategy.taking_over(before);
            }
        }
        let pipeline = builder.build_dynamic(strategies);
        let pipeline = pipeline.expect("it was looked at when it was read");
        Self { pipeline, max_extra_load, budget }
    }

    /// The strategy of this name.
    fn strategy(&self, name: &str) -> Option<&AnyStrategy> {
        let names = self.pipeline.strategies().iter().map(|info| &*info.name);
        let mut pairs = names.zip(&self.pipeline.layers().strategies);
        pairs.find_map(|(known, strategy)| (known == name).then_some(strategy))
    }
}
