//! Why the program ends without having done what it was asked.

use std::process::ExitCode;
use std::{error, fmt, io};

use crate::page::Unwritable;
use crate::{demo, tune};

/// What ends a command.
#[derive(Debug)]
pub(crate) enum Error {
    /// The demonstration has no result.
    Demo(demo::Error),
    /// The tuner has no advice.
    Tune(tune::Error),
    /// A page cannot be written.
    Report(Unwritable),
    /// Standard output cannot be written, for another reason than a reader who has gone.
    Output(io::Error),
}

impl Error {
    /// 2 for bad input, 1 for a failed run.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Demo(error) => ExitCode::from(error.exit_code()),
            Self::Tune(error) => ExitCode::from(error.exit_code()),
            Self::Report(error) if error.is_bad_input() => ExitCode::from(2),
            Self::Report(_) | Self::Output(_) => ExitCode::from(1),
        }
    }
}

impl From<demo::Error> for Error {
    fn from(error: demo::Error) -> Self {
        Self::Demo(error)
    }
}

impl From<tune::Error> for Error {
    fn from(error: tune::Error) -> Self {
        Self::Tune(error)
    }
}

impl From<Unwritable> for Error {
    fn from(error: Unwritable) -> Self {
        Self::Report(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demo(error) => error.fmt(f),
            Self::Tune(error) => error.fmt(f),
            Self::Report(error) => error.fmt(f),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Demo(error) => error.source(),
            Self::Tune(error) => error.source(),
            Self::Report(error) => error.source(),
            Self::Output(error) => Some(error),
        }
    }
}
