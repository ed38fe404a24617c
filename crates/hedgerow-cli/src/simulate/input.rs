//! Where a spec comes from.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hedgerow::config::Value;

/// The longest spec or list of samples that is read.
const LONGEST: u64 = 256 * 1024 * 1024;

/// A spec as it is written.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) value: Value,
    /// What files that it names are relative to.
    pub(super) folder: PathBuf,
}

/// Reads the spec. An error is said to the person as it is.
pub(super) fn read(path: &Path) -> Result<Source, String> {
    let name = name(path);
    let text = text(path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "; check the name",
            io::ErrorKind::IsADirectory => "; name a file in it",
            io::ErrorKind::InvalidData => "; write TOML in UTF-8",
            _ => "",
        };
        format!("cannot read {name}: {error}{remedy}")
    })?;
    let value = toml::from_str(&text).map_err(|error| {
        let place = error.span().map(|span| place(&text, span.start)).unwrap_or_default();
        let message = error.message().lines().next().unwrap_or("").to_owned();
        format!("{name}{place}: not TOML: {message}")
    })?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Source { text, value, folder })
}

/// How the spec is called in complaints.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// All of a file, or of standard input.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = if is_stdin(path) {
        io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text)
    } else {
        File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)
    };
    match read? as u64 {
        ..=LONGEST => Ok(text),
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
