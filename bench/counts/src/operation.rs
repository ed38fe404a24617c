//! The operations that are called. Every attempt is a future with a name, so that each contender
//! may hold it without a box.

use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::task::{Context, Poll};

use crate::scheduler::turn;

/// What an attempt answers.
pub type Outcome = Result<u64, Failure>;

/// A failed attempt; a string, as large as errors commonly are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure that says `why`.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failure {}

/// Work that may be started more than once for one request.
pub trait Operation: Clone + Send + Sync + 'static {
    /// One execution of the work.
    type Attempt: Future<Output = Outcome> + Send + 'static;

    /// Starts an attempt at `request`.
    fn start(&self, request: u64) -> Self::Attempt;
}

/// Answers at the first poll.
#[derive(Debug, Clone, Copy)]
pub struct Ready;

/// Attempt of [`Ready`].
#[derive(Debug)]
pub struct ReadyAttempt {
    request: u64,
}

impl Operation for Ready {
    type Attempt = ReadyAttempt;

    fn start(&self, request: u64) -> ReadyAttempt {
        ReadyAttempt { request: black_box(request) }
    }
}

impl Future for ReadyAttempt {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
        Poll::Ready(Ok(black_box(self.request)))
    }
}

/// Pending once, having woken itself; answers in the task's next [`turn`]. Polls within one turn
/// count as one, for contenders that poll an attempt twice. Needs a task that takes turns.
#[derive(Debug, Clone, Copy)]
pub struct PendingOnce;

/// Attempt of [`PendingOnce`].
#[derive(Debug)]
pub struct PendingOnceAttempt {
    request: u64,
    /// Turn of the first poll; 0 before it.
    first_turn: u64,
}

impl Operation for PendingOnce {
    type Attempt = PendingOnceAttempt;

    fn start(&self, request: u64) -> PendingOnceAttempt {
        PendingOnceAttempt { request, first_turn: 0 }
    }
}

impl Future for PendingOnceAttempt {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let turn = turn();
        if self.first_turn == 0 {
            self.first_turn = turn;
        } else if self.first_turn != turn {
            return Poll::Ready(Ok(black_box(self.request)));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The first attempt at a request never ends, later ones answer at the first poll.
#[derive(Debug, Clone)]
pub struct HedgeWins {
    starts: Arc<[AtomicU32]>,
}

/// Attempt of [`HedgeWins`].
#[derive(Debug)]
pub struct HedgeWinsAttempt {
    request: u64,
    answers: bool,
}

impl HedgeWins {
    /// For the requests 0 up to `requests`.
    pub fn new(requests: usize) -> Self {
        Self { starts: (0..requests).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Forgets all attempts.
    pub fn reset(&self) {
        self.starts.iter().for_each(|starts| starts.store(0, Relaxed));
    }

    /// Attempts started since the last reset.
    pub fn attempts(&self) -> u64 {
        self.starts.iter().map(|starts| u64::from(starts.load(Relaxed))).sum()
    }
}

impl Operation for HedgeWins {
    type Attempt = HedgeWinsAttempt;

    fn start(&self, request: u64) -> HedgeWinsAttempt {
        let index = usize::try_from(request).expect("requests are indices");
        let earlier = self.starts[index].fetch_add(1, AcqRel);
        HedgeWinsAttempt { request, answers: earlier > 0 }
    }
}

impl Future for HedgeWinsAttempt {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
        if self.answers { Poll::Ready(Ok(self.request)) } else { Poll::Pending }
    }
}
