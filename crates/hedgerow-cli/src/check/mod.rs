//! `hedgerow check`: what a configuration means, or what is wrong with it.

mod args;
mod read;
mod show;
mod words;

use std::io::Write;
use std::process::ExitCode;

use hedgerow::HedgeConfig;

pub(crate) use args::CheckArgs;

use crate::error::Error;
use crate::output;
use show::Checked;

/// What variables of the environment that set a policy begin with.
const PREFIX: &str = "HEDGEROW_HEDGE_";

/// Reads the file and says what it means.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Error> {
    if args.schema {
        let mut out = output::stdout();
        let wrote = out.write_all(HedgeConfig::JSON_SCHEMA.as_bytes());
        output::written(wrote.and_then(|()| out.flush()))?;
        return Ok(ExitCode::SUCCESS);
    }
    match check(args) {
        Ok(checked) => {
            let mut out = output::stdout();
            let wrote = if args.json {
                serde_json::to_writer(&mut out, &checked)
                    .map_err(Into::into)
                    .and_then(|()| writeln!(out))
            } else {
                show::write(&mut out, &checked)
            };
            output::written(wrote.and_then(|()| out.flush()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(complaints) => {
            for complaint in complaints {
                output::complain(&complaint);
            }
            Ok(ExitCode::from(2))
        }
    }
}

/// What the file and the environment say, or all that is wrong with either.
fn check(args: &CheckArgs) -> Result<Checked, Vec<String>> {
    let Some(path) = &args.file else { return Err(vec![args::MISSING.to_owned()]) };
    let file = read::read(path);
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    let environment = HedgeConfig::from_vars(PREFIX, std::env::vars_os().filter_map(text));
    let mut complaints = Vec::new();
    if let Err(error) = &environment {
        complaints.extend(error.to_string().lines().map(str::to_owned));
    }
    match (file, environment) {
        (Ok(found), Ok(environment)) => Ok(Checked::new(found, &environment)),
        (file, _) => {
            complaints.splice(0..0, file.err().unwrap_or_default());
            Err(complaints)
        }
    }
}
