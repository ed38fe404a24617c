//! Keys whose calls are learned apart, so many and no more.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::learner::Learner;
use super::parent::{Scope, depth};
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

/// Learners below one parent, which is meant by its address: its own as long as there are any of
/// them, because they hold it.
type Family = (usize, Scope);

#[derive(Default)]
struct Known {
    families: HashMap<Family, HashMap<Arc<str>, Entry>>,
    /// Every key once, by a turn in which it was asked for: the latest when this was written.
    turns: BTreeMap<u64, (Family, Arc<str>)>,
}

struct Entry {
    learner: Arc<Learner>,
    last_turn: AtomicU64,
}

impl Keys {
    /// Longer names, in bytes, are not told apart: their calls are only the parent's.
    pub const LONGEST: usize = 1_024;
    /// Keys of keys beyond so many levels are not told apart either: a learner holds all those above
    /// it, so that a program which narrows its policy at each call would have no bound.
    pub const DEEPEST: usize = 8;

    /// Knows no key yet.
    pub fn new(most: MaxKeys) -> Self {
        Self { most, turn: AtomicU64::new(0), known: RwLock::default() }
    }

    /// The learner of this key below `parent`: the one that is known, or a new one. The parent
    /// itself if the name is longer than [`LONGEST`](Keys::LONGEST), or if it is
    /// [`DEEPEST`](Keys::DEEPEST) levels below the whole policy's already.
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
        if depth(parent) >= Self::DEEPEST {
            return Arc::clone(parent);
        }
        // Whatever takes long, or is the last to hold a learner, is outside of the lock.
        let new = Arc::new(Learner::child_of(parent, scope));
        let name: Arc<str> = Arc::from(name);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(learner) = known.get(family, &name, turn) {
            return learner;
        }
        let full = known.turns.len() >= self.most.get() as usize;
        let oldest = if full { known.take_oldest() } else { None };
        known.add(family, name, Arc::clone(&new), turn);
        drop(known);
        drop(oldest);
        new
    }

    /// How many keys it knows.
    pub fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).turns.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Known {
    fn get(&self, family: Family, name: &str, turn: u64) -> Option<Arc<Learner>> {
        let entry = self.families.get(&family)?.get(name)?;
        entry.last_turn.fetch_max(turn, Ordering::Relaxed);
        Some(Arc::clone(&entry.learner))
    }

    fn add(&mut self, family: Family, name: Arc<str>, learner: Arc<Learner>, turn: u64) {
        self.turns.insert(turn, (family, Arc::clone(&name)));
        let entry = Entry { learner, last_turn: AtomicU64::new(turn) };
        self.families.entry(family).or_default().insert(name, entry);
    }

    /// Takes out the key that was asked for least recently. One that was asked for since its turn
    /// was written is written anew on the way, which whoever asked was spared.
    fn take_oldest(&mut self) -> Option<Entry> {
        loop {
            let (turn, (family, name)) = self.turns.pop_first()?;
            let entries = self.families.get_mut(&family)?;
            let last_turn = entries.get(&name)?.last_turn.load(Ordering::Relaxed);
            if last_turn > turn {
                self.turns.insert(last_turn, (family, name));
                continue;
            }
            let oldest = entries.remove(&name);
            if entries.is_empty() {
                self.families.remove(&family);
            }
            return oldest;
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("most", &self.most.get())
            .field("known", &self.len())
            .finish_non_exhaustive()
    }
}
