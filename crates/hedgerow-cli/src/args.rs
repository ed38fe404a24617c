//! What was asked for on the command line.

use clap::{CommandFactory, Parser, Subcommand};

use crate::check::CheckArgs;
use crate::demo::DemoArgs;
use crate::replay::ReplayArgs;
use crate::simulate::SimulateArgs;
use crate::tune::TuneArgs;

const EXAMPLES: &str = "\
Examples:
  hedgerow demo                     what hedging does to the tail of real HTTP servers
  hedgerow replay scenarios.jsonl   what a policy does with scripted attempts
  hedgerow tune --unit ms log.txt   what to set, from latencies you have
  hedgerow simulate spec.toml       what policies do to servers, load and queues
  hedgerow check service.toml       what a configuration means, or what is wrong with it
  hedgerow replay --help            the options of a command, and how its input is written

Exit status: 0 done, 1 the run failed or an expectation was not met, 2 bad input.";

/// Hedged requests: start a second attempt when the first is slow, keep the first good answer
#[derive(Debug, Parser)]
#[command(name = "hedgerow", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Replay(ReplayArgs),
    Tune(Box<TuneArgs>),
    Simulate(SimulateArgs),
    Check(CheckArgs),
}

/// What to say instead of doing something: help, the version, what is wrong with the arguments.
#[derive(Debug)]
pub(crate) struct Answer {
    /// All of it.
    pub(crate) text: String,
    /// Whether something is wrong.
    pub(crate) is_refusal: bool,
}

/// Reads the arguments. Without any there is nothing wrong, and help is the best answer.
pub(crate) fn parse() -> Result<Command, Answer> {
    let cli = Cli::try_parse().map_err(|error| Answer {
        text: error.render().to_string(),
        is_refusal: error.use_stderr(),
    })?;
    cli.command
        .ok_or_else(|| Answer { text: Cli::command().render_help().to_string(), is_refusal: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }
}
