//! Locks, atomics and threads: those of std, or those of a model that tries every order of events.

#[cfg(loom)]
pub(super) use loom::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::Thread,
};
#[cfg(not(loom))]
pub(super) use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::Thread,
};
