//! What can be said of each kind of strategy.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Budget;

use crate::config::{ConfigError, Fields, HedgeConfig, Value};
use crate::pipeline::parts::Latency;
use crate::pipeline::{
    AnyStrategy, Chaos, CircuitBreaker, ConcurrencyLimiter, Hedging, RateLimiter, Retry, Timeout,
};

/// The kinds of strategies that a file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Timeout,
    Retry,
    Hedge,
    CircuitBreaker,
    RateLimiter,
    ConcurrencyLimiter,
    Chaos,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Retry,
        Self::Hedge,
        Self::CircuitBreaker,
        Self::RateLimiter,
        Self::ConcurrencyLimiter,
        Self::Chaos,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Retry => "retry",
            Self::Hedge => "hedge",
            Self::CircuitBreaker => "circuit-breaker",
            Self::RateLimiter => "rate-limiter",
            Self::ConcurrencyLimiter => "concurrency-limiter",
            Self::Chaos => "chaos",
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
        Kind::Retry => retry(settings).map(AnyStrategy::Retry),
        Kind::Hedge => {
            let config = HedgeConfig::try_from(settings)?;
            Ok(AnyStrategy::Hedge(Hedging::new(config.hedge())))
        }
        Kind::CircuitBreaker => breaker(settings).map(AnyStrategy::CircuitBreaker),
        Kind::RateLimiter => rate_limiter(settings).map(AnyStrategy::RateLimiter),
        Kind::ConcurrencyLimiter => {
            concurrency_limiter(settings).map(AnyStrategy::ConcurrencyLimiter)
        }
        Kind::Chaos => chaos(settings).map(AnyStrategy::Chaos),
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

/// How waits grow, and the retry that they grow so for.
type Growth = (&'static str, fn() -> Retry);

/// The strategy, changed by a setting if it is given.
fn set<S, V>(strategy: S, value: Option<V>, set: impl FnOnce(S, V) -> S) -> S {
    match value {
        Some(value) => set(strategy, value),
        None => strategy,
    }
}

/// How waits grow, by the words of a file.
const GROWTHS: [Growth; 5] = [
    ("exponential", Retry::exponential),
    ("constant", Retry::constant),
    ("linear", Retry::linear),
    ("decorrelated", Retry::decorrelated),
    ("immediately", Retry::immediately),
];

fn retry(settings: &Value) -> Result<Retry, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let growth = fields.take("backoff", |value| value.choice(&GROWTHS, |(name, _)| name));
    let mut retry = growth.map_or_else(Retry::exponential, |(_, made)| made());
    retry = set(retry, fields.take("max_retries", max_retries), |retry, most| match most {
        Some(most) => retry.max_retries(most),
        None => retry.forever(),
    });
    retry = set(retry, fields.take("base", Value::duration), Retry::base);
    let factor = fields.take("factor", |value| match growth {
        Some((name, _)) if name != "exponential" => {
            Err(value.refused("only an exponential back-off has a factor"))
        }
        _ => value.ratio(),
    });
    retry = set(retry, factor, Retry::factor);
    retry = set(retry, fields.take("max_delay", Value::duration), Retry::max_delay);
    retry = set(retry, fields.take("jitter", Value::ratio), Retry::jitter);
    fields.finish(retry)
}

/// A count, or none at all.
fn max_retries(value: &Value) -> Result<Option<u32>, ConfigError> {
    match value {
        Value::Text(text) if text == "forever" => Ok(None),
        Value::Text(_) => Err(value.refused("write a whole number, or \"forever\"")),
        _ => value.count(u32::MAX).map(Some),
    }
}

