//! Where scenarios come from, line by line.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read: far more than any script needs, far less than there is memory.
const LONGEST: u64 = 4 * 1024 * 1024;

/// One source of lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    Stdin,
    File(PathBuf),
}

/// The inputs that were named, or standard input if none was.
pub(super) fn inputs(files: &[PathBuf]) -> Vec<Input> {
    if files.is_empty() {
        return vec![Input::Stdin];
    }
    let input = |file: &PathBuf| match file {
        file if file == Path::new("-") => Input::Stdin,
        file => Input::File(file.clone()),
    };
    files.iter().map(input).collect()
}

impl Input {
    /// What somebody should know who would otherwise wait without knowing for what.
    pub(super) fn waits_for(&self) -> Option<String> {
        match self {
            Self::Stdin => io::stdin().is_terminal().then(|| {
                "reading scenarios from the terminal: one JSON object a line, Ctrl-D to end; \
                 `hedgerow replay --help` shows one"
                    .to_owned()
            }),
            Self::File(path) => is_named_pipe(path)
                .then(|| format!("{self} is a named pipe: waiting for somebody to write to it")),
        }
    }

    pub(super) fn lines(&self) -> io::Result<Lines> {
        let reader: Box<dyn BufRead> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => Box::new(BufReader::new(File::open(path)?)),
        };
        Ok(Lines { reader, buffer: Vec::new(), number: 0 })
    }
}

/// Whether this is a pipe that nobody may have opened for writing. Those of a shell (`<(...)`) have
/// no name of their own, and a writer.
#[cfg(unix)]
fn is_named_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;

    let Ok(true) = path.metadata().map(|file| file.file_type().is_fifo()) else { return false };
    path.canonicalize().is_ok_and(|path| !path.starts_with("/dev/fd"))
}

#[cfg(not(unix))]
fn is_named_pipe(_path: &Path) -> bool {
    false
}

impl fmt::Display for Input {
    /// As errors name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The lines of an input, one at a time: a pipe may never end, and a file may be large.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    buffer: Vec<u8>,
    number: u64,
}

/// A line, without its end.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    Bytes(&'a [u8]),
    /// More bytes than are read.
    TooLong,
}

impl Lines {
    /// The next line and its number; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        self.buffer.clear();
        let mut reader = self.reader.by_ref().take(LONGEST);
        if reader.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_cut = reader.limit() == 0 && self.buffer.last() != Some(&b'\n');
        if is_cut && self.reader.skip_until(b'\n')? > 0 {
            self.buffer = Vec::new();
            return Ok(Some((self.number, Line::TooLong)));
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        Ok(Some((self.number, Line::Bytes(line))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: impl Read + 'static) -> Lines {
        Lines { reader: Box::new(BufReader::new(text)), buffer: Vec::new(), number: 0 }
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let mut lines = lines(&b"a\n\nb\r\nc"[..]);
        let expected = [&b"a"[..], b"", b"b\r", b"c"];
        for (number, line) in (1..).zip(expected) {
            assert_eq!(lines.next().unwrap(), Some((number, Line::Bytes(line))));
        }
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let long = io::repeat(b'x').take(LONGEST + 5);
        let mut lines = lines(long.chain(&b"\nb\n"[..]));
        assert_eq!(lines.next().unwrap(), Some((1, Line::TooLong)));
        assert_eq!(lines.next().unwrap(), Some((2, Line::Bytes(b"b"))));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn names_are_those_that_people_typed() {
        let files = ["-", "./a.jsonl"].map(PathBuf::from);
        let names = inputs(&files).iter().map(Input::to_string).collect::<Vec<_>>();
        assert_eq!(names, ["stdin", "./a.jsonl"]);
    }
}
