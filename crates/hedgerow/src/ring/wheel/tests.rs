use std::collections::BTreeMap;
use std::task::Waker;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What happens to a wheel.
#[derive(Clone, Debug)]
enum Do {
    /// Something is due so long after the present.
    Insert(u64),
    /// One of those that ever were inserted is taken out.
    Remove(usize),
    /// Time moves on, and at most so many are taken out at once.
    Advance(u64, usize),
}

/// Lengths of every magnitude: each ring is as likely as any other.
fn length() -> impl Strategy<Value = u64> {
    (0..44u32, any::<u64>()).prop_map(|(bits, length)| length & ((1 << bits) - 1))
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => length().prop_map(Do::Insert),
        2 => any::<usize>().prop_map(Do::Remove),
        3 => (length(), 1..4usize).prop_map(|(by, most)| Do::Advance(by, most)),
    ]
}

/// A wheel, and the same entries in a sorted map.
struct Both {
    wheel: Wheel<usize>,
    model: BTreeMap<(u64, usize), Key>,
    /// Every entry that ever was: its tick, and its key.
    all: Vec<(u64, Key)>,
    now: u64,
    most_at_once: usize,
}

impl Both {
    fn obey(&mut self, what: &Do) {
        match what {
            Do::Insert(after) => {
                let (tick, number) = (self.now.saturating_add(*after), self.all.len());
                let key = self.wheel.insert(tick, number);
                self.model.insert((tick, number), key);
                self.all.push((tick, key));
                self.most_at_once = self.most_at_once.max(self.model.len());
            }
            Do::Remove(which) if !self.all.is_empty() => {
                let number = which % self.all.len();
                let (tick, key) = self.all[number];
                let known = self.model.remove(&(tick, number));
                assert_eq!(self.wheel.get_mut(key).copied(), known.map(|_| number));
                assert_eq!(self.wheel.remove(key), known.map(|_| number));
                assert_eq!(self.wheel.remove(key), None, "a key opens once");
            }
            Do::Remove(_) => {}
            Do::Advance(by, most) => self.advance(self.now.saturating_add(*by), *most),
        }
    }

    fn advance(&mut self, now: u64, most: usize) {
        self.now = now;
        let later = self.model.split_off(&(now + 1, 0));
        let expected = std::mem::replace(&mut self.model, later);
        let mut expected: Vec<_> = expected.into_keys().collect();
        let mut fired = vec![];
        loop {
            let mut due = vec![];
            let more = self.wheel.expire(now, most, &mut due);
            assert!(due.len() <= most);
            fired.extend(due.into_iter().map(|number| (self.all[number].0, number)));
            if !more {
                break;
            }
        }
        assert!(fired.is_sorted_by_key(|(tick, _)| *tick), "in order of their ticks");
        expected.sort_unstable();
        fired.sort_unstable();
        assert_eq!(fired, expected, "all that is due, and nothing else");
    }

    fn check(&self) {
        let earliest = self.model.keys().next().map(|(tick, _)| *tick);
        match (self.wheel.next(), earliest) {
            (None, None) => {}
            (Some(next), Some(tick)) => assert!(next <= tick, "it looks in time: {next}, {tick}"),
            (next, tick) => panic!("it looks at {next:?} for what is due at {tick:?}"),
        }
        assert_eq!(self.wheel.slots(), self.most_at_once, "slots follow what is in it at once");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wheel_does_what_a_sorted_map_does(start in length(), script in vec(doing(), 1..120)) {
        let wheel = Wheel::new();
        let (model, all) = (BTreeMap::new(), vec![]);
        let mut both = Both { wheel, model, all, now: 0, most_at_once: 0 };
        both.advance(start, 1);
        for what in &script {
            both.obey(what);
            both.check();
        }
        both.advance(LAST - 1, 2);
        both.check();
        prop_assert_eq!(both.wheel.next(), None);
    }

    /// Going from one `next` to the one after it gets everywhere in few steps, far as it may be.
    #[test]
    fn whoever_looks_when_told_comes_to_an_entry_in_few_steps(start in length(), after in length()) {
        let mut wheel = Wheel::new();
        wheel.expire(start, 1, &mut vec![]);
        let tick = start + after;
        wheel.insert(tick, ());
        let mut due = vec![];
        let mut steps = 0u32;
        while let Some(next) = wheel.next() {
            prop_assert!(next <= tick);
            wheel.expire(next, 1, &mut due);
            prop_assert_eq!(due.is_empty(), next < tick);
            steps += 1;
        }
        prop_assert_eq!(due.len(), 1);
        prop_assert!(steps <= RINGS, "{} steps", steps);
    }
}

#[test]
fn a_slot_of_a_waker_takes_40_bytes() {
    assert_eq!(size_of::<Slot<Waker>>(), 40);
}

#[test]
fn entries_of_the_past_are_due_at_once() {
    let mut wheel = Wheel::new();
    wheel.expire(1_000, 1, &mut vec![]);
    wheel.insert(3, "late");
    assert_eq!(wheel.next(), Some(1_000));
    let mut due = vec![];
    assert!(!wheel.expire(1_000, 1, &mut due));
    assert_eq!(due, ["late"]);
}

#[test]
fn an_entry_beyond_the_last_ring_waits_there() {
    let mut wheel = Wheel::new();
    let key = wheel.insert(u64::MAX, "far");
    let mut due = vec![];
    wheel.expire(LAST - 1, 1, &mut due);
    assert!(due.is_empty());
    assert_eq!(wheel.remove(key), Some("far"));
}

#[test]
fn a_key_opens_no_slot_that_was_given_to_another_entry() {
    let mut wheel = Wheel::new();
    let first = wheel.insert(10, "first");
    assert_eq!(wheel.remove(first), Some("first"));
    let second = wheel.insert(10, "second");
    assert_eq!(wheel.slots(), 1);
    assert_eq!(wheel.get_mut(first), None);
    assert_eq!(wheel.remove(first), None);
    assert_eq!(wheel.remove(second), Some("second"));
}
