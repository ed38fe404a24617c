//! What the person may ask for.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = r#"Examples:
  hedgerow simulate overload.toml            a table for people
  hedgerow simulate --json overload.toml     one JSON object
  hedgerow simulate --seed 7 overload.toml   the same with other luck
  hedgerow simulate --report page.html overload.toml
                                             the table, and a page with plots

A spec says what is simulated; what is left out has its default:

  title = "A sick replica"
  seed = 1                   # of the first run; the others follow
  runs = 8                   # independent runs, merged
  shared_stalls = "20%"      # how often a hedge stalls exactly if its primary does

  [load]
  arrivals = "poisson"       # or constant
  steps = [                  # or rate and for (or requests), for a single step
    { rate = 800, for = "5s" },
    { rate = 1600, for = "5s", name = "busy" },   # and latency = { ... }, if it changes
  ]
  fan_out = 1                # calls per request; the slowest one counts
  grace = "500ms"            # a request is in time until so long after its step

  [servers]
  count = 3
  workers = 8                # each; left out: no limit and no queue
  balancer = "random"        # round-robin, power-of-two
  on_cancel = "ignore"       # what a server does with a loser: ignore, queued (drops it
                             # if it waits), running (stops it too)
  cancel_latency = "1ms"
  slow = [{ servers = [0], from = "3s", to = "8s", factor = 10 }]
  drift = { period = "2m", swing = 0.5 }   # all go from 0.5 to 1.5 times as long and back

  [latency]                  # of one attempt on an idle server
  shape = "lognormal"        # mean and sd, or median and sigma
  mean = "5ms"               # constant: value; exponential: mean; pareto: least, alpha
  sd = "2ms"                 # tail: points [["2ms", 1], ["10ms", 0.02]], alpha
  stalls = { chance = "2%", factor = 1, add = "200ms" }
                             # samples: values, or file (and unit); mixture: parts, each
                             # with weight and a shape of its own

  [size]                     # what all copies of a call share: the same shapes in plain
  shape = "lognormal"        # numbers, by which the latency is multiplied
  median = 1
  sigma = 0.5

  [[compare]]                # policies, as in a configuration file; no hedging comes first
  name = "bounded"
  delay = "10ms"
  max_extra_load = "5%"
  probability = 0.9          # hedge only this share of the slow calls
  key = "server"             # with an adaptive delay: learned for each server by itself
  estimator = "winners-only" # what a learned percentile believes of calls that a hedge cut
                             # short: kaplan-meier (as deployed), cuts-as-complete,
                             # callers-time

Exit status: 0 done, 1 the run failed, 2 the spec was refused."#;

/// Simulate servers, load and hedging policies
///
/// Reads a spec in TOML and drives the policies that it names, the very code that programs use,
/// against invented servers. The same seed gives the same figures with any number of threads.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// The spec; `-` is standard input
    #[arg(value_name = "SPEC")]
    pub(super) spec: PathBuf,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(super) json: bool,

    /// Write a page with plots of every policy, the tables and the spec; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// The seed of the first run, instead of the spec's
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,

    /// How many runs, instead of the spec's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) runs: Option<u32>,

    /// How many threads to use; as many as there are cores if left out
    #[arg(long, value_name = "NUMBER")]
    pub(super) threads: Option<NonZeroUsize>,
}
