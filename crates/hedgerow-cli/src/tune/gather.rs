//! What is kept of all lines: counts, for each key apart if one is asked for.

use std::collections::HashMap;
use std::time::Duration;

use hedgerow_sim::tune::{Latencies, Pairs};

use super::bad::Why;
use super::format::Values;
use super::value::{self, Unit};

/// How many keys are kept apart.
const MOST_KEYS: usize = 1_000;
/// How much of a key is kept, in bytes.
const LONGEST_KEY: usize = 200;
/// How many pairs are kept, in all or of each key.
const MOST_PAIRS: usize = 200_000;
const MOST_PAIRS_OF_KEY: usize = 10_000;
/// The name of the keys that have no room.
pub(super) const OTHERS: &str = "(others)";

/// The calls of one key, or all of them.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) latencies: Latencies,
    pub(super) pairs: Option<Pairs>,
}

/// Everything that was read.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) unit: Option<Unit>,
    pair_delay: Option<Duration>,
    seed: u64,
    all: Calls,
    keys: HashMap<Vec<u8>, Calls>,
    others: Option<Calls>,
    /// Values with a unit of their own, and values that take the one that was named.
    pub(super) own_units: u64,
    pub(super) bare: u64,
}

impl Gathered {
    /// Nothing yet. With a delay, pairs are expected.
    pub(super) fn new(unit: Option<Unit>, pair_delay: Option<Duration>, seed: u64) -> Self {
        let all = calls(pair_delay, MOST_PAIRS, seed);
        let (keys, others) = (HashMap::new(), None);
        Self { unit, pair_delay, seed, all, keys, others, own_units: 0, bare: 0 }
    }

    /// Counts a line that is nothing but a latency.
    #[inline]
    pub(super) fn take_plain(&mut self, line: &[u8]) -> Result<(), Why> {
        let (nanos, own) = value::latency(line, self.unit)?;
        self.count_unit(own);
        self.all.latencies.record(nanos);
        Ok(())
    }

    /// Counts a call.
    pub(super) fn take(&mut self, values: &Values<'_>) -> Result<(), Why> {
        let (nanos, own) = value::latency(&values.latency, self.unit)?;
        let waited = match &values.times {
            Some((due, start)) => value::time(start, self.unit)?.0 - value::time(due, self.unit)?.0,
            None => 0.0,
        };
        if waited < 0.0 {
            return Err(Why::EarlyStart);
        }
        let nanos = value::whole(real(nanos) + waited)?;
        let second = match &values.pair {
            Some(second) => Some(value::latency(second, self.unit)?.0),
            None => None,
        };
        self.count_unit(own);
        let calls = match &values.key {
            Some(key) => self.of(key),
            None => &mut self.all,
        };
        calls.latencies.record(nanos);
        if let (Some(pairs), Some(second)) = (&mut calls.pairs, second) {
            pairs.record(real(nanos), real(second));
        }
        Ok(())
    }

    #[inline]
    fn count_unit(&mut self, own: bool) {
        self.own_units += u64::from(own);
        self.bare += u64::from(!own);
    }

    /// The calls of this key.
    fn of(&mut self, key: &[u8]) -> &mut Calls {
        let key = &key[..key.len().min(LONGEST_KEY)];
        let new = || calls(self.pair_delay, MOST_PAIRS_OF_KEY, self.seed);
        if self.keys.len() >= MOST_KEYS && !self.keys.contains_key(key) {
            return self.others.get_or_insert_with(new);
        }
        self.keys.entry(key.to_vec()).or_insert_with(new)
    }

    /// All calls, if no key was asked for.
    pub(super) fn all(&self) -> &Calls {
        &self.all
    }

    /// The calls of each key, most frequent ones first and those without room last.
    pub(super) fn by_key(&self) -> Vec<(String, &Calls)> {
        let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let mut keys: Vec<_> = self.keys.iter().map(|(key, calls)| (name(key), calls)).collect();
        keys.sort_by(|(a, x), (b, y)| {
            y.latencies.count().cmp(&x.latencies.count()).then_with(|| a.cmp(b))
        });
        keys.extend(self.others.iter().map(|calls| (OTHERS.to_owned(), calls)));
        keys
    }

    /// Whether some keys had no room.
    pub(super) fn has_others(&self) -> bool {
        self.others.is_some()
    }
}

fn calls(pair_delay: Option<Duration>, room: usize, seed: u64) -> Calls {
    let pairs = pair_delay.map(|delay| Pairs::new(delay.as_secs_f64() * 1e9, room, seed));
    Calls { latencies: Latencies::default(), pairs }
}

#[expect(clippy::cast_precision_loss, reason = "at most a day of nanoseconds: exact in a double")]
fn real(nanos: u64) -> f64 {
    nanos as f64
}
