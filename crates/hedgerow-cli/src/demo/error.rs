//! What can go wrong in a demonstration, one variant for each thing that the person can do
//! something about.

use std::{error, fmt, io};

use hyper::{StatusCode, Uri};

/// How much of what the person wrote an error repeats.
const SHOWN: usize = 100;

/// The start of a text that may be long.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

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
    /// Fewer files may be open than one call needs.
    TooFewFiles {
        /// How many may be.
        limit: usize,
        /// How many would do.
        needed: usize,
    },
    /// No more files may be opened.
    OutOfFiles,
    /// No runtime.
    Runtime(io::Error),
    /// The thread that looks up names could not be started.
    NameThread(io::Error),
    /// A name without an address.
    NoAddress {
        /// The name.
        host: String,
        /// What happened instead.
        why: String,
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

impl Error {
    fn what(&self) -> String {
        match self {
            Self::TooManyUrls { count, .. } => format!("--url names {count} servers"),
            Self::TooFewFiles { limit, .. } => {
                format!("only {limit} files may be open at once")
            }
            Self::OutOfFiles => "no more files may be opened".to_owned(),
            Self::Runtime(error) => format!("cannot start the asynchronous runtime: {error}"),
            Self::NameThread(error) => {
                format!("cannot start the thread that looks up host names: {error}")
            }
            Self::NoAddress { host, why } => {
                format!("no address for the host {}: {why}", cut(host))
            }
            Self::Listen(error) => format!("cannot start a server on 127.0.0.1: {error}"),
            Self::Pace(error) => {
                format!("cannot start the thread that keeps the schedule: {error}")
            }
            Self::Unreachable { url, why } => {
                format!("{} cannot be reached: {why}", cut(&url.to_string()))
            }
            Self::Refused { url, status } => {
                format!("{} answered {status} to a GET request", cut(&url.to_string()))
            }
            Self::AllFailed { calls, why } => {
                format!("all {calls} calls failed, the last one with: {why}")
            }
            Self::Interrupted => "stopped before both phases had answers".to_owned(),
            Self::Output(error) => format!("cannot write to standard output: {error}"),
            Self::Json(error) => format!("cannot write the figures as JSON: {error}"),
        }
    }

    /// What a person can do about it.
    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::TooManyUrls { limit, .. } => return Some(format!("name {limit} at most")),
            Self::TooFewFiles { needed, .. } => {
                return Some(format!(
                    "allow {needed} at least (ulimit -n {needed}), or lower --max-hedges"
                ));
            }
            Self::OutOfFiles => "allow more (ulimit -n) or end some other programs",
            Self::NameThread(_) => "end some other programs, or name addresses instead of hosts",
            Self::NoAddress { .. } => "check the name, or write the address",
            Self::Listen(_) => "name running servers with --url instead",
            Self::Pace(_) => "end some other programs",
            Self::Unreachable { .. } => {
                "check that the server runs and that host and port are right"
            }
            Self::Refused { .. } => "name a path that answers with 2xx or 3xx",
            Self::AllFailed { .. } => "check the servers and run again",
            Self::Interrupted => "there is nothing to compare",
            Self::Runtime(_) | Self::Output(_) | Self::Json(_) => return None,
        };
        Some(remedy.to_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Runtime(error)
            | Self::NameThread(error)
            | Self::Listen(error)
            | Self::Pace(error)
            | Self::Output(error) => Some(error),
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}
