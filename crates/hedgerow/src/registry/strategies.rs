//! What can be said of each kind of strategy.

use std::sync::Arc;

use hedgerow_core::Budget;

use crate::config::{ConfigError, Fields, HedgeConfig, Value};
use crate::pipeline::{AnyStrategy, Hedging, Timeout};

/// The kinds of strategies that a file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Timeout,
    Hedge,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Timeout, Self::Hedge];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Hedge => "hedge",
        }
    }
}

const KIND: &str = "kind";

/// Which kind of strategy this is, and its settings: by what it says, or by what it is called.
pub(super) fn kind_of(
    name: &str,
    given: Option<&(String, Value)>,
) -> Result<(Kind, Value), ConfigError> {
    let nothing = Value::Table(Vec::new());
    let value = given.map_or(&nothing, |(_, value)| value);
    let (said, settings) = match value {
        Value::Table(entries) => {
            let (said, settings): (Vec<_>, _) =
                entries.iter().cloned().partition(|(key, _)| key == KIND);
            (said.into_iter().next(), Value::Table(settings))
        }
        other => (None, other.clone()),
    };
    let said = said.map(|(_, kind)| kind);
    let kind = match &said {
        Some(kind) => kind.choice(&Kind::ALL, Kind::name).map_err(|error| error.within(KIND))?,
        // It is called as its kind, or nobody knows what it is.
        None => Value::Text(name.to_owned()).choice(&Kind::ALL, Kind::name)?,
    };
    read(kind, &settings).map(|_| (kind, settings))
}

/// A strategy of this kind with these settings.
pub(super) fn read(kind: Kind, settings: &Value) -> Result<AnyStrategy, ConfigError> {
    match kind {
        Kind::Timeout => timeout(settings).map(AnyStrategy::Timeout),
        Kind::Hedge => {
            let config = HedgeConfig::try_from(settings)?;
            Ok(AnyStrategy::Hedge(Hedging::new(config.hedge())))
        }
    }
}

fn timeout(settings: &Value) -> Result<Timeout, ConfigError> {
    if !matches!(settings, Value::Table(_)) {
        return settings.duration().map(Timeout::after);
    }
    let mut fields = Fields::new(settings)?;
    let limit = fields.require("limit", r#"write a duration such as "2s""#, Value::duration);
    fields.finish(limit).map(|limit| Timeout::after(limit.unwrap_or_default()))
}

impl AnyStrategy {
    /// The same strategy within a budget that it shares with others, if it is one that starts more
    /// attempts.
    pub(super) fn sharing(self, budget: Option<&Arc<dyn Budget>>) -> Self {
        match (self, budget) {
            (Self::Hedge(hedging), Some(budget)) => Self::Hedge(hedging.budget(Arc::clone(budget))),
            (other, _) => other,
        }
    }

    /// Goes on with what an earlier one has.
    pub(super) fn taking_over(&mut self, earlier: &Self) {
        match (self, earlier) {
            (Self::Hedge(own), Self::Hedge(earlier)) => own.taking_over(earlier),
            _ => {}
        }
    }
}
