//! The kinds of trouble.

use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use hedgerow_core::text::format_duration;
use pin_project_lite::pin_project;

use crate::pipeline::admit::Admission;
use crate::pipeline::classify::PipelineResult;
use crate::pipeline::context::Context;
use crate::pipeline::error::{PipelineError, Rejected};
use crate::pipeline::layer::Place;
use crate::pipeline::next::{Next, Outcomes};
use crate::pipeline::wait::Wait;

/// What comes instead of the work, or goes before it.
type Made<N, A> = ControlFlow<PipelineResult<<N as Outcomes>::Value, <N as Outcomes>::Error>, A>;

/// A kind of trouble; see [`Chaos`](super::Chaos).
pub trait Trouble<'p, N: Next> {
    #[doc(hidden)]
    type Ahead: Admission<Slot = ()>;

    #[doc(hidden)]
    const KIND: &'static str;

    #[doc(hidden)]
    fn make(&'p self, place: &'p Place) -> Made<N, Self::Ahead>;
}

/// Waits before the work.
#[derive(Clone, Copy)]
pub struct Latency(pub(super) Duration);

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "latency {}", format_duration(self.0))
    }
}

impl<'p, N: Next> Trouble<'p, N> for Latency {
    type Ahead = Delayed<'p>;

    const KIND: &'static str = "latency";

    fn make(&'p self, place: &'p Place) -> Made<N, Delayed<'p>> {
        ControlFlow::Continue(Delayed { wait: Wait::new(), latency: self.0, place })
    }
}

pin_project! {
    /// A wait before the work.
    pub struct Delayed<'p> {
        #[pin]
        wait: Wait,
        latency: Duration,
        place: &'p Place,
    }
}

impl fmt::Debug for Delayed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delayed")
    }
}

impl Admission for Delayed<'_> {
    type Slot = ();

    fn poll(self: Pin<&mut Self>, _: &Context, task: &mut Task<'_>) -> Poll<Result<(), Rejected>> {
        let this = self.project();
        this.wait.poll(&this.place.time, *this.latency, task).map(|_| Ok(()))
    }
}

/// Fails instead of the work.
#[derive(Clone, Copy)]
pub struct Fault<F>(pub(super) F);

impl<F> fmt::Debug for Fault<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fault")
    }
}

impl<'p, N: Next, F: Fn() -> N::Error> Trouble<'p, N> for Fault<F> {
    type Ahead = Delayed<'p>;

    const KIND: &'static str = "fault";

    fn make(&'p self, _: &'p Place) -> Made<N, Delayed<'p>> {
        ControlFlow::Break(Err(PipelineError::Failed((self.0)())))
    }
}

/// Returns something else instead of the work.
#[derive(Clone, Copy)]
pub struct Replaced<F>(pub(super) F);

impl<F> fmt::Debug for Replaced<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outcome")
    }
}

impl<'p, N: Next, F: Fn() -> Result<N::Value, N::Error>> Trouble<'p, N> for Replaced<F> {
    type Ahead = Delayed<'p>;

    const KIND: &'static str = "outcome";

    fn make(&'p self, _: &'p Place) -> Made<N, Delayed<'p>> {
        ControlFlow::Break((self.0)().map_err(PipelineError::Failed))
    }
}

/// Does something before the work.
#[derive(Clone, Copy)]
pub struct Behaviour<F>(pub(super) F);

impl<F> fmt::Debug for Behaviour<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("behaviour")
    }
}

impl<'p, N, F, Fut> Trouble<'p, N> for Behaviour<F>
where
    N: Next,
    F: Fn() -> Fut,
    Fut: Future<Output = ()>,
{
    type Ahead = Preceding<Fut>;

    const KIND: &'static str = "behaviour";

    fn make(&'p self, _: &'p Place) -> Made<N, Preceding<Fut>> {
        ControlFlow::Continue(Preceding { future: (self.0)() })
    }
}

pin_project! {
    /// Something that is done before the work.
    #[derive(Debug)]
    pub struct Preceding<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future<Output = ()>> Admission for Preceding<F> {
    type Slot = ();

    fn poll(self: Pin<&mut Self>, _: &Context, task: &mut Task<'_>) -> Poll<Result<(), Rejected>> {
        self.project().future.poll(task).map(Ok)
    }
}
