//! Where attempts run.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread;

use hedgerow_core::Gate;

use super::park::Parker;
use crate::drive::{Spawner, Task};
use crate::extras::Room;

/// What a thread is given to do: one attempt, from its start to its end.
pub type Job = Box<dyn FnOnce() + Send>;

/// A thread that is there for one attempt: called with the job, it has it run and returns at once.
/// Dropped, it is free again.
pub type Seat = Box<dyn FnOnce(Job) + Send>;

/// Threads for the attempts of [`blocking`](crate::Hedge::blocking) calls: a pool, say.
///
/// By default each attempt has a new thread, named `hedgerow-0` for a primary, `hedgerow-1` for the
/// first hedge and so on.
///
/// ```
/// use std::io;
/// use std::sync::{Arc, mpsc};
/// use hedgerow::{Hedge, Job, Seat, Threads};
///
/// /// A single worker with a queue. Its hedges wait behind its primaries: do not do this at home.
/// #[derive(Debug)]
/// struct Worker(mpsc::Sender<Job>);
///
/// impl Threads for Worker {
///     fn reserve(&self, _hedge: u8) -> io::Result<Seat> {
///         let queue = self.0.clone();
///         Ok(Box::new(move |job| queue.send(job).expect("the worker is there")))
///     }
/// }
///
/// let (sender, queue) = mpsc::channel::<Job>();
/// std::thread::spawn(move || queue.into_iter().for_each(|job| job()));
/// let answer = Hedge::default()
///     .blocking()
///     .on(Arc::new(Worker(sender)))
///     .call(|_| Ok::<_, String>(std::thread::current().id()));
/// assert_ne!(answer, Ok(std::thread::current().id()));
/// ```
pub trait Threads: fmt::Debug + Send + Sync {
    /// A thread for the attempt that is about to start: 0 is the primary, 1 the first hedge. Must
    /// not wait for one.
    ///
    /// # Errors
    ///
    /// If there is none. A hedge then does not start (gate `no-thread`), a primary runs on the
    /// caller's thread. A pool that keeps its last threads for primaries refuses hedges sooner.
    fn reserve(&self, hedge: u8) -> io::Result<Seat>;
}

/// A new thread for each attempt.
#[derive(Debug)]
pub(crate) struct OwnThreads;

impl Threads for OwnThreads {
    fn reserve(&self, hedge: u8) -> io::Result<Seat> {
        let (seat, jobs) = mpsc::channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        thread::Builder::new().name(format!("hedgerow-{hedge}")).spawn(work)?;
        // The thread waits for its job, and ends when there can be none.
        Ok(Box::new(move |job| drop(seat.send(job))))
    }
}

/// The thread that the next attempt of one call will have. Gone with the call, even if attempts
/// outlive it.
pub(super) struct NextSeat {
    threads: Arc<dyn Threads>,
    seat: Mutex<Option<Seat>>,
}

impl NextSeat {
    pub(super) fn on(threads: Arc<dyn Threads>) -> Arc<Self> {
        Arc::new(Self { threads, seat: Mutex::new(None) })
    }

    /// Puts another seat in place and says which was there.
    fn replace(&self, seat: Option<Seat>) -> Option<Seat> {
        std::mem::replace(&mut self.seat.lock().unwrap_or_else(PoisonError::into_inner), seat)
    }
}

impl Room for NextSeat {
    fn admit(&self, hedge: u8) -> Result<(), Gate> {
        // An earlier seat may be left over from a hedge that did not start.
        drop(self.replace(None));
        let seat = self.threads.reserve(hedge).map_err(|_| Gate::NoThread)?;
        drop(self.replace(Some(seat)));
        Ok(())
    }
}

impl fmt::Debug for NextSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextSeat").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Seats the attempts of one call.
#[derive(Debug)]
pub(super) struct Usher(pub(super) Weak<NextSeat>);

impl Spawner for Usher {
    fn spawn(&self, task: Task) {
        let job = || Arc::new(Parker::default()).block_on(task);
        match self.0.upgrade().and_then(|next| next.replace(None)) {
            Some(seat) => seat(Box::new(job)),
            // A primary for which there was no thread.
            None => job(),
        }
    }
}
