//! Where events go: to the observer, and to the log if somebody asked for one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{Event, EventKind};
use crate::options::Policy;
use crate::time::Moment;

/// Numbers observed calls. The only state that calls share; it decides nothing.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Debug)]
pub(super) struct Trace {
    call: u64,
    log: Option<Box<Vec<Event>>>,
}

impl Trace {
    pub(super) fn new(policy: &Policy, log: bool) -> Self {
        let call = match policy.observer {
            Some(_) => NEXT_CALL.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        Self {
            call,
            log: log.then(Box::default),
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.call
    }

    pub(super) fn tell(
        &mut self,
        policy: &Policy,
        attempt: Option<u8>,
        at: Moment,
        kind: EventKind,
    ) {
        if policy.observer.is_none() && self.log.is_none() {
            return;
        }
        let event = Event::new(self.call, attempt, at, kind);
        if let Some(log) = &mut self.log {
            log.push(event);
        }
        if let Some(observer) = &policy.observer {
            observer.event(&event);
        }
    }

    pub(super) fn log(&self) -> &[Event] {
        self.log.as_deref().map_or(&[], Vec::as_slice)
    }
}
