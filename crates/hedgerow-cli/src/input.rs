//! Small files that are read whole: specs, configurations, lists of samples.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hedgerow::config::Value;

/// The longest that is read.
const LONGEST: u64 = 256 * 1024 * 1024;

/// TOML as a value, or what is wrong with it and where.
pub(crate) fn toml(name: &str, text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| place(text, span.start)).unwrap_or_default();
        let message = error.message().lines().next().unwrap_or("").to_owned();
        format!("{name}{place}: not TOML: {message}")
    })
}

/// What to say of a file that cannot be read, and what to do about it.
pub(crate) fn unreadable(name: &str, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; check the name",
        io::ErrorKind::IsADirectory => "; name a file in it",
        io::ErrorKind::InvalidData => "; write it in UTF-8",
        _ => "",
    };
    format!("cannot read {name}: {error}{remedy}")
}

/// How a file is called in complaints.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What some editors put before a text in UTF-8; it belongs to nobody.
const MARK: &str = "\u{feff}";

/// The text without such a mark.
pub(crate) fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK.as_bytes()).unwrap_or(text)
}

/// All of a file, or of standard input.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = if is_stdin(path) {
        io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text)
    } else {
        File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)
    };
    match read? as u64 {
        ..=LONGEST => {
            if text.starts_with(MARK) {
                text.drain(..MARK.len());
            }
            Ok(text)
        }
        _ => Err(io::Error::other("more than 256 MiB")),
    }
}

/// `:line:column`, both from 1.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!(":{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("a\nbc", 0), ":1:1");
        assert_eq!(place("a\nbc", 3), ":2:2");
        assert_eq!(place("a\nbc", 99), ":2:3");
    }
}
