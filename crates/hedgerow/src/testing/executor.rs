//! An executor that runs tasks only when it is told to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::drive::{Spawner, Task};

/// An executor for tests: polls a task once when it is spawned, and after that only in
/// [`run`](ManualExecutor::run).
///
/// Deterministic: tasks are polled in the order in which they were spawned. Clones share the
/// tasks.
#[derive(Clone, Default)]
pub struct ManualExecutor {
    tasks: Arc<Mutex<Vec<Arc<Spawned>>>>,
}

struct Spawned {
    woken: Arc<Flag>,
    task: Mutex<Option<Task>>,
}

/// A waker that remembers that it was woken.
#[derive(Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    /// Whether it was woken since the last time it was asked.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // A task that panicked is gone; the list stays whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ManualExecutor {
    /// Without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Polls woken tasks until none is. Says whether any was. A task that panics is gone; the panic
    /// goes on, and the other woken tasks are polled by the next call.
    pub fn run(&self) -> bool {
        let mut any = false;
        loop {
            let tasks = lock(&self.tasks).clone();
            let mut polled = false;
            for task in &tasks {
                polled |= self.poll_woken(task);
            }
            if !polled {
                return any;
            }
            any = true;
        }
    }

    /// How many tasks have not ended.
    pub fn alive(&self) -> usize {
        lock(&self.tasks).len()
    }

    fn poll_woken(&self, spawned: &Arc<Spawned>) -> bool {
        // A task that is being polled right now keeps its wake for later.
        let Some(mut task) = lock(&spawned.task).take() else { return false };
        if !spawned.woken.take() {
            *lock(&spawned.task) = Some(task);
            return false;
        }
        let gone = Gone { executor: self, spawned };
        let waker = Waker::from(Arc::clone(&spawned.woken));
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *lock(&spawned.task) = Some(task);
            std::mem::forget(gone);
        }
        true
    }
}

/// Takes a task off the list when it has ended, or panicked.
struct Gone<'a> {
    executor: &'a ManualExecutor,
    spawned: &'a Arc<Spawned>,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        lock(&self.executor.tasks).retain(|other| !Arc::ptr_eq(other, self.spawned));
    }
}

impl Spawner for ManualExecutor {
    fn spawn(&self, task: Task) {
        let spawned = Arc::new(Spawned { woken: Arc::default(), task: Mutex::new(Some(task)) });
        lock(&self.tasks).push(Arc::clone(&spawned));
        Wake::wake_by_ref(&spawned.woken);
        self.poll_woken(&spawned);
    }
}

impl std::fmt::Debug for ManualExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualExecutor").field("alive", &self.alive()).finish()
    }
}
