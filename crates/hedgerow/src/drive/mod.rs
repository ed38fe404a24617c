//! The async front: drives the engine's `Call` with futures.
//!
//! [`future`] is the fast path: the primary alone, nothing allocated, no clock read before the
//! first `Pending`. [`race`] is everything else, behind one box that is made when something is to
//! be decided: a hedge is due, an attempt failed, or somebody watches the call.

mod attempts;
mod future;
mod launch;
mod leave;
pub(crate) mod panics;
mod race;
mod rest;
mod slots;
mod spawn;

use std::future::Future;
use std::time::Duration;

pub use future::Hedged;
pub(crate) use leave::Ending;
pub use spawn::{SharedRules, SpawnedAttempt, Spawner, Task};

use crate::attempt::Attempt;

/// The future of an attempt: any future of a `Result`. Implemented for all of them.
pub trait Work: Future<Output = Result<Self::Value, Self::Error>> {
    /// The value of a good outcome.
    type Value;
    /// The error of a bad one.
    type Error;
}

impl<F, T, E> Work for F
where
    F: Future<Output = Result<T, E>> + ?Sized,
{
    type Value = T;
    type Error = E;
}

/// Begins attempts: any closure that makes the future of one.
pub trait Begin<Fut> {
    /// The future of this attempt, which begins so long after the call.
    fn begin(&mut self, attempt: Attempt, after: Duration) -> Fut;
}

impl<F, Fut> Begin<Fut> for F
where
    F: FnMut(Attempt) -> Fut,
{
    #[inline]
    fn begin(&mut self, attempt: Attempt, _: Duration) -> Fut {
        self(attempt)
    }
}