fn breaker(settings: &Value) -> Result<CircuitBreaker, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let in_a_row = fields.take("consecutive", |value| value.count(u32::MAX));
    let ratio = fields.take("failure_ratio", Value::ratio);
    let mut breaker = match (in_a_row, ratio) {
        (Some(failures), None) => CircuitBreaker::consecutive(failures),
        (Some(failures), Some(_)) => CircuitBreaker::default().or_consecutive(failures),
        (None, _) => CircuitBreaker::default(),
    };
    breaker = set(breaker, ratio, CircuitBreaker::failure_ratio);
    let by_row = in_a_row.is_some() && ratio.is_none();
    let by_ratio = |value: &Value| {
        let refused = || value.refused("it is for a failure_ratio, which is not given");
        if by_row { Err(refused()) } else { Ok(()) }
    };
    let throughput =
        fields.take("min_throughput", |value| by_ratio(value).and_then(|()| value.count(u32::MAX)));
    breaker = set(breaker, throughput, CircuitBreaker::min_throughput);
    let window = fields.take("window", |value| by_ratio(value).and_then(|()| value.duration()));
    breaker = set(breaker, window, CircuitBreaker::window);
    breaker = set(breaker, fields.take("open_for", Value::duration), CircuitBreaker::open_for);
    let probes = fields.take("probes", |value| value.count(u32::MAX));
    breaker = set(breaker, probes, CircuitBreaker::probes);
    let lease = fields.take("probe_lease", Value::duration);
    fields.finish(set(breaker, lease, CircuitBreaker::probe_lease))
}

fn rate_limiter(settings: &Value) -> Result<RateLimiter, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let permits = "write how many may start in a period, such as 100";
    let permits = fields.require("permits", permits, |value| value.count(u32::MAX));
    let period = fields.take("period", Value::duration).unwrap_or(Duration::from_secs(1));
    let mut limiter = RateLimiter::per(permits.unwrap_or(1), period);
    let burst = fields.take("burst", |value| value.count(u32::MAX));
    limiter = set(limiter, burst, RateLimiter::burst);
    let wait = fields.take("max_wait", Value::duration);
    fields.finish(set(limiter, wait, RateLimiter::max_wait))
}

fn concurrency_limiter(settings: &Value) -> Result<ConcurrencyLimiter, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let count = |value: &Value| value.count(u32::MAX).map(|count| count as usize);
    let limit = fields.require("limit", "write how many may run at the same time", count);
    let mut limiter = ConcurrencyLimiter::new(limit.unwrap_or(1));
    limiter = set(limiter, fields.take("max_queue", count), ConcurrencyLimiter::max_queue);
    let wait = fields.take("max_wait", Value::duration);
    fields.finish(set(limiter, wait, ConcurrencyLimiter::max_wait))
}

fn chaos(settings: &Value) -> Result<Chaos<Latency>, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let latency = r#"write how long to wait, such as "1s""#;
    let latency = fields.require("latency", latency, Value::duration);
    let mut chaos = Chaos::latency(latency.unwrap_or_default());
    chaos = set(chaos, fields.take("rate", Value::ratio), Chaos::rate);
    let seed = fields.take("seed", |value| value.count(u32::MAX));
    chaos = set(chaos, seed.map(u64::from), Chaos::seed);
    let enabled = fields.take("enabled", Value::flag);
    fields.finish(set(chaos, enabled, Chaos::enabled))
}

impl AnyStrategy {
    /// The same strategy within a budget that it shares with others, if it is one that starts more
    /// attempts.
    pub(super) fn sharing(self, budget: Option<&Arc<dyn Budget>>) -> Self {
        match (self, budget) {
            (Self::Hedge(hedging), Some(budget)) => Self::Hedge(hedging.budget(Arc::clone(budget))),
            (Self::Retry(retry), Some(budget)) => Self::Retry(retry.budget(Arc::clone(budget))),
            (other, _) => other,
        }
    }

    /// Goes on with what an earlier one has.
    pub(super) fn taking_over(&mut self, earlier: &Self) {
        match (self, earlier) {
            (Self::Hedge(own), Self::Hedge(earlier)) => own.taking_over(earlier),
            (Self::CircuitBreaker(own), Self::CircuitBreaker(earlier)) => own.taking_over(earlier),
            (Self::RateLimiter(own), Self::RateLimiter(earlier)) => own.taking_over(earlier),
            (Self::ConcurrencyLimiter(own), Self::ConcurrencyLimiter(earlier)) => {
                own.taking_over(earlier);
            }
            _ => {}
        }
    }
}
