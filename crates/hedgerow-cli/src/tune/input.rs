//! Where logs come from: files and standard input, gzip or not, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::error::Error;
use super::progress::Progress;
use crate::input::unmarked;

/// The longest line that is read.
pub(super) const LONGEST: usize = 1024 * 1024;
/// Enough to make system calls rare.
const BUFFER: usize = 256 * 1024;
/// How many first bytes show what an input is.
const HEAD: usize = 512;

/// Beginnings of what cannot be read, and what helps.
const PACKED: [(&[u8], &str); 4] = [
    (b"\x28\xb5\x2f\xfd", "zstd data; unpack it first: zstdcat FILE | hedgerow tune ... -"),
    (b"\xfd7zXZ", "xz data; unpack it first: xzcat FILE | hedgerow tune ... -"),
    (b"BZh", "bzip2 data; unpack it first: bzcat FILE | hedgerow tune ... -"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
];

/// A log that is being read.
pub(super) struct Input {
    /// As errors name it.
    pub(super) name: String,
    pub(super) reader: Box<dyn BufRead>,
    /// How it begins.
    pub(super) head: Vec<u8>,
}

/// Opens a log and looks what it is.
pub(super) fn open(path: &Path) -> Result<Input, Error> {
    let name = if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() };
    let refused = |error| Error::Open { input: name.clone(), error };
    let raw: Box<dyn Read> = if is_stdin(path) {
        Box::new(Watched { reader: io::stdin().lock(), progress: Progress::new("reading", None) })
    } else {
        let file = File::open(path).map_err(refused)?;
        let data = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let progress = Progress::new("reading", data.map(|data| data.len()));
        Box::new(Watched { reader: file, progress })
    };
    let broken = |error| Error::Read { input: name.clone(), error };
    let (head, reader) = peek(raw).map_err(broken)?;
    let (head, reader) = if head.starts_with(b"\x1f\x8b") {
        peek(Box::new(MultiGzDecoder::new(reader))).map_err(broken)?
    } else {
        (head, reader)
    };
    if let Some(what) = not_text(&head) {
        return Err(Error::Format { input: name, what });
    }
    Ok(Input { name, reader, head })
}

/// Standard input where nothing is named.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The inputs that were named, or standard input if none was.
pub(super) fn paths(logs: &[PathBuf]) -> Vec<PathBuf> {
    if logs.is_empty() { vec![PathBuf::from("-")] } else { logs.to_vec() }
}

/// The first bytes, and a reader that begins with them.
fn peek(mut reader: Box<dyn Read>) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut head = Vec::with_capacity(HEAD);
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let head = unmarked(&head).to_vec();
    let whole = Cursor::new(head.clone()).chain(reader);
    Ok((head, Box::new(BufReader::with_capacity(BUFFER, whole))))
}

/// Why this cannot be the beginning of a log.
fn not_text(head: &[u8]) -> Option<String> {
    if let Some((_, what)) = PACKED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some((*what).to_owned());
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some("UTF-16 text; convert it to UTF-8 first".to_owned());
    }
    head.contains(&0).then(|| "binary data; a log is text, as it is or in gzip".to_owned())
}

/// A reader that reports how far it is.
struct Watched<R> {
    reader: R,
    progress: Progress,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.progress.advance(read);
        Ok(read)
    }
}

/// Calls `each` with the number of every line and the line without its end; `None` stands for one
/// that is too long.
pub(super) fn lines(
    reader: &mut dyn BufRead,
    mut each: impl FnMut(u64, Option<&[u8]>),
) -> io::Result<()> {
    let (mut number, mut carried, mut is_long) = (0, Vec::new(), false);
    loop {
        let chunk = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        if chunk.is_empty() {
            break;
        }
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            rest = &after[1..];
            number += 1;
            if carried.is_empty() && !is_long {
                each(number, Some(line));
                continue;
            }
            is_long |= carried.len() + line.len() > LONGEST;
            carried.extend_from_slice(if is_long { b"" } else { line });
            each(number, (!is_long).then_some(&carried));
            carried.clear();
            is_long = false;
        }
        is_long |= carried.len() + rest.len() > LONGEST;
        if is_long {
            carried.clear();
        } else {
            carried.extend_from_slice(rest);
        }
        let used = chunk.len();
        reader.consume(used);
    }
    if is_long || !carried.is_empty() {
        each(number + 1, (!is_long).then_some(&carried));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: impl Read, buffer: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut seen = Vec::new();
        let mut reader = BufReader::with_capacity(buffer, text);
        lines(&mut reader, |number, line| seen.push((number, line.map(<[u8]>::to_vec)))).unwrap();
        seen
    }

    #[test]
    fn lines_are_whole_whatever_the_buffer() {
        for buffer in [1, 2, 3, 100] {
            let expected = ["a", "", "bcd", "e\r", "f"].map(|line| Some(line.as_bytes().to_vec()));
            let expected: Vec<_> = (1..).zip(expected).collect();
            assert_eq!(all(&b"a\n\nbcd\ne\r\nf"[..], buffer), expected);
        }
        assert_eq!(all(&b""[..], 10), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_bad_line() {
        let long = io::repeat(b'7').take(3 * LONGEST as u64);
        let seen = all(long.chain(&b"\n1\n"[..]), BUFFER);
        assert_eq!(seen, [(1, None), (2, Some(b"1".to_vec()))]);
        let unended = io::repeat(b'7').take(3 * LONGEST as u64);
        assert_eq!(all(unended, BUFFER), [(1, None)]);
    }
}
