//! Standard output and standard error. Neither ever panics, as `println!` does when its reader has
//! gone.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use crate::args::Answer;
use crate::error::Error;

/// Enough to make system calls rare.
const BUFFER: usize = 64 * 1024;

/// Standard output, locked once and buffered: who writes must flush.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

/// The end of writing to standard output: a reader who has seen enough and left is no failure.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Whether standard output is a file, which nobody reads before it is complete.
#[cfg(unix)]
pub(crate) fn is_file() -> bool {
    use std::fs::File;
    use std::os::fd::AsFd;

    let stdout = io::stdout().as_fd().try_clone_to_owned();
    stdout.and_then(|stdout| File::from(stdout).metadata()).is_ok_and(|stdout| stdout.is_file())
}

/// Whether standard output is a file, as far as one can tell: it is no terminal.
#[cfg(not(unix))]
pub(crate) fn is_file() -> bool {
    use std::io::IsTerminal;

    !io::stdout().is_terminal()
}

/// Says something on standard error.
pub(crate) fn complain(message: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = say(message);
}

/// Says something on standard error. Fails if its reader has gone: somebody who would say more can
/// stop.
pub(crate) fn say(message: &str) -> io::Result<()> {
    match writeln!(io::stderr(), "{message}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
        // Results are worth having without the complaints.
        _ => Ok(()),
    }
}

/// Gives an answer where it belongs: help can be piped into a pager, complaints cannot.
pub(crate) fn answer(answer: &Answer) -> Result<ExitCode, Error> {
    if answer.is_refusal {
        complain(answer.text.trim_end());
        return Ok(ExitCode::from(2));
    }
    let mut out = stdout();
    written(writeln!(out, "{}", answer.text.trim_end()).and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a character has no shape of its own: a control character, an end of line, or one of
/// Unicode's format characters, which turn text around or hide it.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}
