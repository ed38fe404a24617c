//! Keys whose calls are learned apart, so many and no more.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::learner::Learner;
use super::parent::Scope;
use crate::invalid::InvalidOption;

/// How many keys are told apart at most: 1 to 10,000; 256 unless said otherwise.
///
/// A key takes some 24 kB, and 8 kB more for each thread that makes calls of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MaxKeys(u32);

impl MaxKeys {
    /// The most that may be asked for.
    pub const MOST: u32 = 10_000;

    /// # Errors
    ///
    /// Refuses 0 and more than [`MOST`](MaxKeys::MOST).
    pub fn new(keys: u32) -> Result<Self, InvalidOption> {
        if (1..=Self::MOST).contains(&keys) {
            return Ok(Self(keys));
        }
        let remedy = format!("every key takes memory; use 1 to {}", Self::MOST);
        Err(InvalidOption::new("max_keys", keys, remedy))
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for MaxKeys {
    fn default() -> Self {
        Self(256)
    }
}

/// The learners of keys, by name: so many and no more, whatever names come.
///
/// The key that was asked for least recently gives way to a new one. That one's learner lives on
/// with whoever holds it (calls under way, and learners below it), but what it learns is lost: the
/// next to ask for the key gets a new learner, which follows the parent at first. The parent keeps
/// all that it was told.
///
/// Asking for a known key allocates nothing and waits for nobody who does the same.
///
/// ```
/// use std::sync::Arc;
/// use hedgerow_core::latency::{Keys, Learner, Learning, Scope};
///
/// let all = Arc::new(Learner::new(Learning::default()));
/// let keys = Keys::new(all.learning().max_keys);
/// let search = keys.child(&all, Scope::Key, "GET /search");
/// let replica = keys.child(&search, Scope::Server, "10.0.0.7:80");
///
/// assert!(Arc::ptr_eq(&search, &keys.child(&all, Scope::Key, "GET /search")));
/// assert!(replica.is_young());
/// assert_eq!(keys.len(), 2);
/// ```
pub struct Keys {
    most: MaxKeys,
    /// Counts what was asked for: the later, the higher.
    turn: AtomicU64,
    known: RwLock<Known>,
}

/// Learners below one parent are found by name. The parent is meant by its address, which is its
/// own as long as there are any: they hold it.
#[derive(Default)]
struct Known {
    families: HashMap<(usize, Scope), HashMap<Box<str>, Entry>>,
    count: usize,
}

struct Entry {
    learner: Arc<Learner>,
    last_turn: AtomicU64,
}

impl Keys {
    /// Longer names, in bytes, are not told apart: their calls are only the parent's.
    pub const LONGEST: usize = 1_024;

    /// Knows no key yet.
    pub fn new(most: MaxKeys) -> Self {
        Self { most, turn: AtomicU64::new(0), known: RwLock::default() }
    }

    /// The learner of this key below `parent`: the one that is known, or a new one. The parent
    /// itself if the name is longer than [`LONGEST`](Keys::LONGEST).
    pub fn child(&self, parent: &Arc<Learner>, scope: Scope, name: &str) -> Arc<Learner> {
        if name.len() > Self::LONGEST {
            return Arc::clone(parent);
        }
        let family = (Arc::as_ptr(parent).addr(), scope);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(learner) = known.get(family, name, turn) {
            return learner;
        }
        drop(known);
        // Whatever takes long, or is the last to hold a learner, is outside of the lock.
        let new = Arc::new(Learner::child_of(parent, scope));
        let name = Box::from(name);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(learner) = known.get(family, &name, turn) {
            return learner;
        }
        let oldest =
            if known.count < self.most.get() as usize { None } else { known.take_oldest() };
        known.add(family, name, Entry { learner: Arc::clone(&new), last_turn: turn.into() });
        drop(known);
        drop(oldest);
        new
    }

    /// How many keys it knows.
    pub fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Known {
    fn get(&self, family: (usize, Scope), name: &str, turn: u64) -> Option<Arc<Learner>> {
        let entry = self.families.get(&family)?.get(name)?;
        entry.last_turn.fetch_max(turn, Ordering::Relaxed);
        Some(Arc::clone(&entry.learner))
    }

    fn add(&mut self, family: (usize, Scope), name: Box<str>, entry: Entry) {
        self.families.entry(family).or_default().insert(name, entry);
        self.count += 1;
    }

    /// Takes out the key that was asked for least recently. Looks at all of them: that costs less
    /// than making the learner that is to take its place.
    fn take_oldest(&mut self) -> Option<Entry> {
        let entries = self.families.iter().flat_map(|(family, entries)| {
            entries.iter().map(move |(name, entry)| (entry, *family, name))
        });
        let last_turn = |entry: &Entry| entry.last_turn.load(Ordering::Relaxed);
        let (_, family, name) = entries.min_by_key(|(entry, ..)| last_turn(entry))?;
        let name = name.clone();
        let entries = self.families.get_mut(&family)?;
        let oldest = entries.remove(&name)?;
        if entries.is_empty() {
            self.families.remove(&family);
        }
        self.count -= 1;
        Some(oldest)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("most", &self.most.get()).field("known", &self.len()).finish()
    }
}
