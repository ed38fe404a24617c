//! What threads meet at. A model checker brings its own (`sync/loom.rs`), in which it tries every
//! order of events; the code that is modelled takes these words from here alone.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
pub(crate) use std::thread_local as per_thread;

/// Into how many shards a counter is split: one for each thread, and the last for all the others.
pub(crate) const SHARDS: usize = 32;

/// One value for all threads, made before the first asks for it.
macro_rules! global {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$attribute])* static $name: $type = $value;)*
    };
}
pub(crate) use global;
