//! A progress bar for a person at a terminal who waits longer than a second.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hedgerow_sim::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Does the work and shows how far it is.
pub(crate) fn watched<T>(requests: u64, work: impl FnOnce(&Progress) -> T) -> T {
    let progress = Progress::default();
    if !stderr().is_terminal() {
        return work(&progress);
    }
    let (done, waits) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            // The sender goes when the work is over, or when it panics.
            let waits = waits;
            if waits.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                show(requests, &progress, || {
                    waits.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout)
                });
            }
        });
        let _done = done;
        work(&progress)
    })
}

fn show(requests: u64, progress: &Progress, goes_on: impl Fn() -> bool) {
    let bar = ProgressBar::new(requests);
    let template = "[{bar:40}] {percent} % of {human_len} requests, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    while goes_on() {
        bar.set_position(progress.requests().min(requests));
    }
    bar.finish_and_clear();
}
