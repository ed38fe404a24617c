//! Learners of keys: whom they follow, what their parents know, and that there are never too many.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says that it failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hedgerow_core::latency::{Keys, Learner, Learning, MaxKeys, Percentile, Record, Rule, Scope};
use hedgerow_core::{Gate, Moment};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn parent(rule: Rule) -> Arc<Learner> {
    Arc::new(Learner::new(Learning { rule, ..Learning::default() }))
}

const P99: Rule = Rule::Percentile(Percentile::P99);

/// Learners that are told of calls, one a millisecond.
struct Calls(u64);

impl Calls {
    /// So many calls of this learner that take from `low` to twice as long.
    fn take(&mut self, learner: &Learner, calls: u64, low: Duration) {
        for call in 0..calls {
            self.0 += 1;
            learner.record(Record::Finished(low + low * u32::try_from(call % 100).unwrap() / 100));
            learner.tick(Moment::from_millis(self.0));
        }
    }

    /// Lets all that came be looked at.
    fn settle(&mut self, learner: &Learner) {
        self.0 += 1_000;
        learner.tick(Moment::from_millis(self.0));
    }
}

fn delay_ms(learner: &Learner) -> Option<u128> {
    learner.plan().delay.map(|delay| delay.as_millis())
}

#[test]
fn a_young_child_follows_and_a_grown_one_has_its_own_way() {
    for (rule, grown) in [(P99, 1_000), (Rule::Percentile(Percentile::P95), 200)] {
        let (parent, mut calls) = (parent(rule), Calls(0));
        calls.take(&parent, 5_000, ms(10));
        let child = Learner::child_of(&parent, Scope::Key);
        assert!(child.is_young() && child.explain().young);
        calls.take(&child, grown - 2, ms(100));
        calls.settle(&child);
        assert!(child.is_young(), "{rule:?}");
        assert_eq!(child.plan(), parent.plan());
        calls.take(&child, 3, ms(100));
        calls.settle(&child);
        assert!(!child.is_young() && !child.explain().young, "{rule:?}");
        assert!((185..205).contains(&delay_ms(&child).unwrap()), "{:?}", child.plan());
    }
}

/// The default rule would decide from 211 calls on, if nobody knew better.
#[test]
fn a_child_of_the_default_rule_follows_until_a_thousand_calls() {
    let (parent, mut calls) = (parent(Learning::default().rule), Calls(0));
    let child = Learner::child_of(&parent, Scope::Key);
    calls.take(&child, 100, ms(10));
    calls.settle(&child);
    assert_eq!(child.plan().delay, None, "the parent is cold too");
    assert_eq!(child.delay(0), (false, None));
    assert_eq!(child.explain().refused, [(Gate::Cold, 1)]);
    assert_eq!(parent.explain().refused, [(Gate::Cold, 1)]);
    calls.take(&child, 898, ms(10));
    calls.settle(&child);
    assert!(child.is_young() && child.plan().delay.is_some());
    calls.take(&child, 2, ms(10));
    calls.settle(&child);
    assert!(!child.is_young());
}

/// More than a thousand calls are not kept for ever, so no target waits for more.
#[test]
fn no_child_waits_for_more_than_is_kept() {
    let target = Rule::Target(Percentile::new(99.99).unwrap());
    let (parent, mut calls) = (parent(target), Calls(0));
    let child = Learner::child_of(&parent, Scope::Key);
    calls.take(&child, 999, ms(10));
    calls.settle(&child);
    assert!(child.is_young());
    calls.take(&child, 1, ms(10));
    calls.settle(&child);
    assert!(!child.is_young());
}

#[test]
fn a_parent_knows_every_call_of_its_children() {
    let (alone, together) = (parent(P99), parent(P99));
    let children = [Scope::Key, Scope::Server].map(|scope| {
        let child = Arc::new(Learner::child_of(&together, scope));
        Learner::child_of(&child, Scope::Server)
    });
    let mut calls = [Calls(0), Calls(0)];
    for turn in 0..40 {
        let low = ms(5 + turn % 7);
        calls[0].take(&alone, 100, low);
        calls[1].take(&children[usize::from(turn % 3 == 0)], 100, low);
        assert_eq!(alone.plan(), together.plan(), "{turn}");
    }
    for _ in 0..100 {
        alone.hedged(false);
        children[0].hedged(false);
    }
    assert!((alone.win_rate() - together.win_rate()).abs() < 1e-12);
    assert_eq!(alone.explain().median, together.explain().median);
}

#[test]
fn chances_are_one_sequence_whatever_the_key() {
    let (alone, together) = (parent(P99), parent(P99));
    let children = [Scope::Key, Scope::Server].map(|scope| Learner::child_of(&together, scope));
    for turn in 0..100 {
        assert_eq!(alone.draw(), children[turn % 2].draw());
    }
}

