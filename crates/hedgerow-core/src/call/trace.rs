//! Where events go: to the observer, and to the log if somebody asked for one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::event::{Event, EventKind};
use crate::options::Policy;
use crate::time::Moment;

/// Numbers observed calls. The only state that calls share; it decides nothing.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

/// Nothing at all, for a call that nobody watches.
#[derive(Clone, Debug)]
pub(super) struct Trace(Option<Box<Watched>>);

#[derive(Clone, Debug)]
struct Watched {
    call: u64,
    starts: Vec<Moment>,
    /// The attempts whose end was told, a bit each.
    ended: u16,
    log: Option<Vec<Event>>,
}

impl Trace {
    #[inline]
    pub(super) fn new(policy: &Policy, log: bool) -> Self {
        if policy.observer.is_none() && !log {
            return Self(None);
        }
        let call = match policy.observer {
            Some(_) => NEXT_CALL.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        Self(Some(Box::new(Watched {
            call,
            starts: Vec::new(),
            ended: 0,
            log: log.then(Vec::new),
        })))
    }

    pub(super) fn id(&self) -> u64 {
        self.0.as_ref().map_or(0, |watched| watched.call)
    }

    pub(super) fn started_at(&self, attempt: u8) -> Option<Moment> {
        self.0.as_ref()?.starts.get(usize::from(attempt)).copied()
    }

    /// Whether the attempt's end was told; an observer may have panicked over it.
    pub(super) fn end_told(&self, attempt: u8) -> bool {
        self.0.as_ref().is_some_and(|watched| watched.ended & (1 << attempt) != 0)
    }

    /// How long the attempt has run; nobody asks where nobody watches.
    pub(super) fn ran(&self, attempt: u8, now: Moment) -> Duration {
        self.started_at(attempt).map_or(Duration::ZERO, |start| now.since(start))
    }

    #[inline]
    pub(super) fn tell(
        &mut self,
        policy: &Policy,
        attempt: Option<u8>,
        at: Moment,
        kind: EventKind,
    ) {
        if let Some(watched) = &mut self.0 {
            watched.tell(policy, attempt, at, kind);
        }
    }

    pub(super) fn log(&self) -> &[Event] {
        self.0.as_ref().and_then(|watched| watched.log.as_deref()).unwrap_or_default()
    }
}

impl Watched {
    fn tell(&mut self, policy: &Policy, attempt: Option<u8>, at: Moment, kind: EventKind) {
        match (kind, attempt) {
            (EventKind::Started { .. }, _) => self.starts.push(at),
            (EventKind::Ended { .. }, Some(attempt)) => self.ended |= 1 << attempt,
            _ => {}
        }
        let event = Event::new(self.call, attempt, at, kind);
        if let Some(log) = &mut self.log {
            log.push(event);
        }
        if let Some(observer) = &policy.observer {
            observer.event(&event);
        }
    }
}
