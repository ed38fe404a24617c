//! What the benchmark takes from the machine: runtimes and the CPU's time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

/// A current-thread runtime.
pub fn current_thread() -> Runtime {
    started(Builder::new_current_thread().enable_all().build())
}

/// A multi-thread runtime with two workers.
pub fn two_workers() -> Runtime {
    started(Builder::new_multi_thread().worker_threads(2).enable_all().build())
}

/// A current-thread runtime whose clock stands still while anything can run.
pub fn paused() -> Runtime {
    started(Builder::new_current_thread().enable_all().start_paused(true).build())
}

fn started(runtime: std::io::Result<Runtime>) -> Runtime {
    runtime.expect("the system gives a runtime its threads and files")
}

/// CPU time that this process has used so far, all threads together.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("CPU time is positive")
}