#[test]
fn a_grandchild_follows_the_next_one_that_is_grown() {
    let (all, mut calls) = (parent(P99), Calls(0));
    calls.take(&all, 5_000, ms(10));
    let route = Arc::new(Learner::child_of(&all, Scope::Key));
    let server = Learner::child_of(&route, Scope::Server);
    assert_eq!(server.plan(), all.plan());
    calls.take(&route, 2_000, ms(100));
    calls.settle(&route);
    assert!(server.is_young());
    assert_eq!(server.plan(), route.plan());
    assert_ne!(server.plan(), all.plan());
}

#[test]
fn a_slow_server_moves_nobody_elses_trigger() {
    let (all, mut calls) = (parent(P99), Calls(0));
    let [well, sick] = [(); 2].map(|()| Learner::child_of(&all, Scope::Server));
    for _ in 0..30 {
        calls.take(&well, 100, ms(10));
        calls.take(&sick, 100, ms(10));
    }
    for _ in 0..100 {
        calls.take(&well, 100, ms(10));
        calls.take(&sick, 100, ms(100));
    }
    assert!((185..205).contains(&delay_ms(&all).unwrap()), "{:?}", all.plan());
    assert!((18..21).contains(&delay_ms(&well).unwrap()), "{:?}", well.plan());
    assert!((185..205).contains(&delay_ms(&sick).unwrap()), "{:?}", sick.plan());
}

/// Its calls go elsewhere when they are hedged, so they need not wait as long as it makes them.
#[test]
fn calls_of_a_slow_server_are_hedged_as_all_calls_are() {
    let (all, mut calls) = (parent(Rule::Percentile(Percentile::P90)), Calls(0));
    let [sick, route] = [Scope::Server, Scope::Key].map(|scope| Learner::child_of(&all, scope));
    for _ in 0..100 {
        calls.take(&all, 100, ms(10));
        calls.take(&sick, 2, ms(100));
        calls.take(&route, 2, ms(100));
    }
    for child in [&sick, &route] {
        calls.take(child, 300, ms(100));
        calls.settle(child);
        assert!(!child.is_young());
    }
    calls.take(&all, 20_000, ms(10));
    assert_eq!(sick.plan(), all.plan());
    assert!(delay_ms(&route).unwrap() > 170, "{:?}", route.plan());
}

#[test]
fn a_server_that_is_slow_as_a_whole_is_a_reason_to_hedge() {
    let (all, mut calls) = (parent(P99), Calls(0));
    let [server, route] = [Scope::Server, Scope::Key].map(|scope| Learner::child_of(&all, scope));
    for child in [&server, &route] {
        calls.take(child, 3_000, ms(10));
    }
    for _ in 0..10 {
        for child in [&server, &route] {
            calls.take(child, 20, ms(100));
            calls.take(&all, 200, ms(10));
        }
    }
    assert_eq!(all.gate(0), None);
    assert_eq!(server.gate(0), None);
    assert_eq!(route.gate(0), Some(Gate::Slow), "a hedge would be as slow");
    calls.take(&all, 300, ms(100));
    assert_eq!(server.gate(0), Some(Gate::Slow), "now they all are");
}

#[test]
fn a_young_child_brakes_when_its_parent_does() {
    let (all, mut calls) = (parent(P99), Calls(0));
    calls.take(&all, 2_000, ms(10));
    (0..500).for_each(|_| all.hedged(false));
    let child = Learner::child_of(&all, Scope::Key);
    let draws = || (0..1_000).map(|_| child.draw());
    let braked = draws().filter(|draw| child.gate(*draw) == Some(Gate::Wins)).count();
    assert!((900..1_000).contains(&braked), "{braked}");
    calls.take(&child, 1_500, ms(10));
    calls.settle(&child);
    assert!(draws().all(|draw| child.gate(draw).is_none()), "its own hedges have not lost yet");
}

fn keys(most: u32) -> Keys {
    Keys::new(MaxKeys::new(most).unwrap())
}

/// Numbers below `bound`, the same in every run.
fn random(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9E37_79B9);
    (*seed >> 33) % bound
}

/// Whatever is asked for, a plain list of names in the order of their use says the same.
#[test]
fn the_key_that_was_asked_for_least_recently_is_forgotten() {
    for seed in 1..=200 {
        let mut random = {
            let mut seed = seed;
            move |bound| random(&mut seed, bound)
        };
        let all = parent(P99);
        let most = 1 + random(8);
        let keys = keys(u32::try_from(most).unwrap());
        let mut model: Vec<(Scope, u64, Weak<Learner>)> = vec![];
        for _ in 0..200 {
            let name = random(12);
            let scope = if random(2) == 0 { Scope::Key } else { Scope::Server };
            let learner = keys.child(&all, scope, &name.to_string());
            let known = model.iter().position(|(s, n, _)| (*s, *n) == (scope, name));
            match known {
                Some(place) => {
                    let entry = model.remove(place);
                    assert!(entry.2.upgrade().is_some_and(|known| Arc::ptr_eq(&known, &learner)));
                    model.push(entry);
                }
                None => model.push((scope, name, Arc::downgrade(&learner))),
            }
            if model.len() as u64 > most {
                let forgotten = model.remove(0);
                assert!(forgotten.2.upgrade().is_none(), "nobody holds it any more");
            }
            assert_eq!(keys.len(), model.len());
        }
    }
}

