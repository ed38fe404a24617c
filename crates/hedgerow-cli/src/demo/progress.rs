//! The progress bar: for a person at a terminal who waits longer than a second, and for nobody
//! else.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// A bar over this many calls, on standard error, gone once it is dropped.
pub(super) fn bar(calls: usize, expected: Duration) -> ProgressBar {
    if expected <= Duration::from_secs(1) || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(calls.try_into().unwrap_or(u64::MAX))
        .with_finish(ProgressFinish::AndClear);
    if let Ok(style) =
        ProgressStyle::with_template("{msg} [{bar:40}] {pos} of {len} calls, {elapsed}")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    // The clock in it goes on while a server keeps everybody waiting.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
