//! What the person may ask for.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hedgerow::testing::Front;

const EXAMPLES: &str = r#"Examples:
  hedgerow replay scenarios.jsonl            draw what happens in each scenario
  hedgerow replay --json < scenarios.jsonl   one JSON object per line
  hedgerow replay --front engine a.jsonl -   no futures; `-`: standard input

A scenario is a policy and a script of what its attempts would do, on one line:

  {"id": "slow", "policy": {"delay": "50ms", "max_hedges": 2},
   "attempts": [{"after": "300ms", "outcome": "ok", "value": "a"},
                {"after": "20ms", "outcome": "error"}],
   "expect": {"starts": [[0, 0], [1, 50], [2, 70]]}}

  policy      delay, max_hedges, failure_start, exhausted, losers,
              rejected_hedge, hedge_rejections, panics, max_extra_load,
              dry_run, span; what is left out has its default. Each line is a first
              call, with an empty budget: max_extra_load or an adaptive delay denies
              every hedge unless tokens says otherwise
  attempts    what each attempt does; those past the list never end
    after     how long it runs
    outcome   ok, error (worth another attempt), bad (a value that is), fatal
              (an error that is not), rejected (it never ran), never, panic
    value     what it returns, or the name of its error
    cleanup   how long it goes on after it is told to stop, under losers = join
    pushback  what its server asks for beside: "stop" hedging this call, or not
              before "50ms" have passed
  tokens      how many hedges the budget grants; left out: no bound
  idempotent  false: the work must not run twice
  cancel_at   when the caller cancels
  expect      what must come out; only what it names is compared. Times in it are
              milliseconds as --json prints them
    starts    [[attempt, at], ...]; cancelled the same; suppressed [attempt, ...]
    events    "hedge(1)@50", "denied(1)@50", "win(1)@80", "exhausted@80"
    returned  {"outcome": .., "value": .., "attempt": .., "at": ..}
  id, title, group   yours

Exit status: 0 done, 1 an expectation was not met, 2 a line or a file was
refused (the others are played all the same)."#;

/// Show what a policy does with scripted attempts, in virtual time
///
/// Reads scenarios from files or standard input, one JSON object a line, and draws what happens:
/// when each attempt starts, which one wins, what is returned and when. Takes no real time, whatever
/// the delays.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Files to read; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Print one JSON object a line instead of drawings
    #[arg(long)]
    pub(super) json: bool,

    /// What is driven; all give the same answer
    #[arg(long, value_name = "FRONT", default_value = "async")]
    front: FrontArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FrontArg {
    /// The futures that programs await, on a clock that is moved by hand
    Async,
    /// The pure engine
    Engine,
    /// The same futures, each opening a stream whose one item is its outcome
    Stream,
    /// Threads that block, kept in step by such a clock
    Blocking,
}

impl ReplayArgs {
    pub(super) fn front(&self) -> Front {
        match self.front {
            FrontArg::Async => Front::Async,
            FrontArg::Engine => Front::Engine,
            FrontArg::Stream => Front::Stream,
            FrontArg::Blocking => Front::Blocking,
        }
    }
}
