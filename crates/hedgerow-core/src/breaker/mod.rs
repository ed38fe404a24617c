//! A circuit breaker: when to let calls through, decided from how the latest ones ended.
//!
//! ```text
//!            too many failures              the open time is over
//!   closed ----------------------> open --------------------------> half-open
//!     ^                             ^                                 |    |
//!     |                             +--------- a probe fails ---------+    |
//!     +------------------------ all probes succeed ------------------------+
//! ```
//!
//! `isolate` opens it until `reset` closes it. Time comes in as a value. While it is closed and stays
//! so, nothing is locked; what changes its state is decided under a lock, so that it changes once.
//!
//! Each change begins a *turn*. A call is let through with a ticket of the turn that it came in, and
//! counts only as long as that lasts: late results of an earlier turn neither open nor close the
//! breaker, nor take a probe's place.

#[cfg(all(test, loom))]
mod models;
mod row;
mod settings;
mod shared;
#[cfg(all(test, not(loom)))]
mod slow;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;
mod window;

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

pub use settings::{BreakerSettings, FailureRatio, OpenFor};
pub use shared::SharedBreaker;

pub use state::{BreakerState, NeedsTime, Refused, Ticket, Transition};

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};
use crate::time::Moment;
use row::Row;
use state::{pack, unpack};
use window::Window;

/// From this window on, a call that went well may be counted some milliseconds too early.
const ROUGH_FROM: Duration = Duration::from_secs(1);

/// A circuit breaker.
pub struct Breaker {
    settings: BreakerSettings,
    /// For what goes well, and is no probe.
    needs_time: NeedsTime,
    /// The turn, and the state in the two lowest bits.
    turn: AtomicU64,
    window: Window,
    row: Row,
    rest: Mutex<Rest>,
}

/// What matters while the breaker is not closed.
#[derive(Debug, Default)]
struct Rest {
    /// When the open time is over.
    until: Moment,
    /// How often it has opened since it was last closed.
    opened: u32,
    probes: Vec<Probe>,
    /// How many probes have been let through so far; their numbers.
    numbered: u64,
    succeeded: u32,
}

#[derive(Debug)]
struct Probe {
    number: NonZeroU64,
    lease: Moment,
}

#[expect(clippy::needless_pass_by_value, reason = "a ticket is used once")]
impl Breaker {
    /// Closed, with nothing counted.
    pub fn new(settings: BreakerSettings) -> Self {
        let window = Window::new(settings.window);
        window.begin(1);
        let (turn, row) = (AtomicU64::new(pack(1, BreakerState::Closed)), Row::default());
        let needs_time = match settings.ratio {
            None => NeedsTime::No,
            Some(_) if settings.window < ROUGH_FROM => NeedsTime::Exactly,
            Some(_) => NeedsTime::Roughly,
        };
        Self { settings, needs_time, turn, window, row, rest: Mutex::new(Rest::default()) }
    }

    /// How it is set.
    pub fn settings(&self) -> &BreakerSettings {
        &self.settings
    }

    /// The state that it is in. An open breaker whose time is over becomes half-open with the next
    /// call.
    pub fn state(&self) -> BreakerState {
        unpack(self.turn.load(Ordering::Acquire)).1
    }

    /// How exactly [`succeeded`](Self::succeeded) has to be told when this call has ended.
    #[inline]
    pub fn needs_time(&self, ticket: &Ticket) -> NeedsTime {
        if ticket.is_probe() { NeedsTime::Exactly } else { self.needs_time }
    }

    /// Lets a call through, or not.
    ///
    /// # Errors
    ///
    /// Why not. With the first call after the open time the breaker becomes half-open: that is told
    /// beside the ticket.
    #[inline]
    pub fn admit(
        &self,
        now: impl FnOnce() -> Moment,
    ) -> Result<(Ticket, Option<Transition>), Refused> {
        let (turn, state) = unpack(self.turn.load(Ordering::Acquire));
        match state {
            BreakerState::Closed => Ok((Ticket { turn, probe: None }, None)),
            BreakerState::Isolated => Err(Refused { state, retry_after: None }),
            BreakerState::Open | BreakerState::HalfOpen => self.probe(now()),
        }
    }

    /// Lets a probe through, if it is time for one and there is room.
    #[cold]
    fn probe(&self, now: Moment) -> Result<(Ticket, Option<Transition>), Refused> {
        let mut rest = self.lock();
        let (turn, state) = unpack(self.turn.load(Ordering::Acquire));
        let mut transition = None;
        let turn = match state {
            BreakerState::Closed => return Ok((Ticket { turn, probe: None }, None)),
            BreakerState::Isolated => return Err(Refused { state, retry_after: None }),
            BreakerState::Open if now < rest.until => {
                let never = rest.until.is_never();
                let retry_after = (!never).then(|| rest.until.since(now));
                return Err(Refused { state, retry_after });
            }
            BreakerState::Open => {
                rest.succeeded = 0;
                transition = Some(Transition { state: BreakerState::HalfOpen, open_for: None });
                self.turn_to(&mut rest, BreakerState::HalfOpen)
            }
            BreakerState::HalfOpen => turn,
        };
        rest.probes.retain(|probe| probe.lease > now);
        let busy = u32::try_from(rest.probes.len()).unwrap_or(u32::MAX);
        if busy.saturating_add(rest.succeeded) >= self.settings.probes {
            let free = rest.probes.iter().map(|probe| probe.lease).min();
            let free = free.filter(|free| !free.is_never());
            let retry_after = free.map(|free| free.since(now));
            return Err(Refused { state: BreakerState::HalfOpen, retry_after });
        }
        rest.numbered += 1;
        let number = NonZeroU64::new(rest.numbered).unwrap_or(NonZeroU64::MIN);
        let lease = now.after(self.settings.probe_lease);
        rest.probes.push(Probe { number, lease });
        Ok((Ticket { turn, probe: Some(number) }, transition))
    }

