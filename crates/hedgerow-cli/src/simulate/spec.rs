//! What is simulated, as a spec writes it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use hedgerow::config::{Fields, Value};
use hedgerow::{ConfigError, HedgeConfig, InvalidOption, MaxHedges, Policy};
use hedgerow_sim::{
    Arrivals, Balancer, Estimator, Load, Model, OnCancel, Servers, Slow, Step, Strategy, Work,
};

use super::shapes::{Kind, has, number};
use super::source::Source;

/// The most runs.
const MOST_RUNS: u32 = 1_000;

/// All of it.
#[derive(Debug)]
pub(super) struct Spec {
    /// As it is written.
    pub(super) text: String,
    /// The samples that it names.
    pub(super) files: Vec<PathBuf>,
    pub(super) title: Option<String>,
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) model: Model,
    pub(super) plans: Vec<Plan>,
}

/// A policy with its name.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    /// `None`: no hedging.
    config: Option<HedgeConfig>,
    probability: f64,
    key: Option<Key>,
    estimator: Estimator,
}

/// What is learned apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Server,
}

impl Plan {
    /// What everything is compared with.
    fn none() -> Self {
        let estimator = Estimator::default();
        Self { name: "none".to_owned(), config: None, probability: 1.0, key: None, estimator }
    }

    /// A strategy of its own for one run: budgets are not shared.
    pub(super) fn strategy(&self, servers: &Servers) -> Strategy {
        let strategy = Strategy::new(self.policy());
        // The reader has seen to it that all of this can be had.
        let strategy = self.refined(strategy.clone()).unwrap_or(strategy);
        self.keyed(strategy.clone(), servers).unwrap_or(strategy)
    }

    fn policy(&self) -> Policy {
        match &self.config {
            Some(config) => config.hedge().policy().clone(),
            None => Policy {
                max_hedges: MaxHedges::new(0).unwrap_or(Policy::default().max_hedges),
                ..Policy::default()
            },
        }
    }

    /// What a policy does not say by itself.
    fn refined(&self, strategy: Strategy) -> Result<Strategy, InvalidOption> {
        strategy.with_probability(self.probability)?.with_estimator(self.estimator)
    }

    /// The strategy with what is to be learned apart.
    fn keyed(&self, strategy: Strategy, servers: &Servers) -> Result<Strategy, InvalidOption> {
        match self.key {
            Some(Key::Server) => strategy.by_server(servers),
            None => Ok(strategy),
        }
    }

    /// Refuses what these servers do not allow.
    fn fits(&self, servers: &Servers) -> Result<(), ConfigError> {
        let error = self.keyed(Strategy::new(self.policy()), servers).err();
        error.map_or(Ok(()), |error| Err(ConfigError::from(error).within("delay")))
    }
}

/// Reads a spec, and tells all that is wrong with it.
pub(super) fn read(source: &Source) -> Result<Spec, ConfigError> {
    let mut fields = Fields::new(&source.value)?;
    let files = RefCell::default();
    let kind = |durations| Kind { durations, folder: &source.folder, files: &files };
    let title = fields.take("title", |value| value.text().map(str::to_owned));
    let seed = fields.take("seed", seed);
    let runs = fields.take("runs", |value| at_least_one(value, MOST_RUNS));
    let load = fields.require("load", "write [load] with rate and for, or with steps", |value| {
        load(value, kind(true))
    });
    let servers = fields.take("servers", servers);
    let latency = fields.require("latency", "write [latency] with its shape", |value| {
        kind(true).distribution(value)
    });
    let size = fields.take("size", |value| kind(false).distribution(value));
    let shared = fields.take("shared_stalls", Value::ratio);
    let policy = fields.take("policy", plan);
    let compare = fields.take("compare", |value| value.list(plan));
    let Some((load, latency)) = fields.finish(load.zip(latency))? else {
        return Err(source.value.refused("write [load] and [latency]"));
    };
    let work = Work::new(latency);
    let work = match size {
        Some(size) => work.size(size),
        None => work,
    };
    let work = work.shared_stalls(shared.unwrap_or(0.0))?;
    let servers = servers.unwrap_or_default();
    let compare = compare.unwrap_or_default();
    policy
        .iter()
        .try_for_each(|plan| plan.fits(&servers).map_err(|error| error.within("policy")))?;
    for (index, plan) in compare.iter().enumerate() {
        plan.fits(&servers).map_err(|error| error.within(&format!("compare[{index}]")))?;
    }
    let mut plans = vec![Plan::none()];
    plans.extend(policy);
    plans.extend(compare);
    Ok(Spec {
        text: source.text.clone(),
        files: files.into_inner(),
        title,
        seed: seed.unwrap_or(1),
        runs: runs.unwrap_or(1),
        model: Model::new(work, servers, load),
        plans,
    })
}

