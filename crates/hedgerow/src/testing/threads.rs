//! The thread front: blocking calls on real threads, which a manual clock keeps in step.
//!
//! Of all the orders in which threads may run, this is one, and always the same: a thread that
//! starts or is woken runs until it waits, and time goes on when all of them wait.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};

use tokio_util::sync::CancellationToken;

use super::future::{Outcome, ScriptRules, Stage, play};
use super::scenario::{Scenario, Scripted};
use super::timeline::Timeline;
use crate::attempt::Attempt;
use crate::threads::{Seat, Threads};

/// Runs the scenario to its end, or until nothing can happen any more.
pub(super) fn run(scenario: &Scenario) -> Timeline {
    let stage = Stage::new(scenario);
    let (troupe, over) = (Arc::new(Troupe::default()), CancellationToken::new());
    let work = {
        let (clock, scenario) = (stage.clock.clone(), scenario.clone());
        let (troupe, over) = (Arc::clone(&troupe), over.clone());
        move |attempt: Attempt| -> Outcome {
            let script = scenario.attempt_script(attempt.hedge_number());
            let played = over.run_until_cancelled(play(clock.clone(), script, attempt));
            troupe.block_on(played).unwrap_or(Err(Scripted::Never))
        }
    };
    let call = stage.hedge.blocking().on(Arc::new(InStep(Arc::clone(&troupe)))).prepare(work);
    let call = call.rules(ScriptRules(scenario.clone())).idempotent(scenario.idempotent);
    let (_, call) = call.placed();
    let call = call.settle().cancel_on(&stage.token).into_future();
    let timeline = stage.run(pin!(call), || troupe.settle());
    over.cancel();
    troupe.join();
    timeline
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // Nothing panics under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads of one scripted call.
#[derive(Default)]
struct Troupe {
    /// How many of them do not wait.
    running: Mutex<usize>,
    quiet: Condvar,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Troupe {
    fn one_more(&self) {
        *lock(&self.running) += 1;
    }

    fn one_less(&self) {
        let mut running = lock(&self.running);
        *running -= 1;
        if *running == 0 {
            self.quiet.notify_all();
        }
    }

    /// Returns when all of them wait or have ended.
    fn settle(&self) {
        let running = lock(&self.running);
        drop(self.quiet.wait_while(running, |running| *running > 0));
    }

    /// Runs a future on one of the threads, which waits whenever the future does.
    fn block_on<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let mut future = pin!(future);
        let member = Arc::new(Member {
            troupe: Arc::clone(self),
            state: Mutex::new(State::Runs),
            cue: Condvar::new(),
        });
        let waker = Waker::from(Arc::clone(&member));
        let mut cx = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => member.wait(),
            }
        }
    }

    fn join(&self) {
        let handles = std::mem::take(&mut *lock(&self.handles));
        for handle in handles {
            handle.join().expect("a job catches its panics");
        }
    }
}

/// One of the threads.
struct Member {
    troupe: Arc<Troupe>,
    state: Mutex<State>,
    cue: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// Woken since it was last polled.
    Woken,
    Waits,
}

impl Member {
    fn wait(&self) {
        let mut state = lock(&self.state);
        if *state == State::Runs {
            *state = State::Waits;
            self.troupe.one_less();
        }
        let waits = |state: &mut State| *state == State::Waits;
        let state_then = self.cue.wait_while(state, waits);
        *state_then.unwrap_or_else(PoisonError::into_inner) = State::Runs;
    }
}

impl Wake for Member {
    /// Counts the thread as running before it runs: whoever wakes it sees that it does.
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.state);
        if *state == State::Waits {
            self.troupe.one_more();
            self.cue.notify_all();
        }
        *state = State::Woken;
    }
}

/// Starts threads, each of which runs until it waits before anything else goes on.
struct InStep(Arc<Troupe>);

impl Threads for InStep {
    fn reserve(&self, _hedge: u8) -> io::Result<Seat> {
        let troupe = Arc::clone(&self.0);
        Ok(Box::new(move |job| {
            troupe.one_more();
            let member = Arc::clone(&troupe);
            let handle = thread::spawn(move || {
                job();
                member.one_less();
            });
            lock(&troupe.handles).push(handle);
            troupe.settle();
        }))
    }
}

impl fmt::Debug for InStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InStep").finish_non_exhaustive()
    }
}
