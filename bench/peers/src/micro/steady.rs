//! Cases 1 and 2: calls that never hedge, one after the other.

use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use counts::allocator::{Counted, Counting};
use counts::operation::{Operation, PendingOnce, Ready};
use counts::scheduler::{self, in_turns};
use tokio::runtime::Runtime;

use super::Measure;
use crate::adapters;
use crate::contender::{Call, Contender, Visitor};
use crate::machine;

/// Never over within a call.
const FAR: Duration = Duration::from_secs(5);
/// About how long the calls of one timed pass take together.
const PASS: Duration = Duration::from_millis(15);
/// Calls of a pass: at least and at most.
const FEWEST: u64 = 2_000;
const MOST: u64 = 200_000;
/// Calls whose allocations are counted.
const COUNTED: u64 = 2_000;

/// How a case measures a contender with the operation `O`.
pub(super) struct Measurement<O> {
    operation: O,
}

impl<O: Operation> Measurement<O> {
    /// With `operation`.
    pub(super) fn of(operation: O) -> Self {
        Self { operation }
    }
}

impl<O: Operation> Measure for Measurement<O> {
    const HEADS: &'static [&'static str] =
        &["ns ct", "ns mt, 1 task", "2 tasks", "2 threads", "allocations", "bytes", "future B"];

    fn admits<C: Contender>(&self) -> bool {
        C::STEADY
    }

    fn prepare<C: Contender>(&self) -> Box<dyn FnMut() -> Vec<f64>> {
        let current = start::<C, O>(machine::current_thread(), &self.operation);
        let multi = start::<C, O>(machine::two_workers(), &self.operation);
        let calls = current.calls_of_a_pass();
        Box::new(move || {
            let counted = current.count();
            vec![
                current.nanoseconds(calls, 1),
                multi.nanoseconds(calls, 1),
                multi.nanoseconds(calls, 2),
                multi.nanoseconds_of_threads(calls, 2),
                counted.allocations as f64 / COUNTED as f64,
                counted.allocated as f64 / COUNTED as f64,
                current.future_size() as f64,
            ]
        })
    }
}

/// A contender on a runtime. Calls are made in spawned tasks.
struct Bench<C> {
    runtime: Runtime,
    contender: Arc<C>,
}

fn start<C: Contender, O: Operation>(runtime: Runtime, operation: &O) -> Bench<impl Call> {
    let contender = {
        let _entered = runtime.enter();
        Arc::new(C::build(operation.clone(), FAR))
    };
    Bench { runtime, contender }
}

impl<C: Call> Bench<C> {
    fn calls_of_a_pass(&self) -> u64 {
        let one = self.nanoseconds(FEWEST, 1);
        let calls = Duration::from_secs_f64(PASS.as_secs_f64() / one).as_nanos();
        u64::try_from(calls).unwrap_or(MOST).clamp(FEWEST, MOST)
    }

    /// Nanoseconds per call of `tasks` tasks that share the contender and each make `calls` calls.
    fn nanoseconds(&self, calls: u64, tasks: u32) -> f64 {
        let tasks: Vec<_> = (0..tasks)
            .map(|_| scheduler::spawn(&self.runtime, timed(Arc::clone(&self.contender), calls)))
            .collect();
        let mean = 1.0 / tasks.len() as f64;
        self.runtime.block_on(async {
            let mut nanoseconds = 0.0;
            for task in tasks {
                nanoseconds += mean * task.await.expect("no contender panics here");
            }
            nanoseconds
        })
    }

    /// The same of threads that poll by hand, inside the runtime but without its scheduler: tasks
    /// that wake themselves wander between workers, and seldom run at the same time.
    fn nanoseconds_of_threads(&self, calls: u64, threads: usize) -> f64 {
        let barrier = Barrier::new(threads);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let _entered = self.runtime.enter();
                        barrier.wait();
                        by_hand(in_turns(timed(Arc::clone(&self.contender), calls)))
                    })
                })
                .collect();
            let mean = 1.0 / threads.len() as f64;
            threads.into_iter().map(|thread| mean * thread.join().expect("no panics here")).sum()
        })
    }

    /// What [`COUNTED`] calls allocate.
    fn count(&self) -> Counted {
        let contender = Arc::clone(&self.contender);
        scheduler::run(&self.runtime, async move {
            repeat(&*contender, FEWEST).await;
            let counting = Counting::start();
            repeat(&*contender, COUNTED).await;
            counting.so_far()
        })
    }

    fn future_size(&self) -> usize {
        let _entered = self.runtime.enter();
        size_of_val(&self.contender.call(0))
    }
}

/// Somebody to wake, who is awake anyway.
struct Awake;

impl Wake for Awake {
    fn wake(self: Arc<Self>) {}
}

fn by_hand<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Awake));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
    }
}

/// Warms up with a twentieth of the calls, then times them: nanoseconds per call.
async fn timed(contender: Arc<impl Call>, calls: u64) -> f64 {
    repeat(&*contender, calls / 20).await;
    let start = Instant::now();
    repeat(&*contender, calls).await;
    start.elapsed().as_nanos() as f64 / calls as f64
}

async fn repeat(contender: &impl Call, calls: u64) {
    for request in 0..calls {
        // No operation of these cases fails.
        drop(black_box(contender.call(request).await));
    }
}

/// Makes `calls` calls of the contender called `name` and nothing else: the work that valgrind
/// watches. Whether there is such a contender.
pub fn single(name: &str, pending: bool, calls: u64) -> bool {
    let mut single = Single { name, pending, calls, found: false };
    adapters::visit(&mut single);
    single.found
}

struct Single<'a> {
    name: &'a str,
    pending: bool,
    calls: u64,
    found: bool,
}

impl Visitor for Single<'_> {
    fn visit<C: Contender>(&mut self) {
        if C::NAME != self.name {
            return;
        }
        self.found = true;
        if self.pending {
            self.make::<C, _>(&PendingOnce);
        } else {
            self.make::<C, _>(&Ready);
        }
    }
}

impl Single<'_> {
    fn make<C: Contender, O: Operation>(&self, operation: &O) {
        let bench = start::<C, O>(machine::current_thread(), operation);
        let (contender, calls) = (bench.contender, self.calls);
        scheduler::run(&bench.runtime, async move { repeat(&*contender, calls).await });
    }
}