fn seed(value: &Value) -> Result<u64, ConfigError> {
    match value {
        Value::Integer(seed) => u64::try_from(*seed).ok(),
        _ => None,
    }
    .ok_or_else(|| value.refused("write a whole number of at least 0"))
}

fn at_least_one(value: &Value, most: u32) -> Result<u32, ConfigError> {
    match value.count(most) {
        Ok(1..) => value.count(most),
        _ => Err(value.refused(format!("write a whole number from 1 to {most}"))),
    }
}

fn load(value: &Value, kind: Kind<'_>) -> Result<Load, ConfigError> {
    const ARRIVALS: [Arrivals; 2] = [Arrivals::Poisson, Arrivals::Constant];
    let mut fields = Fields::new(value)?;
    let arrivals = fields.take("arrivals", |value| {
        value.choice(&ARRIVALS, |arrivals| match arrivals {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        })
    });
    let steps = if let Some(steps) = fields.take("steps", |value| {
        value.list(|step| {
            let mut fields = Fields::new(step)?;
            let made = take_step(step, &mut fields);
            let latency = fields.take("latency", |value| kind.distribution(value));
            let made = finish_step(fields, made)?;
            Ok(match latency {
                Some(latency) => made.latency(latency),
                None => made,
            })
        })
    }) {
        let remedy = "not beside steps; write it in each step";
        fields.misplaced(&["rate", "for", "requests", "name"], remedy);
        Some(Ok(steps))
    } else if has(value, "steps") {
        None
    } else {
        take_step(value, &mut fields).map(|step| step.map(|step| vec![step]))
    };
    let fan_out = fields.take("fan_out", |value| at_least_one(value, Load::MOST_FAN_OUT));
    let grace = fields.take("grace", Value::duration);
    let steps = fields.finish(steps)?.unwrap_or_else(|| Err(value.refused("write steps")))?;
    let load = Load::new(arrivals.unwrap_or_default(), steps)?.fan_out(fan_out.unwrap_or(1))?;
    Ok(match grace {
        Some(grace) => load.grace(grace),
        None => load,
    })
}

/// `None` if something is missing: the fields know.
fn take_step(value: &Value, fields: &mut Fields<'_>) -> Option<Result<Step, ConfigError>> {
    let name = fields.take("name", |value| value.text().map(str::to_owned));
    let rate = fields.require("rate", "write requests a second, such as 1000", number);
    let requests = fields.take("requests", |value| at_least_one(value, u32::MAX));
    let step = if has(value, "requests") {
        fields.misplaced(&["for"], "not beside requests; use one of them");
        Step::counting(rate?, requests?.into())
    } else {
        let remedy = r#"write how long, such as "10s", or how many requests"#;
        let time: Option<Duration> = fields.require("for", remedy, Value::duration);
        Step::lasting(rate?, time?)
    };
    Some(
        match name {
            Some(name) => step.map(|step| step.named(name)),
            None => step,
        }
        .map_err(ConfigError::from),
    )
}

fn finish_step(
    fields: Fields<'_>,
    step: Option<Result<Step, ConfigError>>,
) -> Result<Step, ConfigError> {
    let missing = || InvalidOption::new("rate", "", "missing").into();
    fields.finish(step)?.unwrap_or_else(|| Err(missing()))
}

