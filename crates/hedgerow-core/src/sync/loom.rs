//! What threads meet at, under the eyes of a model checker: the same words as `sync.rs`.

pub(crate) use std::sync::PoisonError;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// As few as there can be: one thread has a shard of its own, the others share.
pub(crate) const SHARDS: usize = 2;

/// One value for each thread. The checker knows no values that are there before the thread is.
macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = const $value:block; $($rest:tt)*) => {
        loom::thread_local! { $(#[$attribute])* static $name: $type = $value; }
        $crate::sync::per_thread! { $($rest)* }
    };
    ($($all:tt)*) => { loom::thread_local! { $($all)* } };
}
pub(crate) use per_thread;

/// One value for all threads, made when the first asks for it.
macro_rules! global {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        loom::lazy_static! { $($(#[$attribute])* static ref $name: $type = $value;)* }
    };
}
pub(crate) use global;

/// A value that is made once. The checker has none; this one is a lock and a flag.
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    made: AtomicBool,
    making: Mutex<()>,
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self {
            value: std::sync::OnceLock::new(),
            made: AtomicBool::new(false),
            making: Mutex::new(()),
        }
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        if self.made.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if !self.made.load(Ordering::Acquire) {
            let _one_at_a_time = self.making.lock();
            self.value.get_or_init(make);
            self.made.store(true, Ordering::Release);
        }
        self.value.get().expect("just made")
    }
}
