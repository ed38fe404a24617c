//! Where a page is written to.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::{error, fmt, io};

/// A file that can be written: who waited for the figures must not lose them to a wrong name.
///
/// One that did not exist before is gone again if there is no page in the end.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    /// Nobody needs the file as it is.
    is_idle: bool,
}

/// Why a page cannot be written.
#[derive(Debug)]
pub(crate) struct Unwritable {
    path: PathBuf,
    error: io::Error,
}

impl Target {
    /// Makes sure that the file can be written and is none of those that are read, and leaves what
    /// is in it until there is a page.
    pub(crate) fn new(path: &Path, read: &[PathBuf]) -> Result<Self, Unwritable> {
        if let Some(error) = in_use(path, read) {
            return Err(Unwritable { path: path.to_path_buf(), error });
        }
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let is_idle = made.is_ok();
        let opened = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path)
            }
            made => made,
        };
        let path = path.to_path_buf();
        match opened {
            Ok(_) => Ok(Self { path, is_idle }),
            Err(error) => Err(Unwritable { path, error }),
        }
    }

    /// Writes the page.
    pub(crate) fn write(mut self, page: &str) -> Result<(), Unwritable> {
        let written = fs::write(&self.path, page);
        self.is_idle &= written.is_err();
        written.map_err(|error| Unwritable { path: self.path.clone(), error })
    }
}

/// Says so if a page at this path would replace a file that is read.
fn in_use(path: &Path, read: &[PathBuf]) -> Option<io::Error> {
    // What is no file, such as a terminal, is not lost by being written to.
    let path = path.canonicalize().ok().filter(|path| path.is_file())?;
    let is_it = |read: &PathBuf| read.canonicalize().is_ok_and(|read| read == path);
    let remedy = "it is read from, and the page would replace it; name another file";
    read.iter().any(is_it).then(|| io::Error::new(io::ErrorKind::InvalidInput, remedy))
}

impl Unwritable {
    /// Whether it was named by mistake, whatever the state of the disk.
    pub(crate) fn is_bad_input(&self) -> bool {
        self.error.kind() == io::ErrorKind::InvalidInput
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_idle {
            // Whoever took it away in the meantime did the same.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, error } = self;
        write!(f, "cannot write the report to {}: {error}", path.display())?;
        f.write_str(match error.kind() {
            io::ErrorKind::NotFound => "; make its folder first, or name another",
            io::ErrorKind::NotADirectory => "; part of the path is a file; name another",
            io::ErrorKind::IsADirectory => "; name a file in it",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; name a file that you may write"
            }
            io::ErrorKind::StorageFull => "; make room, or name a file elsewhere",
            _ => "",
        })
    }
}

impl error::Error for Unwritable {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.error)
    }
}
