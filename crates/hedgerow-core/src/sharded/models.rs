//! Threads that come and go, in every order.

#![allow(clippy::unwrap_used, reason = "a model that cannot go on has failed")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::model::Builder;
use loom::thread;

use super::{Counter, FREE, LEASE, NEXT};
use crate::sync::Ordering;

/// Tries a model in every order in which its threads are interrupted at most so often. Few have
/// ever been needed to find a fault, and each makes the check several times longer.
pub(crate) fn in_every_order(interruptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(interruptions);
    builder.check(model);
}

/// What one thread of a model does.
pub(crate) type Part = Box<dyn FnOnce() + Send>;

/// Runs these parts at once, each on a thread, and waits until all threads are gone.
///
/// The checker's `join` does not wait for what threads do when they end, so this does.
pub(crate) fn at_once(parts: impl IntoIterator<Item = Part>) {
    // A shard of a recorder is put together on the stack.
    let start = |part| thread::Builder::new().stack_size(1 << 16).spawn(part).unwrap();
    let threads: Vec<_> = parts.into_iter().map(start).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    while FREE.lock().unwrap().len() < NEXT.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

#[test]
fn a_number_has_one_owner_at_a_time() {
    in_every_order(3, || {
        // The checker does not see this lock, and so cannot be kept from an order by it.
        let owned = Arc::new(Mutex::new(BTreeSet::new()));
        let own = || -> Part {
            let owned = Arc::clone(&owned);
            Box::new(move || {
                let number = LEASE.with(|lease| lease.0);
                assert!(owned.lock().unwrap().insert(number), "{number} belongs to somebody");
                thread::yield_now();
                owned.lock().unwrap().remove(&number);
            })
        };
        at_once([own(), own(), own()]);
        let mut free = FREE.lock().unwrap().clone();
        free.sort_unstable();
        assert_eq!(free, (0..free.len()).collect::<Vec<_>>(), "each was given back once");
    });
}

#[test]
fn no_count_is_lost_though_numbers_change_hands() {
    in_every_order(3, || {
        let counter = Arc::new(Counter::default());
        let count = || -> Part {
            let counter = Arc::clone(&counter);
            Box::new(move || counter.add_one())
        };
        at_once([count(), count(), count()]);
        assert_eq!(counter.sum(), 3);
        at_once([count()]);
        assert_eq!(counter.sum(), 4, "with a number that was given back");
    });
}