fn servers(value: &Value) -> Result<Servers, ConfigError> {
    const BALANCERS: [Balancer; 3] = [Balancer::Random, Balancer::RoundRobin, Balancer::PowerOfTwo];
    const ON_CANCEL: [OnCancel; 3] = [OnCancel::Ignore, OnCancel::Queued, OnCancel::Running];
    let mut fields = Fields::new(value)?;
    let count = fields.take("count", |value| at_least_one(value, Servers::MOST));
    let workers = fields.take("workers", |value| at_least_one(value, u32::MAX));
    let balancer = fields.take("balancer", |value| {
        value.choice(&BALANCERS, |balancer| match balancer {
            Balancer::Random => "random",
            Balancer::RoundRobin => "round-robin",
            Balancer::PowerOfTwo => "power-of-two",
        })
    });
    let on_cancel = fields.take("on_cancel", |value| {
        value.choice(&ON_CANCEL, |on_cancel| match on_cancel {
            OnCancel::Ignore => "ignore",
            OnCancel::Queued => "queued",
            OnCancel::Running => "running",
        })
    });
    let latency = fields.take("cancel_latency", Value::duration);
    let slow = fields.take("slow", |value| value.list(slow));
    let drift = fields.take("drift", drift);
    fields.finish(())?;
    let count = count.unwrap_or(1);
    let servers = match workers {
        Some(workers) => Servers::limited(count, workers)?,
        None => Servers::unlimited(count)?,
    };
    let servers = servers
        .balancer(balancer.unwrap_or_default())
        .on_cancel(on_cancel.unwrap_or_default(), latency.unwrap_or_default());
    let servers = match drift {
        Some((period, swing)) => servers
            .drift(period, swing)
            .map_err(|error| ConfigError::from(error).within("drift"))?,
        None => servers,
    };
    slow.unwrap_or_default().into_iter().enumerate().try_fold(servers, |servers, (index, slow)| {
        let place = format!("slow[{index}]");
        servers.slow(slow).map_err(|error| ConfigError::from(error).within(&place))
    })
}

fn drift(value: &Value) -> Result<(Duration, f64), ConfigError> {
    let mut fields = Fields::new(value)?;
    let period = fields.require("period", "write a duration such as \"2m\"", Value::duration);
    let swing = fields.require("swing", "write a number such as 0.5", number);
    let both = fields.finish(period.zip(swing))?;
    both.ok_or_else(|| value.refused("write period and swing"))
}

fn slow(value: &Value) -> Result<Slow, ConfigError> {
    let mut fields = Fields::new(value)?;
    let which = fields.take("servers", |value| value.list(|server| server.count(Servers::MOST)));
    let from = fields.take("from", Value::duration).unwrap_or(Duration::ZERO);
    let to = fields.take("to", Value::duration).unwrap_or(Duration::MAX);
    let remedy = "write how many times as long everything takes, such as 10";
    let factor = fields.require("factor", remedy, number);
    let factor = fields.finish(factor)?.unwrap_or(1.0);
    let slow = Slow::new(from, to, factor)?;
    Ok(match which {
        Some(which) => slow.only(which),
        None => slow,
    })
}

fn plan(value: &Value) -> Result<Plan, ConfigError> {
    let mut fields = Fields::new(value)?;
    let name = fields.take("name", |value| value.text().map(str::to_owned));
    let probability = fields.take("probability", |value| {
        let ratio = value.ratio()?;
        if (0.0..=1.0).contains(&ratio) {
            return Ok(ratio);
        }
        Err(value.refused(r#"use 0 to 1, such as 0.9 or "90%""#))
    });
    let key = fields.take("key", |value| value.choice(&[Key::Server], |_| "server"));
    let estimator =
        fields.take("estimator", |value| value.choice(&Estimator::ALL, Estimator::name));
    let config = HedgeConfig::take_from(&mut fields);
    let plan = fields.finish(Plan {
        name: name.unwrap_or_else(|| as_written(value)),
        config: Some(config),
        probability: probability.unwrap_or(1.0),
        key,
        estimator: estimator.unwrap_or_default(),
    })?;
    if plan.key.is_some() && plan.policy().learner.is_none() {
        let remedy = r#"only a policy that learns has keys; write delay = "adaptive""#;
        return Err(InvalidOption::new("key", r#""server""#, remedy).into());
    }
    plan.refined(Strategy::new(plan.policy()))?;
    Ok(plan)
}

/// The keys of a policy without a name are its name.
fn as_written(value: &Value) -> String {
    let Value::Table(entries) = value else { return String::new() };
    let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if entries.is_empty() { "defaults".to_owned() } else { entries.join(", ") }
}
