//! Case 3: the primary never ends, one hedge starts and wins. The time that counts is the CPU's,
//! as everyone waits the same delay.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use counts::allocator::{Counted, Counting};
use counts::operation::{HedgeWins, Outcome};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::Measure;
use crate::contender::{Call, Contender};
use crate::machine;

const DELAY: Duration = Duration::from_millis(20);

/// How the case measures a contender.
pub(super) struct Measurement {
    calls: usize,
}

impl Measurement {
    /// With `calls` calls at once.
    pub(super) fn of(calls: usize) -> Self {
        Self { calls }
    }
}

impl Measure for Measurement {
    const HEADS: &'static [&'static str] =
        &["CPU ns ct", "CPU ns mt", "allocations", "bytes", "attempts"];

    fn admits<C: Contender>(&self) -> bool {
        C::FIXED_DELAY && C::KIND.hedges()
    }

    fn prepare<C: Contender>(&self) -> Box<dyn FnMut() -> Vec<f64>> {
        let operation = HedgeWins::new(self.calls);
        let current = start::<C>(machine::current_thread(), self.calls, operation.clone());
        let multi = start::<C>(machine::two_workers(), self.calls, operation);
        Box::new(move || {
            let counted = current.count();
            vec![
                current.cpu_nanoseconds(),
                multi.cpu_nanoseconds(),
                current.per_call(counted.allocations),
                current.per_call(counted.allocated),
                current.per_call(current.operation.attempts()),
            ]
        })
    }
}

/// A contender on a runtime, and the operation under it.
struct Bench<C> {
    runtime: Runtime,
    calls: usize,
    operation: HedgeWins,
    contender: Arc<C>,
}

fn start<C: Contender>(runtime: Runtime, calls: usize, operation: HedgeWins) -> Bench<impl Call> {
    let contender = {
        let _entered = runtime.enter();
        Arc::new(C::build(operation.clone(), DELAY))
    };
    Bench { runtime, calls, operation, contender }
}

impl<C: Call> Bench<C> {
    fn cpu_nanoseconds(&self) -> f64 {
        let before = machine::cpu_time();
        self.make_calls(Vec::with_capacity(self.calls));
        machine::cpu_time().saturating_sub(before).as_nanos() as f64 / self.calls as f64
    }

    fn count(&self) -> Counted {
        let tasks = Vec::with_capacity(self.calls);
        let counting = Counting::start();
        self.make_calls(tasks);
        counting.so_far()
    }

    fn per_call(&self, total: u64) -> f64 {
        total as f64 / self.calls as f64
    }

    /// Makes all calls at once, each in a task that is kept in `tasks` and waited for.
    fn make_calls(&self, mut tasks: Vec<JoinHandle<Outcome>>) {
        self.operation.reset();
        self.runtime.block_on(async {
            for request in 0..self.calls as u64 {
                let contender = Arc::clone(&self.contender);
                tasks.push(tokio::spawn(async move { contender.call(request).await }));
            }
            for task in tasks {
                drop(black_box(task.await));
            }
        });
    }
}
