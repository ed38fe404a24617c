//! A bag of values that travels with a call.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values that travel with a call, one of each type.
///
/// Clones share the values. A call that is given properties hands each attempt a copy made when
/// that attempt starts, so parallel attempts cannot overwrite each other; what the winner writes
/// is merged back, what losers write is dropped (T24-T26). If every attempt fails, the attempt
/// whose failure is returned counts as the winner; on cancellation and on a panic nothing is
/// merged. Merging adds and replaces; it never removes.
///
/// ```
/// use hedgerow::Properties;
///
/// #[derive(Clone, PartialEq, Debug)]
/// struct Replica(&'static str);
///
/// let properties = Properties::new();
/// properties.insert(Replica("eu-1"));
/// assert_eq!(properties.get::<Replica>(), Some(Replica("eu-1")));
/// ```
#[derive(Clone, Default)]
pub struct Properties {
    shared: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// What was written here, as opposed to copied from the caller.
    written: HashSet<TypeId>,
}

impl Properties {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code of the caller runs under the lock: nothing can panic there, nor come back.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of this type, if there is one.
    pub fn get<V: Clone + Send + Sync + 'static>(&self) -> Option<V> {
        let value = Arc::clone(self.lock().values.get(&TypeId::of::<V>())?);
        value.downcast_ref::<V>().cloned()
    }

    /// Sets the value of this type.
    pub fn insert<V: Clone + Send + Sync + 'static>(&self, value: V) {
        let mut inner = self.lock();
        let previous = inner.values.insert(TypeId::of::<V>(), Arc::new(value));
        inner.written.insert(TypeId::of::<V>());
        drop(inner);
        drop(previous); // not under the lock
    }

    /// Makes this a fresh copy of `caller`'s values, with nothing written yet.
    pub(crate) fn copy_from(&self, caller: &Self) {
        let values = caller.lock().values.clone();
        let copy = Inner { values, written: HashSet::new() };
        let previous = std::mem::replace(&mut *self.lock(), copy);
        drop(previous); // not under the lock: destructors are the caller's code
    }

    /// Takes over what was written to `attempt`.
    pub(crate) fn merge(&self, attempt: &Self) {
        let written: Vec<_> = {
            let inner = attempt.lock();
            let value = |key: &TypeId| inner.values.get(key).map(|value| (*key, Arc::clone(value)));
            inner.written.iter().filter_map(value).collect()
        };
        let mut previous = Vec::new();
        let mut inner = self.lock();
        for (key, value) in written {
            previous.extend(inner.values.insert(key, value));
            inner.written.insert(key);
        }
        drop(inner);
        drop(previous); // not under the lock
    }
}

impl std::fmt::Debug for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.lock();
        f.debug_struct("Properties")
            .field("values", &inner.values.len())
            .field("written", &inner.written.len())
            .finish()
    }
}