#[test]
fn hostile_names_take_no_more_memory_than_allowed() {
    let (all, keys) = (parent(P99), keys(16));
    let mut made: Vec<Weak<Learner>> = vec![];
    for number in 0..5_000 {
        let child = keys.child(&all, Scope::Key, &format!("/{number}"));
        child.record(Record::Finished(ms(1)));
        made.push(Arc::downgrade(&child));
    }
    assert_eq!(keys.len(), 16);
    assert_eq!(made.iter().filter(|child| child.strong_count() > 0).count(), 16);
    let long = "x".repeat(Keys::LONGEST + 1);
    assert!(Arc::ptr_eq(&keys.child(&all, Scope::Key, &long), &all));
    assert!(!Arc::ptr_eq(&keys.child(&all, Scope::Key, &long[1..]), &all));
    assert!(keys.child(&all, Scope::Key, "").is_young(), "an empty name is a name");
}

/// A forgotten key lives while somebody holds it, and goes on telling its parent.
#[test]
fn a_forgotten_key_goes_on_for_those_who_hold_it() {
    let (all, keys, mut calls) = (parent(P99), keys(1), Calls(0));
    let old = keys.child(&all, Scope::Key, "search");
    let below = keys.child(&old, Scope::Server, "a");
    calls.take(&below, 2_000, ms(10));
    calls.settle(&below);
    assert!((18..21).contains(&delay_ms(&all).unwrap()), "{:?}", all.plan());
    let new = keys.child(&all, Scope::Key, "search");
    assert!(!Arc::ptr_eq(&old, &new) && new.is_young());
    assert_eq!(keys.len(), 1);
    calls.take(&below, 2_000, ms(100));
    assert!((185..205).contains(&delay_ms(&all).unwrap()), "{:?}", all.plan());
}

#[test]
fn names_below_different_parents_are_different_keys() {
    let (all, keys) = (parent(P99), keys(10));
    let routes = ["a", "b"].map(|name| keys.child(&all, Scope::Key, name));
    let servers = routes.each_ref().map(|route| keys.child(route, Scope::Server, "s"));
    assert!(!Arc::ptr_eq(&servers[0], &servers[1]));
    assert!(!Arc::ptr_eq(&servers[0], &keys.child(&routes[0], Scope::Key, "s")));
    assert_eq!(keys.len(), 5);
}

/// Threads that ask for few keys all get the same ones, while others ask for ever new ones.
#[test]
fn threads_agree_on_the_keys_and_never_exceed_the_bound() {
    let (all, keys) = (parent(P99), keys(64));
    let names: Vec<_> = (0..8).map(|name| format!("known {name}")).collect();
    let known: BTreeMap<_, _> =
        names.iter().map(|name| (name, keys.child(&all, Scope::Key, name))).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (all, keys, known) = (&all, &keys, &known);
            scope.spawn(move || {
                let mut seed = thread;
                for turn in 0..2_000 {
                    // So seldom that before 56 came each known name was asked for again.
                    if turn % 4 == 0 {
                        keys.child(all, Scope::Key, &format!("{thread} {turn}"));
                    }
                    let place = usize::try_from(random(&mut seed, 8)).unwrap();
                    let (name, first) = known.iter().nth(place).unwrap();
                    let child = keys.child(all, Scope::Key, name);
                    assert!(Arc::ptr_eq(&child, first));
                    child.record(Record::Finished(ms(1)));
                    assert!(keys.len() <= 64);
                }
            });
        }
    });
    let raced: Vec<_> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| keys.child(&all, Scope::Server, "at once"));
        let threads: Vec<_> = (0..8).map(|_| ask()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(raced.iter().all(|child| Arc::ptr_eq(child, &raced[0])));
}

#[test]
fn impossible_numbers_of_keys_are_refused_by_name() {
    for count in [0, 10_001, u32::MAX] {
        let error = MaxKeys::new(count).unwrap_err();
        assert_eq!((error.option(), error.value()), ("max_keys", count.to_string().as_str()));
    }
    assert_eq!(MaxKeys::default().get(), 256);
    assert_eq!(MaxKeys::new(10_000).map(MaxKeys::get), Ok(10_000));
}

#[test]
fn keys_of_keys_end_somewhere() {
    let all = parent(P99);
    let keys = Keys::new(MaxKeys::new(2).unwrap());
    let mut levels = vec![Arc::clone(&all)];
    for _ in 0..100 {
        let next = keys.child(levels.last().unwrap(), Scope::Key, "next");
        levels.push(next);
    }
    levels.dedup_by(|one, other| Arc::ptr_eq(one, other));
    assert_eq!(levels.len(), 1 + Keys::DEEPEST);
    assert!(levels.last().unwrap().is_young(), "it learns as any other");
}
