//! The program `hedgerow`: see what hedging does to a tail, and what a policy does with a script.

mod args;
mod check;
mod demo;
mod error;
mod input;
mod output;
mod page;
mod progress;
mod replay;
mod simulate;
mod tune;

use std::process::ExitCode;

use args::Command;
use error::Error;

fn main() -> ExitCode {
    let status = match args::parse() {
        Ok(command) => run(command),
        Err(answer) => output::answer(&answer),
    };
    status.unwrap_or_else(|error| {
        output::complain(&format!("error: {error}"));
        error.exit_code()
    })
}

fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Demo(args) => {
            demo::run(&args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Check(args) => check::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Simulate(args) => simulate::run(&args),
    }
}
