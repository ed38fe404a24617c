//! Runs calls the way a server does: inside a spawned task.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

thread_local! {
    static TURN: Cell<u64> = const { Cell::new(1) };
}

/// Number of the scheduler's latest poll of an [`in_turns`] task on this thread.
pub fn turn() -> u64 {
    TURN.get()
}

/// Wraps the root future of a task so that each of the scheduler's polls is a new [`turn`].
pub async fn in_turns<F: Future>(task: F) -> F::Output {
    let mut task = pin!(task);
    poll_fn(|cx| {
        TURN.set(TURN.get() + 1);
        task.as_mut().poll(cx)
    })
    .await
}

/// Spawns `task`, taking turns.
pub fn spawn<F>(runtime: &Runtime, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    runtime.spawn(in_turns(task))
}

/// Spawns `task` and waits for it. (The future given to `block_on` itself would look at the
/// runtime's drivers at each wake, which a server's tasks do not.)
pub fn run<F>(runtime: &Runtime, task: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    runtime.block_on(spawn(runtime, task)).expect("a measured task neither panics nor is aborted")
}
