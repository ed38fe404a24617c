//! Attempts that run on without their call: counted, and bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// How many attempts of one policy, and of its clones, run on without their calls.
#[derive(Debug)]
pub(crate) struct Abandoned {
    most: usize,
    count: AtomicUsize,
}

impl Abandoned {
    /// No hedge starts while there are `most` of them.
    pub(crate) fn at_most(most: usize) -> Self {
        Self { most, count: AtomicUsize::new(0) }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count() >= self.most
    }

    /// The two ends of an attempt that runs apart from its call.
    pub(crate) fn ends(self: &Arc<Self>) -> (CallsEnd, AttemptsEnd) {
        let link = Arc::new(Link { abandoned: Arc::clone(self), state: AtomicU8::new(TOGETHER) });
        (CallsEnd(Arc::clone(&link)), AttemptsEnd(link))
    }
}

const TOGETHER: u8 = 0;
const LET_GO: u8 = 1;
const ENDED: u8 = 2;

#[derive(Debug)]
struct Link {
    abandoned: Arc<Abandoned>,
    state: AtomicU8,
}

/// Kept by the call, as long as it waits for the attempt.
#[derive(Debug)]
pub(crate) struct CallsEnd(Arc<Link>);

impl CallsEnd {
    /// The call goes on without the attempt. It counts until it has ended, which it may have by
    /// now; it is counted first, so that the number never falls below what there is.
    pub(crate) fn let_go(self) {
        let Link { abandoned, state } = &*self.0;
        abandoned.count.fetch_add(1, Ordering::SeqCst);
        if state.swap(LET_GO, Ordering::SeqCst) == ENDED {
            abandoned.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Goes with the attempt, and is dropped when nothing of it is left.
#[derive(Debug)]
pub(crate) struct AttemptsEnd(Arc<Link>);

impl Drop for AttemptsEnd {
    fn drop(&mut self) {
        let Link { abandoned, state } = &*self.0;
        if state.swap(ENDED, Ordering::SeqCst) == LET_GO {
            abandoned.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_counts_until_it_ends() {
        let abandoned = Arc::new(Abandoned::at_most(1));
        let (call, attempt) = abandoned.ends();
        assert_eq!((abandoned.count(), abandoned.is_full()), (0, false));
        call.let_go();
        assert_eq!((abandoned.count(), abandoned.is_full()), (1, true));
        drop(attempt);
        assert_eq!((abandoned.count(), abandoned.is_full()), (0, false));
    }

    #[test]
    fn what_ended_before_never_counts() {
        let abandoned = Arc::new(Abandoned::at_most(0));
        let (call, attempt) = abandoned.ends();
        drop(attempt);
        call.let_go();
        let (call, attempt) = abandoned.ends();
        drop(call); // it was waited for
        drop(attempt);
        assert_eq!((abandoned.count(), abandoned.is_full()), (0, true));
    }
}
