//! What can be said of each kind of strategy.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::{Budget, Losers};

use crate::config::fields::TWICE;
use crate::config::hints::{one_of, question};
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

    /// What its table looks like, if it has to be one.
    fn example(self) -> Option<&'static str> {
        match self {
            Self::Timeout => None, // the limit alone will do
            Self::Retry => Some("{ max_retries = 2 }"),
            Self::Hedge => Some(r#"{ delay = "150ms" }"#),
            Self::CircuitBreaker => Some("{ failure_ratio = 0.5 }"),
            Self::RateLimiter => Some("{ permits = 100 }"),
            Self::ConcurrencyLimiter => Some("{ limit = 100 }"),
            Self::Chaos => Some(r#"{ latency = "1s" }"#),
        }
    }
}

const KIND: &str = "kind";

/// Kinds that work on values, of which a file has none.
const OF_CODE: [&str; 2] = ["fallback", "cache"];

/// How those get around a pipeline from a file.
const BY_CODE: &str = "needs code, which can put it around this pipeline: see Registry::live";

/// Which kind of strategy this is, and its settings: by what it says, or by what it is called.
pub(super) fn kind_of(name: &str, given: &Value) -> Result<(Kind, Value), ConfigError> {
    let mut said = Vec::new();
    let mut settings = given.clone();
    if let Value::Table(entries) = &mut settings {
        said = entries.extract_if(.., |(key, _)| key == KIND).map(|(_, kind)| kind).collect();
    }
    let kind = match said.as_slice() {
        // It is called as its kind, or nobody knows what it is.
        [] => by_name(name).ok_or_else(|| no_kind(name, given))?,
        [kind] => kind.text().and_then(known).map_err(|error| error.within(KIND))?,
        [_, again, ..] => return Err(again.refused(TWICE).within(KIND)),
    };
    read(kind, &settings).map(|_| (kind, settings))
}

/// The kind of this name.
pub(super) fn known(name: &str) -> Result<Kind, ConfigError> {
    by_name(name).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name);
        let any =
            || format!("{}, as name or as kind; any other strategy {BY_CODE}", one_of(&names));
        Value::Text(name.to_owned()).refused(like_a_kind(name).unwrap_or_else(any))
    })
}

fn by_name(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// What a name that is no kind is like.
fn like_a_kind(name: &str) -> Option<String> {
    if OF_CODE.contains(&name) {
        return Some(format!("a {name} {BY_CODE}"));
    }
    question(name, &Kind::ALL.map(Kind::name), &[])
}

/// That nobody knows what is given under this name.
fn no_kind(name: &str, given: &Value) -> ConfigError {
    const EXAMPLE: &str = r#"such as { kind = "timeout", limit = "2s" }"#;
    let kinds = one_of(&Kind::ALL.map(Kind::name));
    let is_table = matches!(given, Value::Table(_));
    given.refused(match like_a_kind(name) {
        Some(like) if is_table || OF_CODE.contains(&name) => like,
        Some(like) => format!("{like} any other name needs a table with its kind, {EXAMPLE}"),
        None if is_table => format!("its kind is missing; {kinds}; any other strategy {BY_CODE}"),
        None => format!("write a table with its kind, {EXAMPLE}; {kinds}"),
    })
}

/// A strategy of this kind with these settings.
pub(super) fn read(kind: Kind, settings: &Value) -> Result<AnyStrategy, ConfigError> {
    if let (Some(example), false) = (kind.example(), matches!(settings, Value::Table(_))) {
        return Err(settings.refused(format!("write keys and their values, such as {example}")));
    }
    match kind {
        Kind::Timeout => timeout(settings).map(AnyStrategy::Timeout),
        Kind::Retry => retry(settings).map(AnyStrategy::Retry),
        Kind::Hedge => hedge(settings).map(AnyStrategy::Hedge),
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

fn hedge(settings: &Value) -> Result<Hedging, ConfigError> {
    let mut fields = Fields::new(settings)?;
    let hedge = HedgeConfig::take_from(&mut fields).hedge();
    if hedge.policy().losers == Losers::Detach {
        let remedy = "losers of a pipeline from a file cannot run on; write drop or join";
        fields.misplaced(&["losers"], remedy);
    }
    fields.finish(Hedging::new(hedge))
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
    chaos = set(chaos, fields.take("seed", seed), Chaos::seed);
    let enabled = fields.take("enabled", Value::flag);
    fields.finish(set(chaos, enabled, Chaos::enabled))
}

fn seed(value: &Value) -> Result<u64, ConfigError> {
    let Value::Integer(seed) = value else {
        return Err(value.refused("write a whole number"));
    };
    let remedy = format!("write a whole number from 0 to {}", u64::MAX);
    u64::try_from(*seed).map_err(|_| value.refused(remedy))
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
