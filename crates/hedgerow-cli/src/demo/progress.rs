//! The progress bar: for a person at a terminal who waits longer than a second, and for nobody
//! else.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

/// A bar on standard error, gone once this is dropped.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    /// A task and not a thread, of which there may be no more.
    clock: Option<JoinHandle<()>>,
}

impl Progress {
    /// A bar over this many calls.
    pub(super) fn new(calls: usize, expected: Duration) -> Self {
        if expected <= Duration::from_secs(1) || !stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), clock: None };
        }
        let bar = ProgressBar::new(calls.try_into().unwrap_or(u64::MAX));
        if let Ok(style) =
            ProgressStyle::with_template("{msg} [{bar:40}] {pos} of {len} calls, {elapsed}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        let clock = tokio::spawn(tick(bar.clone()));
        Self { bar, clock: Some(clock) }
    }

    /// What is going on.
    pub(super) fn stage(&self, stage: &'static str) {
        self.bar.set_message(stage);
    }

    /// One call has ended.
    pub(super) fn count_one(&self) {
        self.bar.inc(1);
    }
}

/// The clock in the bar goes on while a server keeps everybody waiting.
async fn tick(bar: ProgressBar) {
    let mut ticks = interval(Duration::from_millis(200));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
        self.bar.finish_and_clear();
    }
}
