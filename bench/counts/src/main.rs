//! Checks what a hedged call costs, in numbers that do not depend on the machine's mood.

mod calls;
mod limits;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use calls::Kind;
use counts::allocator::CountingAllocator;
use counts::{callgrind, scheduler};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const USAGE: &str = "\
Checks what a hedged call costs against the limits in limits.rs.

usage: counts allocs               allocations per call
       counts instructions         instructions per call (needs valgrind)
       counts single KIND CALLS    makes calls and says nothing: the work that valgrind watches

KIND: bare, ready, pending, hedged, stream, hedged-stream; pending-ring, hedged-ring by the ring
timer; pipeline-ready, pipeline-pending in a pipeline

exit status: 0 within the limits, 1 over a limit or not measured, 2 bad usage";

/// Calls whose allocations are counted.
const COUNTED: u64 = 200;
/// How long they may take together; they take less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
enum Command {
    Help,
    Allocations,
    Instructions,
    Single { kind: Kind, calls: u64 },
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match parse(&arguments) {
        Ok(command) => run(command),
        Err(error) => {
            eprintln!("counts: {error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[&str]) -> Result<Command, String> {
    match arguments {
        ["help" | "--help" | "-h"] => Ok(Command::Help),
        ["allocs"] => Ok(Command::Allocations),
        ["instructions"] => Ok(Command::Instructions),
        ["single", kind, calls] => Ok(Command::Single {
            kind: Kind::named(kind).ok_or_else(|| format!("no kind of call is named '{kind}'"))?,
            calls: calls.parse().map_err(|_| format!("'{calls}' is not a number of calls"))?,
        }),
        [] => Err("a command is missing".to_owned()),
        [command, ..] => Err(format!("'{command}' is no command, or its arguments are wrong")),
    }
}

fn run(command: Command) -> ExitCode {
    let within = match command {
        Command::Help => {
            println!("{USAGE}");
            true
        }
        Command::Allocations => allocations(),
        Command::Instructions => instructions(),
        Command::Single { kind, calls } => {
            scheduler::run(&runtime(), kind.count(calls));
            true
        }
    };
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives a runtime its files")
}

/// Prints a table of allocations per call; whether all are what they must be.
fn allocations() -> bool {
    println!("| call | allocations | must be | |\n|---|---:|---:|---|");
    let must_be = [
        (Kind::Ready, limits::READY_ALLOCATIONS),
        (Kind::Pending, limits::PENDING_ALLOCATIONS),
        (Kind::PendingOnRing, limits::PENDING_ALLOCATIONS),
        (Kind::Hedged, limits::HEDGED_ALLOCATIONS),
        (Kind::Stream, limits::STREAM_ALLOCATIONS),
        (Kind::HedgedStream, limits::HEDGED_STREAM_ALLOCATIONS),
        (Kind::HedgedOnRing, limits::HEDGED_ALLOCATIONS),
        (Kind::PipelineReady, limits::READY_ALLOCATIONS),
        (Kind::PipelineReadyOnRing, limits::READY_ALLOCATIONS),
        (Kind::PipelinePending, limits::PENDING_ALLOCATIONS),
    ];
    let mut within = true;
    for (kind, limit) in must_be {
        let counted = count_allocations(kind);
        let met = counted == Some(limit as f64);
        let counted = counted.map_or("hangs".to_owned(), |counted| counted.to_string());
        println!("| {} | {counted} | {limit} | {} |", kind.title(), verdict(met));
        within &= met;
    }
    within
}

/// Allocations per call, counted inside one running task: neither the task nor the runtime is part
/// of a call. `None` if the calls do not end.
fn count_allocations(kind: Kind) -> Option<f64> {
    let counting = async move { timeout(PATIENCE, kind.count(COUNTED)).await };
    let counted = scheduler::run(&runtime(), counting).ok()?;
    Some(counted.allocations as f64 / COUNTED as f64)
}

/// Prints a table of instructions per call; whether they were counted and are few enough.
fn instructions() -> bool {
    println!("| call | instructions | at most | |\n|---|---:|---:|---|");
    let at_most = [
        (Kind::Bare, None),
        (Kind::Ready, Some(limits::READY_INSTRUCTIONS)),
        (Kind::Pending, None),
        (Kind::PendingOnRing, Some(limits::PENDING_ON_RING_INSTRUCTIONS)),
        (Kind::PipelineReady, Some(limits::PIPELINE_READY_INSTRUCTIONS)),
        (Kind::PipelineReadyOnRing, Some(limits::PIPELINE_READY_ON_RING_INSTRUCTIONS)),
        (Kind::PipelinePending, Some(limits::PIPELINE_PENDING_INSTRUCTIONS)),
    ];
    let mut within = true;
    for (kind, limit) in at_most {
        match callgrind::instructions_per_call(&["single", kind.name()]) {
            Ok(counted) => {
                let met = limit.is_none_or(|limit| counted <= limit);
                let limit = limit.map_or("-".to_owned(), |limit| limit.to_string());
                println!("| {} | {counted} | {limit} | {} |", kind.title(), verdict(met));
                within &= met;
            }
            Err(error) => {
                eprintln!("counts: {}: {error}", kind.title());
                return false;
            }
        }
    }
    within
}

fn verdict(met: bool) -> &'static str {
    if met { "ok" } else { "FAILED" }
}
