//! `hedgerow simulate`: policies against invented servers.

mod args;
mod report;
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

use hedgerow_sim::Outcome;

use crate::error::Error;
use crate::page::Target;
use crate::{input, output, progress};
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
    let read = [std::slice::from_ref(&args.spec), &spec.files].concat();
    let target = args.report.as_deref().map(|page| Target::new(page, &read)).transpose()?;
    let outcomes = outcomes(args, &spec);
    let answer = Answer::new(&spec, &outcomes);
    if let Some(target) = target {
        target.write(&report::page(&answer, &outcomes, &spec.text))?;
    }
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

/// What came of each policy, run by run.
fn outcomes(args: &SimulateArgs, spec: &Spec) -> Vec<Vec<Outcome>> {
    let Spec { model, plans, .. } = spec;
    let seeds: Vec<_> = (0..u64::from(spec.runs)).map(|run| spec.seed.wrapping_add(run)).collect();
    let threads = args.threads.or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let strategies: Vec<_> = plans.iter().map(|plan| || plan.strategy(model.servers())).collect();
    let runs = seeds.len() as u64 * plans.len() as u64;
    let expected = model.load().expected_requests().saturating_mul(runs);
    progress::watched(expected, |progress| {
        hedgerow_sim::run_all(model, &strategies, &seeds, threads, progress)
    })
}
