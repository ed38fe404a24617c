//! What an execution carries through the strategies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, AttemptCounter, Shared};

/// What an execution carries through the strategies: which attempt runs next, and what the caller
/// said about it.
///
/// Strategies hand it on, changed or not. It is made on the stack; what few executions need (the
/// token, properties, a name) is behind one pointer.
#[derive(Debug, Clone)]
pub struct Context {
    attempt: Attempt,
    counter: Option<AttemptCounter>,
    /// Which execution, if anybody is told of it; 0 otherwise.
    execution: u64,
    /// How long whatever is around waits, counted from about now, in nanoseconds.
    within: u64,
    rest: Rest,
}

/// What is left of a context, in one word; see [`Label`](crate::attempt::Label).
///
/// The lower half says where among several targets the execution begins.
#[derive(Debug, Clone, Copy)]
struct Rest(u64);

impl Rest {
    const IDEMPOTENT: u64 = 1 << 32;
    /// It runs on where it is dropped.
    const DETACHED: u64 = 1 << 33;

    #[inline]
    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// Nothing is around that gives up.
const NO_LIMIT: u64 = u64::MAX;

impl Context {
    pub(crate) fn new(shared: Option<Shared>, execution: u64, idempotent: bool) -> Self {
        let attempt = match shared {
            Some(shared) => Attempt::tracked(0, 0, shared),
            None => Attempt::plain(0),
        };
        Self {
            attempt,
            counter: None,
            execution,
            within: NO_LIMIT,
            rest: Rest(if idempotent { Rest::IDEMPOTENT } else { 0 }),
        }
    }

    /// The attempt that runs next, as the work will see it.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Whether the work may run more than once. Strategies that repeat it do so only after a
    /// rejection if not, and never at the same time.
    pub fn is_idempotent(&self) -> bool {
        self.rest.has(Rest::IDEMPOTENT)
    }

    /// How long whatever is around waits, at most, if there is a limit that is known.
    pub fn within(&self) -> Option<Duration> {
        (self.within != NO_LIMIT).then(|| Duration::from_nanos(self.within))
    }

    /// The number of the attempt that runs next.
    pub(crate) fn number(&self) -> u32 {
        self.attempt.number()
    }

    /// Where among several targets the execution begins.
    #[expect(clippy::cast_possible_truncation, reason = "it takes the number out of the word")]
    pub(crate) fn start(&self) -> u32 {
        self.rest.0 as u32
    }

    /// The same, beginning somewhere among several targets.
    #[cold]
    pub(crate) fn starting_anywhere(self) -> Self {
        Self { rest: Rest(self.rest.0 | u64::from(fastrand::u32(..))), ..self }
    }

    pub(crate) fn execution(&self) -> Option<u64> {
        (self.execution != 0).then_some(self.execution)
    }

    pub(crate) fn counter(&self) -> Option<&AttemptCounter> {
        self.counter.as_ref()
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.attempt.shared()
    }

    /// The number of the next attempt, after `started` of those in here.
    pub(crate) fn next_number(&self, started: u32) -> u32 {
        let counted = self.counter.as_ref().map(AttemptCounter::next);
        counted.unwrap_or_else(|| self.attempt.number().saturating_add(started))
    }

    /// The same for another try, with a number that no attempt has yet. For strategies of one's
    /// own; one that has waited says how [long](Context::later), too.
    #[must_use]
    pub fn next_try(&self) -> Self {
        self.again(self.next_number(1), Duration::ZERO)
    }

    /// The same for a run that begins so much later: strategies inside then know what is left of the
    /// limits around. For strategies of one's own that wait.
    #[must_use]
    pub fn later(&self, waited: Duration) -> Self {
        let mut later = self.clone();
        later.pass(waited);
        later
    }

    /// The same for another try, which has this number and begins so much later.
    pub(crate) fn again(&self, number: u32, later: Duration) -> Self {
        let mut again = self.later(later);
        again.renumber(number);
        again
    }

    /// So much time has passed.
    fn pass(&mut self, time: Duration) {
        if self.within != NO_LIMIT {
            let time = u64::try_from(time.as_nanos()).unwrap_or(NO_LIMIT);
            self.within = self.within.saturating_sub(time);
        }
    }

    /// The attempt has another number.
    #[inline]
    pub(crate) fn renumber(&mut self, number: u32) {
        self.attempt.label = self.attempt.label.renumbered(number);
    }

    /// Whether it runs on where it is dropped.
    pub(crate) fn is_detached(&self) -> bool {
        self.rest.has(Rest::DETACHED)
    }

    /// It runs on where it is dropped: nobody tells it to stop.
    #[cold]
    pub(crate) fn detach(&mut self) {
        self.rest.0 |= Rest::DETACHED;
        if let Some(shared) = self.attempt.shared() {
            let mut quiet = Shared::new(shared.deadline, shared.operation.clone());
            quiet.properties = shared.properties.clone();
            self.attempt = self.attempt.sharing(quiet);
        }
    }

    /// The same for an attempt of a hedged call, which begins so long after the first.
    pub(crate) fn hedged(&self, attempt: Attempt, after: Duration) -> Self {
        let label = attempt.label.sent_like(self.attempt.label);
        let attempt = Attempt { label, ..attempt };
        let Self { execution, within, rest, .. } = *self;
        let counter = self.counter.clone();
        let mut hedged = Self { attempt, counter, execution, within, rest };
        hedged.pass(after);
        hedged
    }

    /// The same inside a limit that starts now.
    #[inline]
    pub(crate) fn limited(&self, limit: Duration) -> Self {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT);
        Self { within: self.within.min(limit), ..self.clone() }
    }

    /// The same, where attempts count together although they run at the same time.
    pub(crate) fn counted(&self) -> Self {
        let mut counted = self.clone();
        let first = self.attempt.number().saturating_add(1);
        counted.counter.get_or_insert_with(|| AttemptCounter::starting_at(first));
        counted
    }

    /// It has a token that whoever gives up can fire for what is inside alone; `None` if
    /// nobody asked for tokens.
    #[inline]
    pub(crate) fn guard(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<CancellationToken> {
        let shared = self.attempt.shared()?;
        let deadline = match (shared.deadline, deadline()) {
            (Some(outer), Some(inner)) => Some(outer.min(inner)),
            (outer, inner) => outer.or(inner),
        };
        let mut inner = Shared::new(deadline, shared.operation.clone());
        inner.token = shared.token.child_token();
        inner.properties = shared.properties.clone();
        let token = inner.token.clone();
        self.attempt = self.attempt.sharing(inner);
        Some(token)
    }

    /// The same for one of several targets.
    pub(crate) fn at_target(&self, target: u16) -> Self {
        let mut there = self.clone();
        there.attempt.label = there.attempt.label.sent_to(target);
        there
    }
}

impl Attempt {
    /// The same attempt with another token, other properties.
    fn sharing(&self, shared: Shared) -> Self {
        Self { shared: Some(Arc::new(shared)), label: self.label }
    }
}

impl AttemptCounter {
    fn starting_at(number: u32) -> Self {
        Self(Arc::new(AtomicU32::new(number)))
    }

    /// The number that is next.
    pub(crate) fn upcoming(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
