//! What tests of threads wait at. Nothing here looks at a clock.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use hedgerow::{Event, EventKind, Observer, Seat, Threads};

use crate::support::{lock, panic_text};

/// Closed at first: who comes waits until somebody opens it.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    pub(crate) fn open(&self) {
        let (open, bell) = &*self.0;
        *lock(open) = true;
        bell.notify_all();
    }

    pub(crate) fn pass(&self) {
        let (open, bell) = &*self.0;
        drop(bell.wait_while(lock(open), |open| !*open).unwrap());
    }
}

/// Threads that can be waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crew(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Threads for Crew {
    fn reserve(&self, _hedge: u8) -> io::Result<Seat> {
        let handles = Arc::clone(&self.0);
        Ok(Box::new(move |job| lock(&handles).push(thread::spawn(job))))
    }
}

impl Crew {
    pub(crate) fn shared(&self) -> Arc<dyn Threads> {
        Arc::new(self.clone())
    }

    /// Waits until every thread has ended, and says how many there were.
    pub(crate) fn join(&self) -> usize {
        let handles = std::mem::take(&mut *lock(&self.0));
        let count = handles.len();
        for handle in handles {
            handle.join().unwrap();
        }
        count
    }
}

/// Says when an event of this kind comes.
pub(crate) fn signal(kind: fn(&EventKind) -> bool) -> (Arc<dyn Observer>, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::channel();
    let observer = move |event: &Event| {
        if kind(&event.kind) {
            sender.send(()).ok();
        }
    };
    (Arc::new(observer), receiver)
}

/// Runs this, and catches a panic: its text.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(panic.as_ref()))
}
