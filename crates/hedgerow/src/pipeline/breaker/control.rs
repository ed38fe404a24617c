//! The state of a breaker, and how it is switched by hand.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use hedgerow_core::breaker::{BreakerState, SharedBreaker, Transition};
use hedgerow_core::{Moment, StrategyEventKind};

use crate::clock::{Tick, Time};
use crate::pipeline::layer::Place;

/// What all clones of a breaker share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) breaker: SharedBreaker,
    /// What its time is counted from.
    epoch: OnceLock<Instant>,
    /// The same by the system's ticks.
    first: OnceLock<Tick>,
    /// The latest pipeline it was built into that tells anybody: who is told of what is done by hand.
    place: Mutex<Option<Place>>,
}

impl Shared {
    pub(super) fn attach(&self, place: &Place) {
        if place.is_told() {
            let before = self.place().replace(place.clone());
            drop(before); // not under the lock
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        // Nothing panics under the lock.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What time it is, as the breaker counts.
    pub(super) fn now(&self, time: &Time) -> Moment {
        let now = time.clock().now();
        let epoch = self.epoch.get_or_init(|| now);
        Moment::from(now.saturating_duration_since(*epoch))
    }

    /// The same, or some milliseconds before, where that is cheaper.
    #[inline]
    pub(super) fn recent(&self, time: &Time) -> Moment {
        let Some(tick) = time.tick() else { return self.now(time) };
        let first = || Tick::of(*self.epoch.get_or_init(|| time.clock().now()));
        Moment::from(tick.since(*self.first.get_or_init(first)))
    }
}

/// What is told of a change.
pub(super) fn told(transition: Transition) -> StrategyEventKind {
    let Transition { state, open_for } = transition;
    StrategyEventKind::Breaker { state: state.name(), open_for }
}

/// Looks at a breaker and switches it by hand. Clones are for the same breaker.
///
/// What is done by hand is told to the observer of the latest pipeline with one that the breaker was
/// built into.
///
/// ```
/// use hedgerow::pipeline::{BreakerState, CircuitBreaker, Pipeline, PipelineError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let breaker = CircuitBreaker::default();
/// let control = breaker.control();
/// let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
/// control.isolate(); // the target is down for maintenance
/// let refused = pipeline.execute(async |_| Ok::<_, String>(42)).await;
/// assert!(matches!(refused, Err(PipelineError::Rejected(_))));
/// control.reset();
/// assert_eq!(control.state(), BreakerState::Closed);
/// # }
/// ```
#[derive(Clone)]
pub struct BreakerControl(Arc<Shared>);

impl BreakerControl {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The state it is in. One that is open and whose time is over becomes half-open with the next
    /// call.
    pub fn state(&self) -> BreakerState {
        self.0.breaker.state()
    }

    /// Lets nothing through until it is [reset](BreakerControl::reset).
    pub fn isolate(&self) {
        self.tell(self.0.breaker.isolate());
    }

    /// Closes it, with nothing counted.
    pub fn reset(&self) {
        self.tell(self.0.breaker.reset());
    }

    fn tell(&self, transition: Option<Transition>) {
        let Some(transition) = transition else { return };
        let place = self.0.place().clone();
        if let Some(place) = place {
            place.announce(told(transition));
        }
    }
}

impl fmt::Debug for BreakerControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerControl").field("state", &self.state()).finish()
    }
}
