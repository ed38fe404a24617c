//! An executor that runs tasks only when it is told to.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

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

    /// Polls woken tasks until none is. Says whether any was.
    pub fn run(&self) -> bool {
        let mut any = false;
        loop {
            let woken: Vec<_> =
                lock(&self.tasks).iter().filter(|task| task.woken.take()).cloned().collect();
            if woken.is_empty() {
                return any;
            }
            any = true;
            for task in &woken {
                self.poll(task);
            }
        }
    }

    /// How many tasks have not ended.
    pub fn alive(&self) -> usize {
        lock(&self.tasks).len()
    }

    fn poll(&self, spawned: &Arc<Spawned>) {
        let Some(mut task) = lock(&spawned.task).take() else {
            return;
        };
        let waker = Waker::from(Arc::clone(&spawned.woken));
        match Pin::new(&mut task).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => *lock(&spawned.task) = Some(task),
            Poll::Ready(()) => lock(&self.tasks).retain(|other| !Arc::ptr_eq(other, spawned)),
        }
    }
}

impl Spawner for ManualExecutor {
    fn spawn(&self, task: Task) {
        let spawned = Arc::new(Spawned { woken: Arc::default(), task: Mutex::new(Some(task)) });
        lock(&self.tasks).push(Arc::clone(&spawned));
        self.poll(&spawned);
    }
}

impl std::fmt::Debug for ManualExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualExecutor").field("alive", &self.alive()).finish()
    }
}
