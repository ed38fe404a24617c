//! `--json`: the advice for machines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hedgerow_sim::tune::{self, Advice, Interval, Quantiles, Trial};
use serde::Serialize;

/// The figures of one log or one key.
#[derive(Serialize)]
struct Figures {
    without: Each<f64>,
    recommendation: Recommendation,
    predicted: Each<f64>,
    intervals: Both,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Simulated>,
    reason: Option<String>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the output")]
struct Each<T> {
    p50_ms: T,
    p90_ms: T,
    p95_ms: T,
    p99_ms: T,
    p999_ms: T,
}

#[derive(Serialize)]
struct Recommendation {
    hedge: bool,
    delay_ms: Option<f64>,
    probability: f64,
    extra_load: f64,
}

/// From and to; the latter is null where too few samples bound it.
type Ends = (f64, Option<f64>);

#[derive(Serialize)]
struct Both {
    without: Each<Ends>,
    predicted: Each<Ends>,
}

/// What busy servers made of it.
#[derive(Serialize)]
struct Simulated {
    servers: u32,
    workers: u32,
    runs: u32,
    calls: u64,
    without: Tried,
    with: Tried,
    adaptive: Option<Tried>,
    /// `hedge` or `do not hedge`.
    verdict: &'static str,
}

#[derive(Serialize)]
struct Tried {
    #[serde(flatten)]
    latencies: Each<f64>,
    extra_load: f64,
    utilisation: f64,
    completed: f64,
    /// The target over that without hedging.
    target_to_without: Times,
}

#[derive(Serialize)]
struct Times {
    mean: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct Keyed {
    keys: BTreeMap<String, Figures>,
}

/// Writes the advice for one log.
pub(super) fn write(out: &mut impl Write, advice: &Advice, notes: &[String]) -> io::Result<()> {
    line(out, &figures(advice, notes))
}

/// Writes the advice for each key.
pub(super) fn write_keyed(
    out: &mut impl Write,
    keys: &[(String, Advice)],
    notes: &[String],
) -> io::Result<()> {
    let keys = keys.iter().map(|(key, advice)| (key.clone(), figures(advice, notes)));
    line(out, &Keyed { keys: keys.collect() })
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

fn figures(advice: &Advice, notes: &[String]) -> Figures {
    let plan = advice.verdict.as_ref().ok();
    let warnings = advice.warnings.iter().map(ToString::to_string);
    Figures {
        without: each(&advice.without, ms),
        recommendation: Recommendation {
            hedge: plan.is_some(),
            delay_ms: plan.map(|plan| ms(plan.delay)),
            probability: plan.map_or(0.0, |plan| short(plan.probability)),
            extra_load: plan.map_or(0.0, |plan| short(plan.extra_load)),
        },
        predicted: each(&advice.predicted, ms),
        intervals: Both {
            without: each(&advice.intervals.without, ends),
            predicted: each(&advice.intervals.predicted, ends),
        },
        simulated: advice.simulated.as_ref().map(simulated),
        reason: advice.verdict.as_ref().err().map(ToString::to_string),
        warnings: warnings.chain(notes.iter().cloned()).collect(),
    }
}

fn simulated(simulated: &tune::Simulated) -> Simulated {
    Simulated {
        servers: simulated.backend.servers(),
        workers: simulated.backend.workers(),
        runs: simulated.runs,
        calls: simulated.calls,
        without: tried(&simulated.without),
        with: tried(&simulated.with),
        adaptive: simulated.adaptive.as_ref().map(tried),
        verdict: if simulated.with.pays { "hedge" } else { "do not hedge" },
    }
}

fn tried(trial: &Trial) -> Tried {
    let ratio = trial.ratio;
    Tried {
        latencies: each(&trial.quantiles, ms),
        extra_load: short(trial.extra_load),
        utilisation: short(trial.utilisation),
        completed: short(trial.completed),
        target_to_without: Times {
            mean: short(ratio.mean),
            low: short(ratio.low),
            high: short(ratio.high),
        },
    }
}

fn each<T: Copy, U>(quantiles: &Quantiles<T>, of: impl Fn(T) -> U) -> Each<U> {
    Each {
        p50_ms: of(quantiles.p50),
        p90_ms: of(quantiles.p90),
        p95_ms: of(quantiles.p95),
        p99_ms: of(quantiles.p99),
        p999_ms: of(quantiles.p999),
    }
}

fn ends(interval: Interval) -> Ends {
    (ms(interval.low), interval.high.map(ms))
}

fn ms(nanos: f64) -> f64 {
    short(nanos / 1e6)
}

/// Five digits: more than any log can tell.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
