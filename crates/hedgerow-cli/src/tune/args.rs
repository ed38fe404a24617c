//! What the person may ask for.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hedgerow::latency::Percentile;
use hedgerow::{ExtraLoad, text};

use super::value::Unit;

const EXAMPLES: &str = r#"Examples:
  hedgerow tune --unit ms latencies.txt              one number a line
  hedgerow tune --column duration --unit s log.csv   or --column 3
  hedgerow tune --field request.took log.jsonl.gz    JSON Lines; values with units
  hedgerow tune --format nginx --key path access.log
  hedgerow tune --pattern 'took=(?P<latency>\d+)us' --unit us app.log
  hedgerow tune --unit ms --target p99.9 --max-extra-load 2% - < latencies.txt
  hedgerow tune --unit ms --export envoy latencies.txt
  hedgerow tune --unit ms --load 60% latencies.txt   have the servers room for it?
  hedgerow tune --unit ms --load 60% --servers 3 --workers 8 --report page.html log

A value has its own unit (12ms, 1.5s) or that of --unit. Failed calls do not
belong in the log: a quick failure would pull the delay down. The named formats
leave them out (5xx, 429, and calls that the client gave up).

  --format nginx           the log line ends in $request_time, or in
                           $request_time $upstream_response_time; seconds
  --format nginx-upstream  the same, but $upstream_response_time is taken
  --format envoy           the default access log format; milliseconds

With --load the advice is tried in the simulator, on servers that are so busy
without hedges: a second or two, five runs, the same arrivals and the same work
without and with hedging. It is a cautious trial: a logged latency counts as
work, though some of it was waiting already; copies are independent; nobody
stops a copy that has lost. If the target does not come sooner, beyond chance,
or fewer calls are answered in time, the answer is "do not hedge". Beside it
stands what the learned policy (delay = "adaptive") does. With --key each key is
tried by itself, as if the servers had no other calls, without the learned
policy: a fraction of a second for each key.

What a log of single latencies cannot tell: whether a second copy of a slow
call would be quicker. Send some calls twice, log both latencies, and name them
with --column and --pair (--field and --pair): 200 pairs slower than p95 are
enough, that is, 4,000 calls.

Exit status: 0 done ("do not hedge" is an answer too), 1 the run failed,
2 bad input."#;

/// Say what to set from latencies you have: delay, probability, and what it gives
///
/// Reads latencies from logs (gzip or not), of any length in little memory, and says when to hedge
/// and how often, what that will give and how sure it is, or why not to hedge.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    /// Files to read; `-` or none is standard input
    #[arg(value_name = "LOG")]
    pub(super) logs: Vec<PathBuf>,

    /// What a number without a unit counts
    #[arg(long, value_name = "UNIT")]
    pub(super) unit: Option<Unit>,

    #[command(flatten)]
    pub(super) shape: Shape,

    /// Tune for each value of this column, field or group apart, or for each `path` or `method` of
    /// an access log; 1,000 values at most
    #[arg(long, value_name = "NAME")]
    pub(super) key: Option<String>,

    /// The column, field or group with the latency of a second copy
    #[arg(long, value_name = "NAME")]
    pub(super) pair: Option<String>,

    /// How long after the first copy the second one was started
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = text::parse_duration)]
    pub(super) pair_delay: Duration,

    /// The column, field or group with the time when the call was due; latencies count from then
    #[arg(long, value_name = "NAME", requires = "start")]
    pub(super) due: Option<String>,

    /// The column, field or group with the time when it was sent
    #[arg(long, value_name = "NAME", requires = "due")]
    pub(super) start: Option<String>,

    /// Which percentile is to be cut
    #[arg(long, value_name = "PERCENTILE", default_value = "p99", value_parser = target)]
    pub(super) target: Percentile,

    /// The most hedges for each call, such as 5% or 0.05; without it 5 % is recommended, and 1, 2
    /// and 10 % are shown
    #[arg(long, value_name = "RATIO", value_parser = max_extra_load)]
    pub(super) max_extra_load: Option<ExtraLoad>,

    /// How busy the servers are without hedges, such as 60%: tries the advice on such servers in
    /// the simulator
    #[arg(long, value_name = "RATIO", value_parser = load)]
    pub(super) load: Option<f64>,

    /// How many workers a server has, for --load; 16 if left out, and 1,000 in all at most
    #[arg(long, value_name = "NUMBER", requires = "load")]
    pub(super) workers: Option<u32>,

    /// How many servers there are, each with a queue of its own, for --load; 1 if left out
    #[arg(long, value_name = "NUMBER", requires = "load")]
    pub(super) servers: Option<u32>,

    /// What the resampling for the intervals and the simulation draw from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,

    /// Print JSON
    #[arg(long, conflicts_with = "export")]
    pub(super) json: bool,

    /// Write a page with the advice and its curves
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    pub(super) report: Option<PathBuf>,

    /// Print a configuration to be pasted
    #[arg(long, value_name = "FOR", conflicts_with = "key")]
    pub(super) export: Option<Export>,
}

