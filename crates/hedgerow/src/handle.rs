//! A policy that can be changed while calls are made through it.

use std::sync::{Arc, PoisonError, RwLock};

use crate::hedge::Hedge;

/// Holds a policy that can be changed at any time: by an operator, or when a file changes.
///
/// Every call takes the policy that is there when it is made, and ends under it: a change starts,
/// stops and loses nothing that is under way. Clones share the policy.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::{Hedge, PolicyHandle};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # async fn load() -> Result<u32, String> { Ok(42) }
/// let policy = PolicyHandle::new(Hedge::adaptive());
/// assert_eq!(policy.get().call(|_| load()).await, Ok(42));
///
/// policy.set(Hedge::adaptive().max_extra_load(0.02)); // it goes on with what was learned
/// policy.set(Hedge::adaptive().max_hedges(0)); // off, and still learning
/// # }
/// ```
///
/// A configuration that is refused never gets here, so the last good one stays in force:
/// `policy.set(config.hedge())`, where `config` is a `HedgeConfig` that was just read.
#[derive(Clone, Debug)]
pub struct PolicyHandle(Arc<RwLock<Arc<Hedge>>>);

impl PolicyHandle {
    /// Holds this policy.
    pub fn new(hedge: Hedge) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(hedge))))
    }

    /// The policy that is in force now.
    pub fn get(&self) -> Arc<Hedge> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts this policy in force for every later call. It [takes over](Hedge::taking_over) what the
    /// one before has learned.
    pub fn set(&self, hedge: Hedge) {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let hedge = Arc::new(hedge.taking_over(&policy));
        let _earlier = std::mem::replace(&mut *policy, hedge);
        // Dropped after the lock: whoever drops a policy last may have much to drop.
        drop(policy);
    }
}
