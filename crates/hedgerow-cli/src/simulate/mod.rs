//! `hedgerow simulate`: policies against invented servers.

mod args;
mod progress;
mod result;
mod shapes;
mod source;
mod spec;
mod table;

use std::io::Write;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

pub(crate) use args::SimulateArgs;

use crate::error::Error;
use crate::input;
use crate::output;
use result::Answer;
use spec::Spec;

/// Reads the spec, runs it and writes what came out.
pub(crate) fn run(args: &SimulateArgs) -> Result<ExitCode, Error> {
    let spec = match read(args) {
        Ok(spec) => spec,
        Err(complaints) => {
            for complaint in complaints {
                output::complain(&complaint);
            }
            return Ok(ExitCode::from(2));
        }
    };
    let answer = answer(args, &spec);
    let mut out = output::stdout();
    let wrote = if args.json {
        serde_json::to_writer(&mut out, &answer).map_err(Into::into).and_then(|()| writeln!(out))
    } else {
        table::write(&mut out, &answer)
    };
    output::written(wrote.and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// The spec with what the command line says otherwise, or all that is wrong with it.
fn read(args: &SimulateArgs) -> Result<Spec, Vec<String>> {
    let source = source::read(&args.spec).map_err(|error| vec![error])?;
    let mut spec = spec::read(&source).map_err(|error| {
        let name = input::name(&args.spec);
        error.mistakes().iter().map(|mistake| format!("{name}: {mistake}")).collect::<Vec<_>>()
    })?;
    spec.seed = args.seed.unwrap_or(spec.seed);
    spec.runs = args.runs.unwrap_or(spec.runs);
    Ok(spec)
}

fn answer(args: &SimulateArgs, spec: &Spec) -> Answer {
    let Spec { model, plans, .. } = spec;
    let seeds: Vec<_> = (0..u64::from(spec.runs)).map(|run| spec.seed.wrapping_add(run)).collect();
    let threads = args.threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let strategies: Vec<_> = plans.iter().map(|plan| || plan.strategy()).collect();
    let runs = seeds.len() as u64 * plans.len() as u64;
    let expected = model.load().expected_requests().saturating_mul(runs);
    let outcomes = progress::watched(expected, |progress| {
        hedgerow_sim::run_all(model, &strategies, &seeds, threads, progress)
    });
    Answer::new(spec, &outcomes)
}