    /// The call ended well.
    #[inline]
    pub fn succeeded(&self, ticket: Ticket, now: Moment) -> Option<Transition> {
        let Ticket { turn, probe } = ticket;
        if let Some(probe) = probe {
            return self.probed(turn, probe, now, false);
        }
        if self.is_closed(turn) {
            if self.settings.ratio.is_some() {
                self.window.add(turn, now, false);
            }
            if self.settings.in_a_row.is_some() {
                self.row.ends(turn);
            }
        }
        None
    }

    /// The call failed.
    pub fn failed(&self, ticket: Ticket, now: Moment) -> Option<Transition> {
        let Ticket { turn, probe } = ticket;
        if let Some(probe) = probe {
            return self.probed(turn, probe, now, true);
        }
        if !self.is_closed(turn) {
            return None;
        }
        let mut trips = false;
        if let Some(ratio) = self.settings.ratio {
            self.window.add(turn, now, true);
            let sum = self.window.sum(turn, now);
            trips = sum.calls >= self.settings.min_throughput.into() && ratio.is_passed(sum);
        }
        if let Some(most) = self.settings.in_a_row {
            trips |= self.row.grows(turn) >= most;
        }
        if trips { self.open(pack(turn, BreakerState::Closed), now) } else { None }
    }

    /// Nobody knows how the call would have ended: a probe makes room for another.
    pub fn forget(&self, ticket: Ticket) {
        if let Some(number) = ticket.probe {
            self.make_room(number);
        }
    }

    fn make_room(&self, number: NonZeroU64) {
        self.lock().probes.retain(|probe| probe.number != number);
    }

    /// Opens it until it is reset. `None`: it was so already.
    pub fn isolate(&self) -> Option<Transition> {
        let mut rest = self.lock();
        (self.state() != BreakerState::Isolated).then(|| {
            self.turn_to(&mut rest, BreakerState::Isolated);
            Transition { state: BreakerState::Isolated, open_for: None }
        })
    }

    /// Closes it, with nothing counted. `None`: it was closed; what was counted is forgotten all the
    /// same.
    pub fn reset(&self) -> Option<Transition> {
        let mut rest = self.lock();
        let was = self.state();
        let transition = self.close(&mut rest);
        (was != BreakerState::Closed).then_some(transition)
    }

    /// A probe ended.
    #[cold]
    fn probed(
        &self,
        turn: u64,
        number: NonZeroU64,
        now: Moment,
        failed: bool,
    ) -> Option<Transition> {
        let own = pack(turn, BreakerState::HalfOpen);
        let mut rest = self.lock();
        if self.turn.load(Ordering::Acquire) != own {
            return None;
        }
        let place = rest.probes.iter().position(|probe| probe.number == number)?;
        let in_time = rest.probes[place].lease > now;
        if failed && in_time {
            drop(rest);
            // It keeps its place until it has opened, so that no other closes it meanwhile.
            let _place = Room(self, number);
            return self.open(own, now);
        }
        rest.probes.swap_remove(place);
        if !in_time {
            return None; // it was given up
        }
        rest.succeeded += 1;
        (rest.succeeded >= self.settings.probes).then(|| self.close(&mut rest))
    }

    /// Opens it, if it is still in this turn and state.
    ///
    /// How long for is the caller's code to say, which may look at the breaker, switch it by hand or
    /// panic: it runs without the lock and before anything has changed. What has changed meanwhile
    /// was sooner.
    #[cold]
    fn open(&self, own: u64, now: Moment) -> Option<Transition> {
        let is_own = || self.turn.load(Ordering::Acquire) == own;
        let opened = {
            let rest = self.lock();
            is_own().then(|| rest.opened.saturating_add(1))?
        };
        let open_for = self.settings.open_for.after(opened);
        let mut rest = self.lock();
        is_own().then(|| {
            rest.opened = opened; // as nobody else has, in this turn
            rest.until = now.after(open_for);
            self.turn_to(&mut rest, BreakerState::Open);
            Transition { state: BreakerState::Open, open_for: Some(open_for) }
        })
    }

    fn close(&self, rest: &mut Rest) -> Transition {
        rest.opened = 0;
        self.turn_to(rest, BreakerState::Closed);
        Transition { state: BreakerState::Closed, open_for: None }
    }

    /// Begins the next turn, in this state. Only under the lock.
    fn turn_to(&self, rest: &mut Rest, state: BreakerState) -> u64 {
        rest.probes.clear();
        let turn = unpack(self.turn.load(Ordering::Acquire)).0 + 1;
        if state == BreakerState::Closed {
            self.window.begin(turn);
        }
        self.turn.store(pack(turn, state), Ordering::Release);
        turn
    }

    fn is_closed(&self, turn: u64) -> bool {
        self.turn.load(Ordering::Acquire) == pack(turn, BreakerState::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, Rest> {
        // Nothing panics under the lock.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a probe's place back when it is dropped.
struct Room<'a>(&'a Breaker, NonZeroU64);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.make_room(self.1);
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("state", &self.state())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
