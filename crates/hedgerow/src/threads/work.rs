//! Blocking work, as the race sees it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A piece of work that blocks the thread on which it is polled. Made by
/// [`Blocking::prepare`](super::Blocking::prepare); nothing but its own thread polls it.
pub struct BlockingWork<T, E>(Option<Box<dyn FnOnce() -> Result<T, E> + Send>>);

impl<T, E> BlockingWork<T, E> {
    pub(super) fn new(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Self {
        Self(Some(Box::new(work)))
    }
}

impl<T, E> Future for BlockingWork<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.take() {
            Some(work) => Poll::Ready(work()),
            None => panic!("`BlockingWork` polled after completion"),
        }
    }
}

impl<T, E> fmt::Debug for BlockingWork<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingWork").finish_non_exhaustive()
    }
}
