//! How far the work has come: for a person at a terminal who waits longer than a second.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// From here on somebody who waits wants to know.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar over the bytes of an input, or over its keys, on standard error, gone once it is dropped.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    started: Instant,
    watched: bool,
    size: Option<u64>,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Nothing is done yet, of so much if that is known.
    pub(super) fn new(what: &'static str, size: Option<u64>) -> Self {
        let watched = stderr().is_terminal();
        Self { what, started: Instant::now(), watched, size, done: 0, bar: None }
    }

    /// So much more is done.
    pub(super) fn advance(&mut self, more: usize) {
        self.done += more as u64;
        if !self.watched {
            return;
        }
        if self.bar.is_none() && self.started.elapsed() > PATIENCE {
            self.bar = Some(bar(self.what, self.size));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

fn bar(what: &'static str, size: Option<u64>) -> ProgressBar {
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), "{msg} [{bar:40}] {percent} %, {elapsed}"),
        None => (ProgressBar::no_length(), "{msg}, {bytes}, {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(what).with_finish(ProgressFinish::AndClear)
}