/// What the log looks like: one number a line, if nothing is said.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct Shape {
    /// CSV: the column with the latency, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    pub(super) column: Option<String>,

    /// JSON Lines: the field with the latency; dots lead into objects
    #[arg(long, value_name = "FIELD")]
    pub(super) field: Option<String>,

    /// A well-known access log
    #[arg(long, value_name = "FORMAT")]
    pub(super) format: Option<Named>,

    /// Anything else: a regular expression; the group `latency`, or else the first one, is the
    /// latency
    #[arg(long, value_name = "REGEX")]
    pub(super) pattern: Option<String>,
}

/// A well-known access log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Named {
    /// Ends in `$request_time`, or `$request_time $upstream_response_time`
    Nginx,
    /// Ends in `$upstream_response_time`
    NginxUpstream,
    /// Envoy's default format
    Envoy,
}

/// Whose configuration is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Export {
    /// TOML for this library and its programs
    Hedgerow,
    /// A route's policies and a cluster's retry budget
    Envoy,
    /// A service config
    Grpc,
    /// A method builder
    Finagle,
    /// A table option
    Cassandra,
}

/// Reads a percentile: `p99`, `99` or `99%`, never 0.99.
fn target(text: &str) -> Result<Percentile, String> {
    let number = text.trim().trim_start_matches(['p', 'P']).trim_end_matches('%');
    let value: f64 =
        number.parse().map_err(|_| "not a percentile; write p99 or p99.9".to_owned())?;
    if value > 0.0 && value < 1.0 {
        // 0.999 * 100 is a hair off as a double.
        let percent = (value * 1e8).round() / 1e6;
        return Err(format!("{text} looks like a ratio; write p{percent}"));
    }
    if value > 99.99 {
        return Err("no log is long enough; use at most p99.99".to_owned());
    }
    Percentile::new(value).map_err(|error| error.remedy().to_owned())
}

fn max_extra_load(text: &str) -> Result<ExtraLoad, String> {
    let ratio = text::parse_ratio(text)?;
    ExtraLoad::at_most_one(ratio).map_err(|error| error.remedy().to_owned())
}

fn load(text: &str) -> Result<f64, String> {
    let ratio = text::parse_ratio(text)?;
    let fits = ratio > 0.0 && ratio < 1.0;
    fits.then_some(ratio).ok_or_else(|| "use more than 0 and less than 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_cannot_be_mistaken_for_a_ratio() {
        for text in ["p99", "99", "99%", " P99"] {
            assert_eq!(target(text), Ok(Percentile::P99), "{text}");
        }
        for (text, hint) in [
            ("0.99", "write p99"),
            ("p0.999", "write p99.9"),
            ("0.95", "write p95"),
            ("1", "above 1"),
            ("100", "p99.99"),
            ("-5", "above 1"),
            ("NaN", "above 1"),
            ("tail", "p99.9"),
        ] {
            let error = target(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn loads_are_shares() {
        assert_eq!(load("60%"), Ok(0.6));
        assert!(load("60").is_err() && load("100%").is_err() && load("0").is_err());
        assert!(max_extra_load("5").is_err() && max_extra_load("5%").is_ok());
    }
}
