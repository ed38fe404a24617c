//! Scripted calls that keep account of everything they make: attempts, hooks, outcomes, tokens.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use hedgerow::{
    Attempt, CancellationToken, Cancelled, Discarded, End, Event, EventKind, Hedge, ManualClock,
    NextAction, NextHedge, Rules,
};

use crate::support::{lock, ms};

/// How an attempt ends that is not told to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// With a value after so many milliseconds.
    Good(u64),
    /// With a handled error.
    Bad(u64),
    /// Not at all.
    Never,
}

/// What the first hedge does instead of the same work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Instead {
    /// It fails at once.
    Answer,
    /// The same as the work, as an action.
    Run,
    /// It does not start.
    Stop,
}

/// A scripted call.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) hedge: Hedge,
    pub(crate) script: Vec<Ends>,
    /// How long each hedge waits for its hook.
    pub(crate) hook: Option<u64>,
    pub(crate) cancel_at: Option<u64>,
    pub(crate) instead: Option<Instead>,
    pub(crate) spawned: bool,
}

impl Case {
    /// The hedges whose outcome is an answer of the generator, if they start.
    pub(crate) fn answered(&self) -> impl Iterator<Item = u8> {
        (self.instead == Some(Instead::Answer)).then_some(1).into_iter()
    }
}

/// How long an attempt goes on after it is told to stop.
const CLEANUP: Duration = ms(25);

#[derive(Debug, PartialEq)]
pub(crate) enum Failed {
    Attempt(u8),
    Cancelled,
}

impl From<Cancelled> for Failed {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

pub(crate) type Outcome = Result<u8, Failed>;

/// What became of everything, as it saw itself.
#[derive(Default)]
pub(crate) struct Seen {
    alive: BTreeMap<u8, usize>,
    /// Attempts that returned an outcome.
    pub(crate) produced: Vec<u8>,
    pub(crate) discarded: Vec<u8>,
    pub(crate) tokens: BTreeMap<u8, CancellationToken>,
    /// Hooks that are alive.
    pub(crate) hooks: usize,
}

impl Seen {
    /// How many attempts are alive.
    pub(crate) fn alive(&self) -> usize {
        self.alive.values().sum()
    }
}

pub(crate) type World = Arc<Mutex<Seen>>;

/// An attempt that is alive, from the moment it is made.
struct Alive(World, u8);

impl Alive {
    fn new(world: &World, number: u8) -> Self {
        *lock(world).alive.entry(number).or_default() += 1;
        Self(Arc::clone(world), number)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        *lock(&self.0).alive.entry(self.1).or_default() -= 1;
    }
}

/// A hook that is alive.
struct HookAlive(World);

impl HookAlive {
    fn new(world: &World) -> Self {
        lock(world).hooks += 1;
        Self(Arc::clone(world))
    }
}

impl Drop for HookAlive {
    fn drop(&mut self) {
        lock(&self.0).hooks -= 1;
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The work and the rules of a case.
#[derive(Clone)]
pub(crate) struct Play {
    case: Case,
    clock: ManualClock,
    world: World,
}

impl Play {
    pub(crate) fn new(case: &Case, clock: &ManualClock) -> Self {
        Self { case: case.clone(), clock: clock.clone(), world: World::default() }
    }

    pub(crate) fn world(&self) -> World {
        Arc::clone(&self.world)
    }

    /// The future of an attempt.
    pub(crate) fn attempt(&self, attempt: Attempt) -> Boxed<Outcome> {
        let number = attempt.hedge_number();
        let ends = self.case.script.get(usize::from(number)).copied();
        let (length, outcome) = match ends.unwrap_or(Ends::Never) {
            Ends::Good(after) => (ms(after), Ok(number)),
            Ends::Bad(after) => (ms(after), Err(Failed::Attempt(number))),
            Ends::Never => (Duration::MAX, Ok(number)),
        };
        let alive = Alive::new(&self.world, number);
        let token = attempt.token().expect("the call keeps tokens");
        lock(&self.world).tokens.insert(number, token);
        let clock = self.clock.clone();
        Box::pin(async move {
            let mut work = clock.sleep(length);
            let mut told = Box::pin(async {
                attempt.cancelled().await;
                clock.sleep(CLEANUP).await;
            });
            poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => told.as_mut().poll(cx),
            })
            .await;
            lock(&alive.0).produced.push(number);
            outcome
        })
    }
}

impl Rules<u8, Failed> for Play {
    type Action = Boxed<Outcome>;
    type Hook = Boxed<()>;

    fn next_action(
        &mut self,
        next: &NextHedge<'_>,
    ) -> Result<NextAction<Self::Action, u8, Failed>, Failed> {
        let number = next.hedge_number();
        Ok(match self.case.instead.filter(|_| number == 1) {
            None => NextAction::Repeat,
            Some(Instead::Answer) => NextAction::Answer(Err(Failed::Attempt(number))),
            Some(Instead::Run) => NextAction::Run(self.attempt(next.attempt().clone())),
            Some(Instead::Stop) => NextAction::Stop,
        })
    }

    fn on_hedge(&mut self, _next: &NextHedge<'_>) -> Option<Self::Hook> {
        let wait = self.clock.sleep(ms(self.case.hook?));
        let alive = HookAlive::new(&self.world);
        Some(Box::pin(async move {
            let _alive = alive;
            wait.await;
        }))
    }

    fn on_discard(&mut self, discarded: Discarded<u8, Failed>) {
        lock(&self.world).discarded.push(discarded.hedge_number);
    }
}

/// How this attempt ended, each time it is said to.
pub(crate) fn ends(events: &[Event], attempt: u8) -> Vec<End> {
    let end = |event: &Event| match event.kind {
        EventKind::Ended { end, .. } if event.attempt == Some(attempt) => Some(end),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}
