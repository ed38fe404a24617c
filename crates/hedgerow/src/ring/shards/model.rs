//! Every order in which callers and the driver can meet, tried one by one (`loom`).
//!
//! Time is a value here, too. In one kind of model it stands still: the driver must come to know
//! that it is to look by [`SOON`], or it sleeps for ever, which is a deadlock that the model
//! reports. In the other kind time moves on to when the driver looks next, until nobody has waited
//! for a while: then the driver is dormant, and whoever comes must wake it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64 as Plain, Ordering::SeqCst};
use std::task::Wake;

use loom::thread;

use super::*;

/// When a call is due in a model whose time stands still.
const SOON: u64 = 3;

/// What the driver of a model knows beside the shards. These are not part of the model: the one is
/// the driver's own, the other stays true once it is.
#[derive(Default)]
struct World {
    now: Plain,
    over: AtomicBool,
}

struct Ends(&'static World);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.0.over.store(true, SeqCst);
    }
}

thread_local! {
    static WORLD: Cell<Option<&'static World>> = const { Cell::new(None) };
}

/// A driver in time that stands still: ends when it knows that it is to look by [`SOON`].
fn start_still(shards: &'static Shards) -> io::Result<Thread> {
    let drive = move || {
        let mut driver = Driver::new();
        while shards.look(0, &mut driver) > SOON {
            thread::park();
        }
    };
    Ok(thread::spawn(drive).thread().clone())
}

/// A driver in time that moves on: ends when the one who matters was woken.
fn start_moving(shards: &'static Shards) -> io::Result<Thread> {
    let world = WORLD.get().expect("a model is under way");
    let drive = move || {
        let mut driver = Driver::new();
        while !world.over.load(SeqCst) {
            match shards.look(world.now.load(SeqCst), &mut driver) {
                _ if world.over.load(SeqCst) => {}
                NEVER => thread::park(),
                until => world.now.store(until, SeqCst),
            }
        }
    };
    Ok(thread::spawn(drive).thread().clone())
}

/// Tries every order of what the callers and a driver do. The callers get the waker of the one who
/// matters.
fn model(start: Start, callers: impl Fn(&'static Shards, Waker) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let world: &'static World = Box::leak(Box::default());
        WORLD.set(Some(world));
        let shards: &'static Shards = Box::leak(Box::new(Shards::new(1, start)));
        callers(shards, Waker::from(Arc::new(Ends(world))));
    });
}

fn nobody() -> Waker {
    Waker::noop().clone()
}

#[test]
fn a_call_meets_a_driver_that_looks_or_falls_asleep() {
    model(start_still, |shards, waker| {
        shards.wake_driver().unwrap();
        shards.arm(0, SOON, SOON, waker).unwrap();
    });
}

#[test]
fn two_calls_meet_and_the_later_one_is_due_first() {
    model(start_still, |shards, waker| {
        let other = thread::spawn(move || shards.arm(0, 9, 9, nobody()).unwrap());
        shards.arm(0, SOON, SOON, waker).unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_call_comes_while_the_driver_goes_dormant_after_another() {
    model(start_moving, |shards, waker| {
        let key = shards.arm(0, 2, 2, nobody()).unwrap();
        shards.disarm(key);
        shards.arm(0, 4, 2, waker).unwrap();
    });
}

#[test]
fn a_call_changes_its_waker_while_the_driver_wakes_it() {
    model(start_moving, |shards, waker| {
        let key = shards.arm(0, 1, 1, nobody()).unwrap();
        if shards.is_over(key, &waker) {
            waker.wake();
            shards.wake_driver().unwrap();
        }
    });
}

#[test]
fn a_call_leaves_while_the_driver_wakes_it_and_the_next_one_takes_its_slot() {
    model(start_moving, |shards, waker| {
        let key = shards.arm(0, 1, 1, nobody()).unwrap();
        let other = thread::spawn(move || shards.disarm(key));
        shards.arm(0, 2, 1, waker).unwrap();
        other.join().unwrap();
        shards.disarm(key);
    });
}
