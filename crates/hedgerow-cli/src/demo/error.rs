//! What can go wrong in a demonstration, one variant for each thing that the person can do
//! something about.

use std::{error, fmt, io};

use hyper::{StatusCode, Uri};

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Error {
    /// More addresses than a run may use.
    TooManyUrls {
        /// How many were given.
        count: usize,
        /// How many may be.
        limit: usize,
    },
    /// An embedded server could not be started.
    Listen(io::Error),
    /// The thread that keeps the schedule could not be started.
    Pace(io::Error),
    /// The person's own server gave no answer to the request before the run.
    Unreachable {
        /// The server's address.
        url: Uri,
        /// What happened instead.
        why: String,
    },
    /// The person's own server does not want this request.
    Refused {
        /// The server's address.
        url: Uri,
        /// Its answer.
        status: StatusCode,
    },
    /// Not one call succeeded, in either phase.
    AllFailed {
        /// How many calls there were.
        calls: u32,
        /// What became of the last one.
        why: String,
    },
    /// Ctrl-C before both phases had an answer.
    Interrupted,
    /// Standard output cannot be written, for another reason than a reader who has gone.
    Output(io::Error),
    /// The figures cannot be written as JSON.
    Json(serde_json::Error),
}

impl Error {
    /// The exit status of the program: 2 for bad input, 1 for a failed run, 130 as shells have it
    /// for Ctrl-C.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::TooManyUrls { .. } => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyUrls { count, limit } => {
                write!(f, "--url names {count} servers; name {limit} at most")
            }
            Self::Listen(error) => {
                write!(
                    f,
                    "cannot start a server on 127.0.0.1: {error}; \
                     name running servers with --url instead"
                )
            }
            Self::Pace(error) => {
                write!(
                    f,
                    "cannot start the thread that keeps the schedule: {error}; \
                     end some other programs"
                )
            }
            Self::Unreachable { url, why } => {
                write!(
                    f,
                    "{url} cannot be reached: {why}; \
                     check that the server runs and that host and port are right"
                )
            }
            Self::Refused { url, status } => {
                write!(
                    f,
                    "{url} answered {status} to a GET request; \
                     name a path that answers with 2xx or 3xx"
                )
            }
            Self::AllFailed { calls, why } => {
                write!(
                    f,
                    "all {calls} calls failed, the last one with: {why}; \
                     check the servers and run again"
                )
            }
            Self::Interrupted => f.write_str(
                "stopped before both phases had answers, so there is nothing to compare",
            ),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
            Self::Json(error) => write!(f, "cannot write the figures as JSON: {error}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Listen(error) | Self::Pace(error) | Self::Output(error) => Some(error),
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}
