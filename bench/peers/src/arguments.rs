//! The command line.

use crate::open_loop::Run;

/// How to use the program.
pub const USAGE: &str = "\
Hedgerow and other Rust hedging libraries, side by side.

usage: peers micro [ROUNDS]         cost per call, allocations, memory in flight (default 9 rounds)
       peers behave                 what each does on failure, panic, cancellation
       peers late                   how late hedges start
       peers tail [SECONDS]         how much of a tail is cut (default 10 s)
       peers limited [SECONDS]      under a load that rises and falls, backend limited (3 s a step)
       peers shift [SECONDS]        while the backend is slow for a while (5 s a phase)
       peers instructions           instructions per call (needs valgrind)
       peers single NAME ready|pending CALLS
                                    makes calls and says nothing: the work that valgrind watches
       peers list                   names of the contenders

PEERS_ONLY=TEXT[,TEXT...] keeps the contenders whose names contain one of the texts.

exit status: 0 done, 1 not measured, 2 bad usage";

/// What is asked for.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Show [`USAGE`].
    Help,
    /// The micro cases.
    Micro {
        /// Rounds of each case.
        rounds: usize,
    },
    /// The behaviour checks.
    Behave,
    /// How late hedges start.
    Late,
    /// An open-loop run.
    OpenLoop {
        /// Which.
        run: Run,
        /// Length of a phase.
        seconds: f64,
    },
    /// Instructions of every contender.
    Instructions,
    /// Calls of one contender and nothing else.
    Single {
        /// The contender's name.
        name: String,
        /// Whether the operation is pending once; else it is ready.
        pending: bool,
        /// How many.
        calls: u64,
    },
    /// The contenders' names.
    List,
}

/// Reads the arguments behind the program's name.
///
/// # Errors
///
/// What is wrong with them, for the user.
pub fn parse(arguments: &[&str]) -> Result<Command, String> {
    let Some((&command, rest)) = arguments.split_first() else {
        return Err("a command is missing".to_owned());
    };
    match (command, rest) {
        ("help" | "--help" | "-h", _) => Ok(Command::Help),
        ("micro", []) => Ok(Command::Micro { rounds: 9 }),
        ("micro", [rounds]) => Ok(Command::Micro { rounds: count(rounds, "a number of rounds")? }),
        ("behave", []) => Ok(Command::Behave),
        ("late", []) => Ok(Command::Late),
        ("tail", rest) => open_loop(Run::Tail, 10.0, rest),
        ("limited", rest) => open_loop(Run::Limited, 3.0, rest),
        ("shift", rest) => open_loop(Run::Shift, 5.0, rest),
        ("instructions", []) => Ok(Command::Instructions),
        ("single", [name, when, calls]) => Ok(Command::Single {
            name: (*name).to_owned(),
            pending: pending(when)?,
            calls: count(calls, "a number of calls")?,
        }),
        ("list", []) => Ok(Command::List),
        ("micro" | "behave" | "late" | "instructions" | "single" | "list", _) => {
            Err(format!("'{command}' does not take these arguments: '{}'", rest.join("' '")))
        }
        _ => Err(format!("there is no command '{command}'")),
    }
}

fn open_loop(run: Run, default: f64, arguments: &[&str]) -> Result<Command, String> {
    let seconds = match arguments {
        [] => default,
        [seconds] => positive(seconds)?,
        _ => return Err("a run takes one number of seconds".to_owned()),
    };
    Ok(Command::OpenLoop { run, seconds })
}

fn count<N: TryFrom<u64>>(text: &str, what: &str) -> Result<N, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    let count = count.and_then(|count| N::try_from(count).ok());
    count.ok_or_else(|| format!("'{text}' is not {what}"))
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| format!("'{text}' is not a number of seconds"))
}

fn pending(text: &str) -> Result<bool, String> {
    match text {
        "ready" => Ok(false),
        "pending" => Ok(true),
        _ => Err(format!("'{text}' is neither 'ready' nor 'pending'")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Run, parse};

    #[test]
    fn numbers_have_defaults() {
        assert_eq!(parse(&["micro"]), Ok(Command::Micro { rounds: 9 }));
        assert_eq!(parse(&["micro", "15"]), Ok(Command::Micro { rounds: 15 }));
        assert_eq!(
            parse(&["shift", "0.5"]),
            Ok(Command::OpenLoop { run: Run::Shift, seconds: 0.5 })
        );
    }

    #[test]
    fn errors_name_the_argument() {
        let error = |arguments: &[&str]| parse(arguments).expect_err("refused");
        assert_eq!(error(&["micro", "many"]), "'many' is not a number of rounds");
        assert_eq!(error(&["tail", "-1"]), "'-1' is not a number of seconds");
        assert_eq!(error(&["list", "all"]), "'list' does not take these arguments: 'all'");
        assert_eq!(error(&["lsit"]), "there is no command 'lsit'");
    }
}
