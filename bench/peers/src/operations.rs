//! The operations of this benchmark beyond those of `counts`.

use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use counts::operation::{Operation, Outcome};

/// Every attempt waits until the gate opens.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<GateShared>,
}

struct GateShared {
    open: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
    attempts: AtomicUsize,
}

/// Attempt of [`Gate`].
pub struct GateAttempt {
    gate: Gate,
    request: u64,
    registered: bool,
}

impl Gate {
    /// A closed gate with room for `attempts`, so that it allocates nothing later.
    pub fn new(attempts: usize) -> Self {
        Self {
            shared: Arc::new(GateShared {
                open: AtomicBool::new(false),
                waiting: Mutex::new(Vec::with_capacity(attempts)),
                attempts: AtomicUsize::new(0),
            }),
        }
    }

    /// Lets everyone through.
    pub fn open(&self) {
        self.shared.open.store(true, Release);
        self.waiting().drain(..).for_each(Waker::wake);
    }

    /// Attempts that came to the gate.
    pub fn attempts(&self) -> usize {
        self.shared.attempts.load(Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation for Gate {
    type Attempt = GateAttempt;

    fn start(&self, request: u64) -> GateAttempt {
        GateAttempt { gate: self.clone(), request, registered: false }
    }
}

impl Future for GateAttempt {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // Registered before it looks: a gate that opens in between wakes it.
        if !self.registered {
            self.registered = true;
            self.gate.waiting().push(cx.waker().clone());
            self.gate.shared.attempts.fetch_add(1, Relaxed);
        }
        if self.gate.shared.open.load(Acquire) {
            Poll::Ready(Ok(self.request))
        } else {
            Poll::Pending
        }
    }
}

type BoxedAttempt = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Attempts of any kind, boxed: for the runs where an allocation per attempt does not matter.
#[derive(Clone)]
pub struct Scripted {
    start: Arc<dyn Fn(u64) -> BoxedAttempt + Send + Sync>,
}

impl Scripted {
    /// Starts an attempt at a request by calling `start` with it.
    pub fn new<A>(start: impl Fn(u64) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Outcome> + Send + 'static,
    {
        Self { start: Arc::new(move |request| Box::pin(start(request))) }
    }
}

impl Operation for Scripted {
    type Attempt = BoxedAttempt;

    fn start(&self, request: u64) -> BoxedAttempt {
        (self.start)(request)
    }
}
