//! What can go wrong while tuning, one variant for each thing that the person can do something
//! about.

use std::{error, fmt, io};

use hedgerow::InvalidOption;

/// Why there is no advice.
#[derive(Debug)]
pub(crate) enum Error {
    /// The options do not go together.
    Options(&'static str),
    /// A number is out of range.
    Number(InvalidOption),
    /// An input cannot be opened.
    Open { input: String, error: io::Error },
    /// An input broke off.
    Read { input: String, error: io::Error },
    /// An input holds what no line can be read from.
    Format { input: String, what: String },
    /// There is nothing in the inputs.
    Empty { input: String, what: &'static str },
    /// A column, field or group that does not exist.
    Missing { input: String, kind: &'static str, name: String, near: Option<String> },
    /// Too many lines hold no latency.
    TooManyBad { input: String, hint: &'static str },
    /// The pattern cannot be used.
    Pattern(String),
}

impl Error {
    /// The exit status of the program: 2 for bad input, 1 for a failed run.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Read { error, .. } if !is_input_fault(error) => 1,
            _ => 2,
        }
    }
}

/// Whether the bytes are to blame, not the machine.
fn is_input_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | IsADirectory | UnexpectedEof)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) => f.write_str(what),
            Self::Number(error) => write!(f, "--{error}"),
            Self::Open { input, error } => {
                write!(f, "cannot read {input}: {error}")?;
                match error.kind() {
                    io::ErrorKind::NotFound => f.write_str("; check the name"),
                    _ => Ok(()),
                }
            }
            Self::Read { input, error } => match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    write!(f, "{input}: the gzip data is cut off; fetch the file again")
                }
                io::ErrorKind::IsADirectory => {
                    write!(f, "cannot read {input}: {error}; name the files in it")
                }
                _ => write!(f, "cannot read {input} to its end: {error}"),
            },
            Self::Format { input, what } => write!(f, "{input}: {what}"),
            Self::Empty { input, what } => write!(f, "{input}: {what}"),
            Self::Missing { input, kind, name, near } => {
                write!(f, "{input}: no {kind} {name:?}")?;
                match near {
                    Some(near) => write!(f, "; did you mean {near:?}?"),
                    None => Ok(()),
                }
            }
            Self::TooManyBad { input, hint } => {
                write!(f, "{input}: too many lines hold no latency{hint}")
            }
            Self::Pattern(what) => write!(f, "--pattern: {what}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Open { error, .. } | Self::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}
