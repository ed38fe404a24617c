//! Instructions per call, counted by valgrind.

use std::io;
use std::process::{Command, ExitStatus};
use std::{env, error, fmt};

const SHORT_RUN: u64 = 2_000;
const LONG_RUN: u64 = 12_000;

/// Runs this very program twice under callgrind, with `arguments` and a number of calls behind
/// them; the difference of the two is the cost of the calls alone, start-up taken away.
///
/// # Errors
///
/// When valgrind cannot be started, the program fails under it, or no count is printed.
pub fn instructions_per_call(arguments: &[&str]) -> Result<u64, CallgrindError> {
    let short = instructions(arguments, SHORT_RUN)?;
    let long = instructions(arguments, LONG_RUN)?;
    Ok(long.saturating_sub(short) / (LONG_RUN - SHORT_RUN))
}

fn instructions(arguments: &[&str], calls: u64) -> Result<u64, CallgrindError> {
    let program = env::current_exe().map_err(CallgrindError::NotStarted)?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .arg(calls.to_string())
        .output()
        .map_err(CallgrindError::NotStarted)?;
    let log = String::from_utf8_lossy(&run.stderr).into_owned();
    if !run.status.success() {
        return Err(CallgrindError::Failed { status: run.status, log });
    }
    collected(&log).ok_or(CallgrindError::NoCount { log })
}

/// The number in callgrind's closing line `==1234== Collected : 5678`.
fn collected(log: &str) -> Option<u64> {
    log.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected :")?;
        count.trim().parse().ok()
    })
}

/// Why there is no instruction count.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallgrindError {
    /// Valgrind could not be started.
    NotStarted(io::Error),
    /// The program failed under valgrind.
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it printed to standard error.
        log: String,
    },
    /// Valgrind printed no count.
    NoCount {
        /// What it printed to standard error.
        log: String,
    },
}

impl fmt::Display for CallgrindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => {
                write!(f, "cannot start valgrind (is it installed?): {error}")
            }
            Self::Failed { status, log } => {
                write!(f, "the program failed under valgrind ({status}):\n{log}")
            }
            Self::NoCount { log } => write!(f, "valgrind printed no instruction count:\n{log}"),
        }
    }
}

impl error::Error for CallgrindError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NotStarted(error) => Some(error),
            Self::Failed { .. } | Self::NoCount { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn the_count_is_read_from_the_closing_line() {
        let log = "==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(log), Some(123_456));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
