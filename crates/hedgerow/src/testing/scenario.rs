//! A policy and a script of attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hedgerow_core::{Budget, Moment, Pushback};

use super::timeline::Timeline;
use super::{engine, future, stream, threads};
use crate::hedge::Hedge;

/// A policy and a script of attempts, to be run in virtual time.
#[derive(Clone, Debug)]
#[must_use]
pub struct Scenario {
    pub(super) hedge: Hedge,
    pub(super) script: Vec<Script>,
    pub(super) tokens: Option<u32>,
    pub(super) idempotent: bool,
    pub(super) cancel_at: Option<Duration>,
}

/// What one attempt does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How long after its own start it ends.
    pub after: Duration,
    /// How it ends.
    pub outcome: Scripted,
    /// The value, or the name of the error.
    pub value: Option<String>,
    /// How long it goes on after it is told to stop, where losers are joined. It ends at its own
    /// scripted end if that is earlier.
    pub cleanup: Duration,
    /// What its target asks for beside the outcome, if it does.
    pub pushback: Option<Pushback>,
}

/// How a scripted attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripted {
    /// With a value that is accepted.
    Ok,
    /// With an error that is handled.
    Error,
    /// With a value that the predicate handles.
    Bad,
    /// With an error that is not handled.
    Fatal,
    /// With an error that says that the work never started.
    Rejected,
    /// Never.
    Never,
    /// With a panic.
    Panic,
}

impl Scripted {
    /// The name used in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Bad => "bad",
            Self::Fatal => "fatal",
            Self::Rejected => "rejected",
            Self::Never => "never",
            Self::Panic => "panic",
        }
    }
}

/// What drives a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Front {
    /// The pure engine, by hand.
    Engine,
    /// Futures on a manual clock.
    Async,
    /// Streams of one item each, on a manual clock.
    Stream,
    /// Threads, which a manual clock keeps in step.
    Blocking,
}

impl Script {
    /// An attempt that ends like this.
    pub fn new(after: Duration, outcome: Scripted, value: Option<String>) -> Self {
        Self { after, outcome, value, cleanup: Duration::ZERO, pushback: None }
    }

    /// An attempt that returns this value.
    pub fn ok(after: Duration, value: &str) -> Self {
        Self::new(after, Scripted::Ok, Some(value.to_owned()))
    }

    /// An attempt that fails with a handled error.
    pub fn error(after: Duration, name: &str) -> Self {
        Self::new(after, Scripted::Error, Some(name.to_owned()))
    }

    /// An attempt that never ends.
    pub fn never() -> Self {
        Self::new(Duration::MAX, Scripted::Never, None)
    }

    /// How long it goes on after it is told to stop, where losers are joined.
    #[must_use]
    pub fn cleanup(mut self, cleanup: Duration) -> Self {
        self.cleanup = cleanup;
        self
    }

    /// What its target asks for beside the outcome.
    #[must_use]
    pub fn pushback(mut self, pushback: Option<Pushback>) -> Self {
        self.pushback = pushback;
        self
    }

    /// How long it runs by itself.
    pub(super) fn length(&self) -> Duration {
        if self.outcome == Scripted::Never { Duration::MAX } else { self.after }
    }
}

impl Scenario {
    /// No attempts yet: an attempt past the script never ends.
    pub fn new(hedge: Hedge) -> Self {
        Self { hedge, script: Vec::new(), tokens: None, idempotent: true, cancel_at: None }
    }

    /// The next attempt.
    pub fn attempt(mut self, script: Script) -> Self {
        self.script.push(script);
        self
    }

    /// The attempts.
    pub fn script(mut self, script: Vec<Script>) -> Self {
        self.script = script;
        self
    }

    /// How many hedges the budget grants in this call; `None` is no bound. Takes the place of the
    /// policy's own budget.
    pub fn tokens(mut self, tokens: Option<u32>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Whether the work may run more than once.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// When the caller cancels.
    pub fn cancel_at(mut self, cancel_at: Option<Duration>) -> Self {
        self.cancel_at = cancel_at;
        self
    }

    /// The policy.
    pub fn hedge(&self) -> &Hedge {
        &self.hedge
    }

    /// How many hedges the budget grants, if it is bounded.
    pub fn granted(&self) -> Option<u32> {
        self.tokens
    }

    /// What the attempts do.
    pub fn scripts(&self) -> &[Script] {
        &self.script
    }

    /// When the caller cancels, if it does.
    pub fn cancelled_at(&self) -> Option<Duration> {
        self.cancel_at
    }

    /// Whether the work may run more than once.
    pub fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Runs it. Takes no real time.
    pub fn run(&self, front: Front) -> Timeline {
        match front {
            Front::Engine => engine::run(self),
            Front::Async => future::run(self),
            Front::Stream => stream::run(self),
            Front::Blocking => threads::run(self),
        }
    }

    /// What this attempt does.
    pub(super) fn attempt_script(&self, attempt: u8) -> Script {
        self.script.get(usize::from(attempt)).cloned().unwrap_or_else(Script::never)
    }

    pub(super) fn cancel_moment(&self) -> Moment {
        self.cancel_at.map_or(Moment::NEVER, Moment::from)
    }

    /// The policy with the budget that the scenario grants.
    pub(super) fn budgeted(&self) -> Hedge {
        match self.tokens {
            Some(tokens) => self.hedge.clone().budget(Arc::new(Tokens::new(tokens))),
            None => self.hedge.clone(),
        }
    }
}

/// A budget of a fixed number of hedges.
#[derive(Debug)]
pub struct Tokens(AtomicU32);

impl Tokens {
    /// Grants this many hedges.
    pub fn new(tokens: u32) -> Self {
        Self(AtomicU32::new(tokens))
    }

    /// How many it would still grant.
    pub fn left(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Budget for Tokens {
    fn deposit(&self) {}

    fn try_take(&self) -> bool {
        let take = |tokens: u32| tokens.checked_sub(1);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    fn give_back(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
