//! What the strategies of a pipeline tell, and what their tests share.

use std::fmt::Debug;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hedgerow::pipeline::PipelineResult;
use hedgerow::{Attempt, Event, Observer, StrategyEvent, StrategyEventKind};
use tokio::sync::Semaphore;

use crate::support::{Act, Notes, Scripted, act, lock, poll_once};

/// The kinds of the events of one strategy.
#[derive(Clone)]
pub(crate) struct Told {
    strategy: &'static str,
    kinds: Arc<Mutex<Vec<StrategyEventKind>>>,
}

impl Told {
    /// Listens to what is told under this name.
    pub(crate) fn by(strategy: &'static str) -> Self {
        Self { strategy, kinds: Arc::default() }
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// What was told so far.
    pub(crate) fn kinds(&self) -> Vec<StrategyEventKind> {
        lock(&self.kinds).clone()
    }
}

impl Observer for Told {
    fn event(&self, _: &Event) {}

    fn strategy(&self, event: &StrategyEvent<'_>) {
        if event.strategy == self.strategy {
            lock(&self.kinds).push(event.kind);
        }
    }
}

/// Why it was refused; panics if it was not.
pub(crate) fn refusal<T: Debug, E: Debug>(outcome: &PipelineResult<T, E>) -> &'static str {
    let rejected = outcome.as_ref().err().and_then(|error| error.rejected());
    rejected.unwrap_or_else(|| panic!("not refused: {outcome:?}")).reason()
}

/// How many there are now, and how many there were at most.
#[derive(Default)]
pub(crate) struct Gauge {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Gauge {
    /// One more, until that is dropped.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        Inside(self)
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }
}

pub(crate) struct Inside<'g>(&'g Gauge);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts how often it is polled, and gives up (`None`) when that is as often as it may.
pub(crate) struct Polled<F> {
    future: Pin<Box<F>>,
    pub(crate) polls: usize,
    most: usize,
}

impl<F: Future> Polled<F> {
    pub(crate) fn new(future: F) -> Self {
        Self::at_most(usize::MAX, future)
    }

    pub(crate) fn at_most(most: usize, future: F) -> Self {
        Self { future: Box::pin(future), polls: 0, most }
    }
}

impl<F: Future> Future for Polled<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.polls == self.most {
            return Poll::Ready(None);
        }
        self.polls += 1;
        let polled = self.future.as_mut().poll(cx).map(Some);
        if polled.is_pending() && self.polls == self.most { Poll::Ready(None) } else { polled }
    }
}

/// Uses up the cooperative budget of tokio's task that this is called in.
pub(crate) fn exhaust_budget() {
    let semaphore = Semaphore::new(1);
    for _ in 0..1_000 {
        if poll_once(pin!(semaphore.acquire())).is_pending() {
            return;
        }
    }
    panic!("not inside a task of tokio's");
}

/// Work whose attempts do what the script says, by their numbers in the whole execution; those past
/// the script do what the last one does.
pub(crate) fn script<const N: usize>(
    notes: &Notes,
    script: [Act; N],
) -> impl Fn(Attempt) -> Scripted + Clone + Send + Sync + use<N> {
    let notes = notes.clone();
    move |attempt: Attempt| {
        let number = u8::try_from(attempt.number()).unwrap();
        let does = script[usize::from(number).min(N - 1)];
        Box::pin(notes.clone().attempt(number, act(does)))
    }
}
