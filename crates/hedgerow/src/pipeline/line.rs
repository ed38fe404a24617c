//! A line in front of a number of slots: first come, first served.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Task, Poll};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// A slot. Dropping it hands it to whoever is first in the line.
pub(crate) type Slot<'p> = SemaphorePermit<'p>;

/// A number of slots, and the line of those who wait for one.
///
/// A slot that is given back belongs to the first in the line from that moment on, so nobody who
/// comes later can take it. Who leaves passes on what was theirs.
#[derive(Debug)]
pub(crate) struct Line {
    slots: Semaphore,
    waiting: AtomicUsize,
}

impl Line {
    /// As many slots, or as many as there can be.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = Semaphore::new(slots.min(Semaphore::MAX_PERMITS));
        Self { slots, waiting: AtomicUsize::new(0) }
    }

    /// Takes a free slot. There is none while anybody waits. Asks for no budget of tokio's tasks, so
    /// that a task that has used up its own is told the truth.
    #[inline]
    pub(crate) fn try_enter(&self) -> Option<Slot<'_>> {
        self.slots.try_acquire().ok()
    }

    /// Lines up, unless `most` wait already.
    pub(crate) fn line_up(&self, most: usize) -> Option<InLine<'_>> {
        let one_more = |waiting| (waiting < most).then(|| waiting + 1);
        self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        let counted = Counted(&self.waiting);
        Some(InLine { turn: Box::pin(self.slots.acquire()), line: self, _counted: counted })
    }

    /// How many slots are free.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        self.slots.available_permits()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }
}

/// A place in the line.
pub(crate) struct InLine<'p> {
    turn: Pin<Box<dyn Future<Output = Result<Slot<'p>, AcquireError>> + Send + 'p>>,
    line: &'p Line,
    _counted: Counted<'p>,
}

impl<'p> InLine<'p> {
    /// Ready when its turn has come. The first poll decides who is before whom.
    pub(crate) fn poll(&mut self, task: &mut Task<'_>) -> Poll<Slot<'p>> {
        let turn = self.turn.as_mut().poll(task);
        turn.map(|slot| slot.expect("nobody closes a line"))
    }

    /// Waits no longer. A task without budget is not told that its turn has come, so it looks once
    /// more whether a slot is free.
    pub(crate) fn leave(self) -> Option<Slot<'p>> {
        let Self { turn, line, _counted } = self;
        drop(turn);
        line.try_enter()
    }
}

impl fmt::Debug for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InLine").field("line", &self.line).finish_non_exhaustive()
    }
}

/// One of those who wait.
#[derive(Debug)]
struct Counted<'p>(&'p AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
