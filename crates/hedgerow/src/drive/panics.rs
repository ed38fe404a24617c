//! Panics of the caller's code: the first one goes on, and none is the end of the program.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs steps one after the other, and keeps the first panic.
#[derive(Default)]
pub(super) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    pub(super) fn catch(&mut self, step: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(step)) {
            match &self.0 {
                None => self.0 = Some(panic),
                Some(_) => forget(panic),
            }
        }
    }

    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Lets the first panic go on, if there was one.
    pub(super) fn resume(self) {
        if let Some(panic) = self.0 {
            resume_unwind(panic);
        }
    }

    /// The same, unless there was `another` before them all, or one is on its way through the
    /// thread: that must be neither replaced nor turned into an abort of the program.
    pub(super) fn resume_unless(self, another: bool) {
        if !another && !std::thread::panicking() {
            self.resume();
        } else if let Some(panic) = self.0 {
            forget(panic);
        }
    }
}

/// A payload's destructor may panic, too: let it be.
fn forget(panic: Box<dyn Any + Send>) {
    std::mem::forget(panic);
}

/// The last step of something that is dropped, perhaps because of `another` panic.
pub(crate) fn at_last(another: bool, step: impl FnOnce()) {
    let mut panics = FirstPanic::default();
    panics.catch(step);
    panics.resume_unless(another);
}

/// A step over whose panic nobody could be told.
pub(crate) fn quietly(step: impl FnOnce()) {
    at_last(true, step);
}
