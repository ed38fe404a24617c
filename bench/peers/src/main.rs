//! Hedgerow and other Rust hedging libraries, side by side.

mod adapters;
mod arguments;
mod behave;
mod contender;
mod late;
mod machine;
mod micro;
mod open_loop;
mod operations;
mod table;

use std::env;
use std::process::ExitCode;

use arguments::{Command, USAGE};
use contender::{Contender, Visitor};
use counts::allocator::CountingAllocator;
use counts::callgrind::{CallgrindError, instructions_per_call};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = match arguments::parse(&arguments) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("peers: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    let names = Names::wanted();
    if names.all.is_empty() {
        return Err("PEERS_ONLY fits no contender; see 'peers list' without it".to_owned());
    }
    match command {
        Command::Help => println!("{USAGE}"),
        Command::Micro { rounds } => micro::run(rounds),
        Command::Behave => behave::run(),
        Command::Late => late::run(),
        Command::OpenLoop { run, seconds } => run.run(seconds),
        Command::Instructions => {
            print_instructions(&names.fixed_delay).map_err(|error| error.to_string())?;
        }
        Command::Single { name, pending, calls } => {
            if !micro::single(&name, pending, calls) {
                return Err(format!("no contender is named '{name}'; see 'peers list'"));
            }
        }
        Command::List => names.all.iter().for_each(|name| println!("{name}")),
    }
    Ok(())
}

/// Prints a line per contender as soon as it is counted.
fn print_instructions(names: &[&str]) -> Result<(), CallgrindError> {
    let heads = ["contender", "instructions, ready", "instructions, pending once"];
    table::print(&heads, []);
    for &name in names {
        let ready = instructions_per_call(&["single", name, "ready"])?;
        let pending = instructions_per_call(&["single", name, "pending"])?;
        table::print_row(&[name.to_owned(), ready.to_string(), pending.to_string()]);
    }
    Ok(())
}

/// Names of the wanted contenders.
#[derive(Default)]
struct Names {
    all: Vec<&'static str>,
    fixed_delay: Vec<&'static str>,
}

impl Names {
    fn wanted() -> Self {
        let mut names = Self::default();
        adapters::visit(&mut names);
        names
    }
}

impl Visitor for Names {
    fn visit<C: Contender>(&mut self) {
        self.all.push(C::NAME);
        if C::FIXED_DELAY {
            self.fixed_delay.push(C::NAME);
        }
    }
}
