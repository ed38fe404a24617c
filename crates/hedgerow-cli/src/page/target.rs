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
    /// Makes sure that the file can be written, and leaves what is in it until there is a page.
    pub(crate) fn new(path: &Path) -> Result<Self, Unwritable> {
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
