//! What bounds the extra load.
//!
//! A fixed delay alone doubles the load of a backend exactly when it is slow. A budget makes the
//! bound hold whatever the backend does: calls that complete pay in, hedges take out, and a
//! backend that stops completing calls stops funding hedges.

#[cfg(all(test, loom))]
mod models;
mod ratio;

use std::fmt;

pub use ratio::{ExtraLoad, RatioBudget};

/// Grants or refuses hedges.
///
/// A refusal is never a failure: the attempts that run go on. Shared between calls, clones and
/// policies by reference, so every method takes `&self`.
///
/// A retry around hedged calls multiplies with them: `tries` x (1 + `max_hedges`) attempts, if
/// everything fails. A retry that asks the same budget before each further try
/// ([`try_take`](Budget::try_take)) makes it a sum: one attempt, and as many more as the budget
/// grants.
pub trait Budget: fmt::Debug + Send + Sync {
    /// A call completed (with a value or a failure; not if its caller gave up).
    fn deposit(&self);

    /// Takes what one hedge costs. `false`: there is not enough, and nothing was taken.
    fn try_take(&self) -> bool;

    /// The same, for a hedge that may only use what others will hardly miss: for instance if at
    /// least half of what may be saved up is left.
    fn try_take_spare(&self) -> bool {
        self.try_take()
    }

    /// Gives back what [`try_take`](Budget::try_take) took, for a hedge that did not start.
    fn give_back(&self);

    /// How many hedges are saved up, with the fraction of the next one; `None` if nobody can say.
    fn level(&self) -> Option<f64> {
        None
    }
}
