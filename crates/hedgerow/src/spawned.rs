//! Spawned placement on tokio's runtime.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::attempt::Attempt;
use crate::call::HedgedCall;
use crate::drive::{SharedRules, SpawnedAttempt, Spawner, Task, Work};
use crate::hedge::Hedge;
use crate::rules::Rules;

/// Tokio's runtime: the one in whose context the call is polled.
#[derive(Clone, Copy, Debug)]
struct TokioSpawner;

impl Spawner for TokioSpawner {
    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }
}

impl<P, F, R, Fut> HedgedCall<P, F, R>
where
    P: Borrow<Hedge>,
    F: FnMut(Attempt) -> Fut,
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    /// Runs every attempt as a task of its own on tokio's runtime (feature `tokio`).
    ///
    /// For work that computes between its awaits, so that attempts use more than one core, and for
    /// losers that are to run on ([`Losers::Detach`](hedgerow_core::Losers::Detach)). Dropping the
    /// call stops the tasks, unless the losers are detached. An attempt that is ready at once is
    /// seen to be so one turn later. Say this last: rules that are set before it are also used by
    /// attempts that outlive the call.
    ///
    /// # Panics
    ///
    /// Awaiting it outside a tokio runtime panics, as `tokio::spawn` does; see
    /// [`spawned_on`](HedgedCall::spawned_on) for other executors.
    pub fn spawned(
        self,
    ) -> HedgedCall<P, impl FnMut(Attempt) -> SpawnedAttempt<Fut, R>, SharedRules<R>>
    where
        Fut: Send + 'static,
        Fut::Value: Send + 'static,
        Fut::Error: Send + 'static,
        R: Send + 'static,
        R::Action: Send + 'static,
    {
        self.spawned_on(Arc::new(TokioSpawner))
    }
}
