//! Where an attempt that outlives its call reports its end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hedgerow_core::{Event, Moment, Observer};

use crate::clock::Time;

/// What a detached attempt needs to tell the observer that it has ended.
pub(crate) struct Late {
    pub(crate) call: u64,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) time: Time,
    /// What the call's moments are counted from.
    pub(crate) origin: Instant,
    pub(crate) started: Moment,
    /// It has told already.
    pub(crate) told: AtomicBool,
}

impl Late {
    /// The attempt has ended. Told once, whoever sees it first.
    pub(crate) fn tell(&self, attempt: u8) {
        if self.told.swap(true, Ordering::AcqRel) {
            return;
        }
        let now = self.time.clock().now().saturating_duration_since(self.origin);
        let now = Moment::from(now);
        self.observer.event(&Event::late(self.call, attempt, now, now.since(self.started)));
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("call", &self.call).finish_non_exhaustive()
    }
}
