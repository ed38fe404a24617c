//! Case 4: many calls in flight at once. What each of them holds in memory, and what it takes to
//! start, wake and end them all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counts::allocator::Counting;
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::Measure;
use crate::contender::{Call, Contender};
use crate::machine;
use crate::operations::Gate;

/// Never over while the calls are in flight.
const FAR: Duration = Duration::from_secs(20);
/// Soon over, so that every call has two attempts in flight.
const NEAR: Duration = Duration::from_millis(5);
/// How long attempts may take to reach the gate.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the case measures a contender.
pub(super) struct Measurement {
    calls: usize,
}

impl Measurement {
    /// With `calls` calls in flight.
    pub(super) fn of(calls: usize) -> Self {
        Self { calls }
    }
}

impl Measure for Measurement {
    const HEADS: &'static [&'static str] =
        &["live B, one attempt", "live B, two attempts", "wall ns ct", "wall ns mt"];

    fn admits<C: Contender>(&self) -> bool {
        C::FIXED_DELAY
    }

    fn prepare<C: Contender>(&self) -> Box<dyn FnMut() -> Vec<f64>> {
        let calls = self.calls;
        Box::new(move || {
            let current = fly::<C>(&machine::current_thread(), calls, FAR, calls);
            let multi = fly::<C>(&machine::two_workers(), calls, FAR, calls);
            let two_attempts = if C::KIND.hedges() {
                fly::<C>(&machine::current_thread(), calls, NEAR, 2 * calls).live_bytes
            } else {
                f64::NAN
            };
            vec![current.live_bytes, two_attempts, current.nanoseconds, multi.nanoseconds]
        })
    }
}

/// What a call cost.
struct Flight {
    /// Bytes held while all calls were in flight.
    live_bytes: f64,
    /// Wall time from the first start to the last end.
    nanoseconds: f64,
}

/// Starts `calls` calls, opens the gate when `attempts` attempts wait there, and lets them end.
fn fly<C: Contender>(runtime: &Runtime, calls: usize, delay: Duration, attempts: usize) -> Flight {
    let gate = Gate::new(2 * calls);
    let mut tasks = Vec::with_capacity(calls);
    runtime.block_on(async {
        let contender = Arc::new(C::build(gate.clone(), delay));
        // The runtime's own structures exist before counting starts.
        sleep(Duration::from_millis(2)).await;
        let counting = Counting::start();
        let start = Instant::now();
        for request in 0..calls as u64 {
            let contender = Arc::clone(&contender);
            tasks.push(tokio::spawn(async move { contender.call(request).await }));
        }
        arrived(&gate, attempts, attempts > calls).await;
        let live = counting.so_far().live();
        gate.open();
        for task in tasks {
            drop(task.await);
        }
        Flight {
            live_bytes: live as f64 / calls as f64,
            nanoseconds: start.elapsed().as_nanos() as f64 / calls as f64,
        }
    })
}

/// Waits until `attempts` attempts came to the gate: asleep if `timers` have to fire first, else
/// busy, as a sleep would be part of the measured time.
async fn arrived(gate: &Gate, attempts: usize, timers: bool) {
    let start = Instant::now();
    while gate.attempts() < attempts {
        if start.elapsed() > PATIENCE {
            eprintln!("peers: only {} of {attempts} attempts are in flight", gate.attempts());
            break;
        }
        if timers {
            sleep(Duration::from_millis(1)).await;
        } else {
            yield_now().await;
        }
    }
}
