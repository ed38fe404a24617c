//! Where the attempts of a race live.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use hedgerow_core::Panics;
use pin_project_lite::pin_project;

use super::Work;

/// An attempt's outcome, or the panic that it ended with.
pub(super) type Caught<T, E> = Result<Result<T, E>, Box<dyn Any + Send>>;

pin_project! {
    /// The first attempt, inline in the call's future.
    #[project = PrimaryProj]
    pub(super) enum Primary<Fut> {
        // Not started, and it can start on the fast path.
        Ahead,
        Running { #[pin] work: Fut },
        // Not here: ended, dropped, or for the race to start.
        Absent,
    }
}

impl<Fut> Primary<Fut> {
    /// Puts the work in its place.
    #[inline]
    pub(super) fn start(mut self: Pin<&mut Self>, work: Fut) -> Pin<&mut Fut> {
        self.set(Self::Running { work });
        match self.project() {
            PrimaryProj::Running { work } => work,
            _ => unreachable!("it was put there just now"),
        }
    }

    #[inline]
    pub(super) fn running(self: Pin<&mut Self>) -> Option<Pin<&mut Fut>> {
        match self.project() {
            PrimaryProj::Running { work } => Some(work),
            PrimaryProj::Ahead | PrimaryProj::Absent => None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

pin_project! {
    /// What a hedge runs.
    #[project = HedgingProj]
    pub(super) enum Hedging<Fut, A, T, E> {
        Repeat { #[pin] work: Fut },
        Run { #[pin] action: A },
        Answer { outcome: Option<Result<T, E>> },
    }
}

impl<Fut, A, T, E> Future for Hedging<Fut, A, T, E>
where
    Fut: Future<Output = Result<T, E>>,
    A: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            HedgingProj::Repeat { work } => work.poll(cx),
            HedgingProj::Run { action } => action.poll(cx),
            HedgingProj::Answer { outcome } => outcome.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

/// The hedge of a call whose work is `Fut` and whose actions are `A`.
pub(super) type HedgeOf<Fut, A> = Hedging<Fut, A, <Fut as Work>::Value, <Fut as Work>::Error>;

pin_project! {
    /// The hedges of one call. The first lives in the race's own box, so that it costs no
    /// allocation beyond that; each further one has a box of its own.
    pub(super) struct Slots<H> {
        #[pin]
        first: Option<H>,
        others: Vec<Option<Pin<Box<H>>>>,
    }
}

impl<H> Slots<H> {
    pub(super) fn new() -> Self {
        Self { first: None, others: Vec::new() }
    }

    /// Whether hedge number `hedge` is still held.
    pub(super) fn holds(&self, hedge: u8) -> bool {
        match hedge {
            0 => false,
            1 => self.first.is_some(),
            _ => self.others.get(usize::from(hedge) - 2).is_some_and(Option::is_some),
        }
    }

    pub(super) fn put(self: Pin<&mut Self>, hedge: u8, hedging: H) {
        let mut this = self.project();
        match hedge {
            0 => {}
            1 => this.first.set(Some(hedging)),
            _ => {
                let index = usize::from(hedge) - 2;
                if this.others.len() <= index {
                    this.others.resize_with(index + 1, || None);
                }
                this.others[index] = Some(Box::pin(hedging));
            }
        }
    }

    pub(super) fn get(self: Pin<&mut Self>, hedge: u8) -> Option<Pin<&mut H>> {
        let this = self.project();
        match hedge {
            0 => None,
            1 => this.first.as_pin_mut(),
            _ => this.others.get_mut(usize::from(hedge) - 2)?.as_mut().map(Pin::as_mut),
        }
    }

    /// Drops hedge number `hedge`, if it is held.
    pub(super) fn clear(self: Pin<&mut Self>, hedge: u8) {
        let mut this = self.project();
        match hedge {
            0 => {}
            1 => this.first.set(None),
            _ => drop(this.others.get_mut(usize::from(hedge) - 2).and_then(Option::take)),
        }
    }
}

/// Does something for an attempt; a panic is caught if it is to count as a failure.
pub(super) fn caught<V>(
    panics: Panics,
    work: impl FnOnce() -> V,
) -> Result<V, Box<dyn Any + Send>> {
    match panics {
        Panics::Propagate => Ok(work()),
        Panics::AsFailure => catch_unwind(AssertUnwindSafe(work)),
    }
}

/// Polls an attempt; a panic is caught if it is to count as a failure.
pub(super) fn poll_caught<F, T, E>(
    attempt: Pin<&mut F>,
    panics: Panics,
    cx: &mut Context<'_>,
) -> Poll<Caught<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    match caught(panics, || attempt.poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}
