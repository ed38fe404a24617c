//! Where a spec comes from.

use std::path::{Path, PathBuf};

use hedgerow::config::Value;

use crate::input;

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
    let name = input::name(path);
    let text = input::text(path).map_err(|error| input::unreadable(&name, &error))?;
    let value = input::toml(&name, &text)?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Source { text, value, folder })
}
