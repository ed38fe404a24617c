//! Where values are kept.

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A value, and when it was made.
pub(super) struct Kept<T> {
    pub(super) value: T,
    pub(super) made: Instant,
    /// Whether nothing was dropped between the start of its work and its coming in.
    is_valid: AtomicBool,
}

impl<T> Kept<T> {
    pub(super) fn new(value: T, made: Instant) -> Self {
        Self { value, made, is_valid: AtomicBool::new(false) }
    }
}

/// The values. What is under its locks is pointers: values are cloned and dropped outside.
pub(super) struct Store<T, K> {
    room: Room<T, K>,
    /// Changes when something is dropped: what began before is not kept.
    age: AtomicU64,
}

enum Room<T, K> {
    One(Mutex<Option<Arc<Kept<T>>>>),
    Many(quick_cache::sync::Cache<K, Arc<Kept<T>>>),
}

/// Nothing under the lock panics.
fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Store<T, ()> {
    pub(super) fn single() -> Self {
        Self { room: Room::One(Mutex::new(None)), age: AtomicU64::new(0) }
    }
}

impl<T, K: Hash + Eq> Store<T, K> {
    pub(super) fn keyed(max_entries: usize) -> Self {
        let room = Room::Many(quick_cache::sync::Cache::new(max_entries));
        Self { room, age: AtomicU64::new(0) }
    }

    pub(super) fn get(&self, key: &K) -> Option<Arc<Kept<T>>> {
        let kept = match &self.room {
            Room::One(one) => lock(one).clone(),
            Room::Many(many) => many.get(key),
        };
        kept.filter(|kept| kept.is_valid.load(Ordering::SeqCst))
    }

    /// To be remembered when work begins whose value is to be kept.
    pub(super) fn age(&self) -> u64 {
        self.age.load(Ordering::SeqCst)
    }

    /// Keeps a value, unless something was dropped since.
    pub(super) fn insert(&self, key: &K, kept: Kept<T>, age: u64)
    where
        K: Clone,
    {
        let kept = Arc::new(kept);
        match &self.room {
            Room::One(one) => {
                let mut one = lock(one);
                if self.age() == age {
                    kept.is_valid.store(true, Ordering::SeqCst);
                    let before = one.replace(kept);
                    drop(one);
                    drop(before); // not under the lock
                }
            }
            Room::Many(many) => {
                if self.age() != age {
                    return;
                }
                many.insert(key.clone(), Arc::clone(&kept));
                // Whoever drops it from now on finds it. Before that it is nobody's answer.
                if self.age() == age {
                    kept.is_valid.store(true, Ordering::SeqCst);
                } else {
                    many.remove_if(key, |there| Arc::ptr_eq(there, &kept));
                }
            }
        }
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        // All are taken out before the first is dropped: none is dropped under a lock.
        self.forget(|many| drop(many.drain().collect::<Vec<_>>()));
    }

    /// Drops one value.
    pub(super) fn remove(&self, key: &K) {
        self.forget(|many| drop(many.remove(key)));
    }

    fn forget(&self, forget: impl FnOnce(&quick_cache::sync::Cache<K, Arc<Kept<T>>>)) {
        match &self.room {
            Room::One(one) => {
                let mut one = lock(one);
                self.age.fetch_add(1, Ordering::SeqCst);
                let before = one.take();
                drop(one);
                drop(before); // not under the lock
            }
            Room::Many(many) => {
                self.age.fetch_add(1, Ordering::SeqCst);
                forget(many);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.room {
            Room::One(one) => lock(one).iter().len(),
            Room::Many(many) => many.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    type Does = fn(&Store<u32, Key>);

    thread_local! {
        /// What is done when the key is next hashed, and the time after that.
        static WHEN_HASHED: Cell<[Option<Does>; 2]> = const { Cell::new([None; 2]) };
        static STORE: Store<u32, Key> = Store::keyed(8);
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Key;

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            let [first, second] = WHEN_HASHED.take();
            WHEN_HASHED.set([second, None]);
            if let Some(does) = first {
                let rest = WHEN_HASHED.take();
                STORE.with(does);
                WHEN_HASHED.set(rest);
            }
            0_u8.hash(state);
        }
    }

    /// A value that came in after everything was dropped is nobody's, also before it is taken out.
    #[test]
    fn what_is_dropped_while_a_value_comes_in_is_not_answered_with() {
        STORE.with(|store| {
            let insert = |value| store.insert(&Key, Kept::new(value, Instant::now()), store.age());
            insert(1);
            assert_eq!(store.get(&Key).map(|kept| kept.value), Some(1));
            let looks = |store: &Store<u32, Key>| {
                assert_eq!(store.len(), 1, "it is there");
                assert!(store.get(&Key).is_none(), "and may not be");
            };
            WHEN_HASHED.set([Some(Store::clear), Some(looks)]);
            insert(2);
            assert!(WHEN_HASHED.take().iter().all(Option::is_none), "both were done");
            assert_eq!(store.len(), 0);
            insert(3);
            assert_eq!(store.get(&Key).map(|kept| kept.value), Some(3));
        });
    }
}
