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
mod settings;
#[cfg(all(test, not(loom)))]
mod tests;
mod window;

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

pub use settings::{BreakerSettings, FailureRatio, OpenFor};

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};
use crate::time::Moment;
use window::Window;

/// The state of a [`Breaker`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BreakerState {
    /// Calls go through, and are counted.
    Closed,
    /// No call goes through until the open time is over.
    Open,
    /// A few calls go through, to see how they end.
    HalfOpen,
    /// No call goes through until somebody resets it.
    Isolated,
}

impl BreakerState {
    const ALL: [Self; 4] = [Self::Closed, Self::Open, Self::HalfOpen, Self::Isolated];

    /// The word used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::Isolated => "isolated",
        }
    }
}

/// A call that was let through. Say how it ended, or that nobody knows: [`Breaker::succeeded`],
/// [`Breaker::failed`], [`Breaker::forget`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a probe that is not given back is missed until its lease is over"]
pub struct Ticket {
    turn: u64,
    /// Its number, if it is a probe.
    probe: Option<NonZeroU64>,
}

impl Ticket {
    /// Whether the call is one of the few that go through while the breaker is half-open.
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

/// A call that was not let through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The state in which the breaker refused.
    pub state: BreakerState,
    /// After how long it may be worth another try, if anybody can say.
    pub retry_after: Option<Duration>,
}

/// The breaker changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state that it is in now.
    pub state: BreakerState,
    /// For how long it stays open, if it opened for a time.
    pub open_for: Option<Duration>,
}

/// A circuit breaker.
pub struct Breaker {
    settings: BreakerSettings,
    /// The turn, and the state in the two lowest bits.
    turn: AtomicU64,
    window: Window,
    /// Failures one after the other, in the lower half; the turn they belong to in the upper.
    row: AtomicU64,
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
        let (turn, row) = (AtomicU64::new(pack(1, BreakerState::Closed)), AtomicU64::new(0));
        Self { settings, turn, window, row, rest: Mutex::new(Rest::default()) }
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

    /// Whether it matters when a call that goes well has ended: what else [`succeeded`](Self::succeeded)
    /// is given is not looked at.
    pub fn needs_time(&self, ticket: &Ticket) -> bool {
        self.settings.ratio.is_some() || ticket.is_probe()
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
                self.row_ends(turn);
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
            trips |= self.row_grows(turn) >= most;
        }
        if !trips {
            return None;
        }
        let mut rest = self.lock();
        self.is_closed(turn).then(|| self.open(&mut rest, now))
    }

    /// Nobody knows how the call would have ended: a probe makes room for another.
    pub fn forget(&self, ticket: Ticket) {
        if let Some(number) = ticket.probe {
            self.lock().probes.retain(|probe| probe.number != number);
        }
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
        let mut rest = self.lock();
        if self.turn.load(Ordering::Acquire) != pack(turn, BreakerState::HalfOpen) {
            return None;
        }
        let place = rest.probes.iter().position(|probe| probe.number == number);
        let probe = rest.probes.swap_remove(place?);
        if probe.lease <= now {
            return None; // it was given up
        }
        if failed {
            return Some(self.open(&mut rest, now));
        }
        rest.succeeded += 1;
        (rest.succeeded >= self.settings.probes).then(|| self.close(&mut rest))
    }

    fn open(&self, rest: &mut Rest, now: Moment) -> Transition {
        rest.opened = rest.opened.saturating_add(1);
        let open_for = self.settings.open_for.after(rest.opened);
        rest.until = now.after(open_for);
        self.turn_to(rest, BreakerState::Open);
        Transition { state: BreakerState::Open, open_for: Some(open_for) }
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

    /// One more failure in a row: how many there are.
    fn row_grows(&self, turn: u64) -> u32 {
        self.row(turn, |length| length.saturating_add(1))
    }

    /// A success ends the row.
    fn row_ends(&self, turn: u64) {
        if self.row.load(Ordering::Relaxed) & ROW != 0 {
            self.row(turn, |_| 0);
        }
    }

    /// Changes the length of the row, if it is of this turn or an earlier one.
    fn row(&self, turn: u64, change: impl Fn(u32) -> u32) -> u32 {
        let own = turn << 32;
        let mut seen = self.row.load(Ordering::Relaxed);
        loop {
            let (theirs, length) = (seen & !ROW, u32::try_from(seen & ROW).unwrap_or(u32::MAX));
            let ahead = theirs.wrapping_sub(own);
            if theirs != own && ahead < 1 << 63 {
                return 0; // somebody is further on: this comes too late
            }
            let length = change(if theirs == own { length } else { 0 });
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let next = own | u64::from(length);
            match self.row.compare_exchange_weak(seen, next, success, failure) {
                Ok(_) => return length,
                Err(other) => seen = other,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rest> {
        // A generator of open times that panics leaves the state as it was.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lower half of a word.
const ROW: u64 = u32::MAX as u64;

fn pack(turn: u64, state: BreakerState) -> u64 {
    let index = BreakerState::ALL.iter().position(|each| *each == state).unwrap_or(0);
    turn << 2 | index as u64
}

fn unpack(word: u64) -> (u64, BreakerState) {
    (word >> 2, BreakerState::ALL[usize::try_from(word & 3).unwrap_or(0)])
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("state", &self.state())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
