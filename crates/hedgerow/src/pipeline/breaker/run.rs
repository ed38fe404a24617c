//! One run through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use hedgerow_core::Moment;
use hedgerow_core::breaker::{Breaker, BreakerState, NeedsTime, Refused, Ticket, Transition};
use pin_project_lite::pin_project;

use super::CircuitBreaker;
use super::control::told;
use crate::drive::panics::quietly;
use crate::pipeline::classify::{PipelineResult, Predicate, never_started};
use crate::pipeline::context::Context;
use crate::pipeline::error::{PipelineError, Rejected};
use crate::pipeline::layer::Place;
use crate::pipeline::next::{Next, Strategy};
use crate::pipeline::note::Note;

impl<'p, N, P> Strategy<N> for &'p CircuitBreaker<P>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
{
    type Run = BreakerRun<'p, N, P>;

    const FORKS: bool = N::FORKS;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "built in place, or copied at each layer")]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        let (place, shared) = (&self.place, &*self.shared);
        let breaker = self.breaker();
        match breaker.admit(|| shared.now(&place.time)) {
            Ok((ticket, transition)) => {
                let told = place.is_told().then(|| Box::new(cx.clone()));
                // From here on the ticket is given back whatever happens: a panic, too.
                let mut held = Held { strategy: self, told, ticket: Some(ticket), panicked: false };
                held.tell(transition);
                let classifier = next.classifier().clone();
                let note = Note::on(&mut held.panicked);
                let run = next.run_once(cx);
                note.done();
                BreakerRun::Inside { run, held, classifier }
            }
            Err(refused) => BreakerRun::Refused { rejected: Some(reject(place, cx, refused)) },
        }
    }

    fn attempts(run: &Self::Run) -> u32 {
        match run {
            BreakerRun::Inside { run, .. } => N::attempts(run),
            BreakerRun::Refused { .. } => 1,
        }
    }
}

/// What is returned of a call that was not let through.
#[cold]
fn reject(place: &Place, cx: &Context, refused: Refused) -> Rejected {
    let Refused { state, retry_after } = refused;
    let reason = match state {
        BreakerState::Isolated => "isolated",
        BreakerState::HalfOpen => "circuit half-open",
        BreakerState::Open | BreakerState::Closed => "circuit open",
    };
    place.reject(cx, reason, retry_after.filter(|after| *after < Duration::MAX))
}

pin_project! {
    /// A run through a [`CircuitBreaker`].
    #[project = RunProj]
    #[must_use = "futures do nothing unless polled"]
    pub enum BreakerRun<'p, N: Next, P> {
        /// It was let through.
        #[doc(hidden)]
        Inside { #[pin] run: N::Run, held: Held<'p, P>, classifier: N::Classifier },
        /// It was not.
        #[doc(hidden)]
        Refused { rejected: Option<Rejected> },
    }
}

/// A call that was let through. Dropped without an outcome, it counts neither way, unless it
/// panicked.
pub struct Held<'p, P> {
    strategy: &'p CircuitBreaker<P>,
    told: Option<Box<Context>>,
    ticket: Option<Ticket>,
    /// Whether what is inside panicked.
    panicked: bool,
}

impl<P> Held<'_, P> {
    fn breaker(&self) -> &Breaker {
        self.strategy.breaker()
    }

    fn now(&self) -> Moment {
        self.strategy.shared.now(&self.strategy.place.time)
    }

    fn tell(&self, transition: Option<Transition>) {
        if let (Some(transition), Some(cx)) = (transition, &self.told) {
            self.strategy.place.tell(cx, told(transition));
        }
    }

    fn failed(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.tell(self.breaker().failed(ticket, self.now()));
        }
    }

    #[inline]
    fn succeeded(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let now = match self.breaker().needs_time(&ticket) {
                NeedsTime::No => Moment::ZERO,
                NeedsTime::Roughly => self.strategy.shared.recent(&self.strategy.place.time),
                NeedsTime::Exactly => self.now(),
            };
            self.tell(self.breaker().succeeded(ticket, now));
        }
    }
}

impl<P> Drop for Held<'_, P> {
    fn drop(&mut self) {
        if self.panicked {
            quietly(|| self.failed());
        } else if let Some(ticket) = self.ticket.take() {
            self.breaker().forget(ticket);
        }
    }
}

impl<P> fmt::Debug for Held<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl<N, P> Future for BreakerRun<'_, N, P>
where
    N: Next,
    P: Predicate<N::Value, N::Error>,
{
    type Output = PipelineResult<N::Value, N::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        match self.project() {
            RunProj::Inside { run, held, classifier } => {
                let predicate = &held.strategy.predicate;
                let note = Note::on(&mut held.panicked);
                let polled = run.poll(cx);
                note.done();
                let outcome = ready!(polled);
                if matches!(outcome, Err(PipelineError::Cancelled))
                    || never_started(predicate, classifier, &outcome)
                {
                    if let Some(ticket) = held.ticket.take() {
                        held.breaker().forget(ticket);
                    }
                } else if predicate.handle(classifier, &outcome) {
                    held.failed();
                } else {
                    held.succeeded();
                }
                Poll::Ready(outcome)
            }
            RunProj::Refused { rejected } => match rejected.take() {
                Some(rejected) => Poll::Ready(Err(rejected.into())),
                None => panic!("`BreakerRun` polled after completion"),
            },
        }
    }
}

impl<N: Next, P> fmt::Debug for BreakerRun<'_, N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self {
            Self::Inside { .. } => "inside",
            Self::Refused { .. } => "refused",
        };
        f.debug_struct("BreakerRun").field("stage", &stage).finish_non_exhaustive()
    }
}
