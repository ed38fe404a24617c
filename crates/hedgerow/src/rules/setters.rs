//! Rules made from closures: each type overrides one method of the rules it wraps.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hedgerow_core::{Delay, Pushback};
use pin_project_lite::pin_project;

use super::{Discarded, Judged, NextAction, NextHedge, Rules};
use crate::failure::Failure;

/// Writes the methods that a wrapper leaves to the rules it wraps.
macro_rules! inherit {
    ($($method:ident)*) => { $(inherit!(@ $method);)* };
    (@ Action) => { type Action = R::Action; };
    (@ Hook) => { type Hook = R::Hook; };
    (@ handle) => {
        #[inline]
        fn handle(&mut self, judged: Judged<'_, T, E>) -> bool { self.0.handle(judged) }
    };
    (@ is_rejection) => {
        #[inline]
        fn is_rejection(&mut self, error: &E) -> bool { self.0.is_rejection(error) }
    };
    (@ pushback) => {
        #[inline]
        fn pushback(&mut self, judged: Judged<'_, T, E>) -> Option<Pushback> {
            self.0.pushback(judged)
        }
    };
    (@ exhausted) => {
        fn exhausted(&mut self, failures: &[Failure<T, E>]) -> Option<u8> {
            self.0.exhausted(failures)
        }
    };
    (@ next_action) => {
        fn next_action(
            &mut self,
            next: &NextHedge<'_>,
        ) -> Result<NextAction<Self::Action, T, E>, E> {
            self.0.next_action(next)
        }
    };
    (@ on_hedge) => {
        fn on_hedge(&mut self, next: &NextHedge<'_>) -> Option<Self::Hook> {
            self.0.on_hedge(next)
        }
    };
    (@ delay) => {
        fn delay(&mut self, next: &NextHedge<'_>) -> Option<Delay> { self.0.delay(next) }
    };
    (@ on_discard) => {
        fn on_discard(&mut self, discarded: Discarded<T, E>) { self.0.on_discard(discarded) }
    };
    (@ cancelled) => {
        fn cancelled(&mut self) -> Option<E> { self.0.cancelled() }
    };
}

/// Declares the wrappers: the wrapped rules first, then the closure.
macro_rules! wrappers {
    ($($name:ident)*) => { $(
        #[derive(Clone, Debug)]
        pub struct $name<R, F>(pub(crate) R, pub(crate) F);
    )* };
}

wrappers!(
    Handle Rejection PushbackBy ExhaustedBy NextActionBy OnHedge OnHedgeAsync DelayWith OnDiscard CancelWith
);

impl<T, E, R, F> Rules<T, E> for Handle<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&Result<T, E>) -> bool,
{
    #[inline]
    fn handle(&mut self, judged: Judged<'_, T, E>) -> bool {
        (self.1)(judged.outcome())
    }

    inherit!(Action Hook is_rejection pushback exhausted next_action on_hedge delay on_discard cancelled);
}

impl<T, E, R, F> Rules<T, E> for Rejection<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&E) -> bool,
{
    #[inline]
    fn is_rejection(&mut self, error: &E) -> bool {
        (self.1)(error)
    }

    inherit!(Action Hook handle pushback exhausted next_action on_hedge delay on_discard cancelled);
}

impl<T, E, R, F> Rules<T, E> for PushbackBy<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&Result<T, E>) -> Option<Pushback>,
{
    #[inline]
    fn pushback(&mut self, judged: Judged<'_, T, E>) -> Option<Pushback> {
        (self.1)(judged.outcome())
    }

    inherit!(Action Hook handle is_rejection exhausted next_action on_hedge delay on_discard cancelled);
}

impl<T, E, R, F> Rules<T, E> for ExhaustedBy<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&[Failure<T, E>]) -> u8,
{
    fn exhausted(&mut self, failures: &[Failure<T, E>]) -> Option<u8> {
        Some((self.1)(failures))
    }

    inherit!(Action Hook handle is_rejection pushback next_action on_hedge delay on_discard cancelled);
}

impl<T, E, R, F, A> Rules<T, E> for NextActionBy<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&NextHedge<'_>) -> Result<NextAction<A, T, E>, E>,
    A: Future<Output = Result<T, E>>,
{
    type Action = A;

    fn next_action(&mut self, next: &NextHedge<'_>) -> Result<NextAction<A, T, E>, E> {
        (self.1)(next)
    }

    inherit!(Hook handle is_rejection pushback exhausted on_hedge delay on_discard cancelled);
}

impl<T, E, R, F> Rules<T, E> for OnHedge<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&NextHedge<'_>),
{
    fn on_hedge(&mut self, next: &NextHedge<'_>) -> Option<Self::Hook> {
        let earlier = self.0.on_hedge(next);
        (self.1)(next);
        earlier
    }

    inherit!(Action Hook handle is_rejection pushback exhausted next_action delay on_discard cancelled);
}

impl<T, E, R, F, H> Rules<T, E> for OnHedgeAsync<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&NextHedge<'_>) -> H,
    H: Future<Output = ()>,
{
    type Hook = Both<R::Hook, H>;

    fn on_hedge(&mut self, next: &NextHedge<'_>) -> Option<Self::Hook> {
        let earlier = self.0.on_hedge(next);
        Some(Both { earlier, later: (self.1)(next) })
    }

    inherit!(Action handle is_rejection pushback exhausted next_action delay on_discard cancelled);
}

pin_project! {
    /// Two hooks, one after the other.
    pub struct Both<A, B> {
        #[pin]
        earlier: Option<A>,
        #[pin]
        later: B,
    }
}

impl<A: Future<Output = ()>, B: Future<Output = ()>> Future for Both<A, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if let Some(earlier) = this.earlier.as_mut().as_pin_mut() {
            ready!(earlier.poll(cx));
            this.earlier.set(None);
        }
        this.later.poll(cx)
    }
}

impl<T, E, R, F> Rules<T, E> for DelayWith<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&NextHedge<'_>) -> Delay,
{
    fn delay(&mut self, next: &NextHedge<'_>) -> Option<Delay> {
        Some((self.1)(next))
    }

    inherit!(Action Hook handle is_rejection pushback exhausted next_action on_hedge on_discard cancelled);
}

impl<T, E, R, F> Rules<T, E> for OnDiscard<R, F>
where
    R: Rules<T, E>,
    F: FnMut(Discarded<T, E>),
{
    fn on_discard(&mut self, discarded: Discarded<T, E>) {
        (self.1)(discarded);
    }

    inherit!(Action Hook handle is_rejection pushback exhausted next_action on_hedge delay cancelled);
}

impl<T, E, R, F> Rules<T, E> for CancelWith<R, F>
where
    R: Rules<T, E>,
    F: FnMut() -> E,
{
    fn cancelled(&mut self) -> Option<E> {
        Some((self.1)())
    }

    inherit!(Action Hook handle is_rejection pushback exhausted next_action on_hedge delay on_discard);
}
