//! What the person may ask for.

use std::path::PathBuf;

use clap::Args;

/// What to say to somebody who names no file.
pub(super) const MISSING: &str = "name the file to check, or - for standard input";

const EXAMPLES: &str = "\
Examples:
  hedgerow check service.toml           the settings in effect, and what they mean
  hedgerow check --json service.yaml    the same for machines
  hedgerow check - < policy.json        from standard input: JSON, or else TOML
  hedgerow check --schema               the JSON Schema of a policy

A policy stands in the table [hedge] of a program's own file (TOML, JSON or YAML, by its ending), or
alone in a file. Pipelines stand in tables [pipelines.NAME], each with its strategies. What is beside
[hedge] and [pipelines] belongs to the program and is not looked at.

Variables of the environment are stronger than [hedge] in the file: HEDGEROW_HEDGE_MAX_HEDGES=2
stands for max_hedges = 2. Unknown ones are refused.

Exit status: 0 fine, 1 the result cannot be written, 2 something is wrong with the file.";

/// Say what a configuration means, or what is wrong with it
///
/// Prints the settings of the policy in effect, where each came from, and what they do in words; of
/// pipelines the strategies, and how often the work runs at most. Mistakes are told all at once, each
/// with its key, its value and what would be right.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub(super) file: Option<PathBuf>,

    /// Print one JSON object instead of a page
    #[arg(long)]
    pub(super) json: bool,

    /// Print the JSON Schema of a policy, for editors and validators
    #[arg(long, conflicts_with = "file", conflicts_with = "json")]
    pub(super) schema: bool,
}
