use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Shards whose driver is this test: it looks when the test says so.
fn by_hand() -> &'static Shards {
    Box::leak(Box::new(Shards::new(2, |_| Ok(std::thread::current()))))
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn somebody() -> (Arc<Woken>, Waker) {
    let woken = Arc::<Woken>::default();
    (Arc::clone(&woken), Waker::from(woken))
}

#[test]
fn whoever_waits_is_woken_at_the_tick_and_not_before() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    let (woken, waker) = somebody();
    let key = shards.arm(0, 50, 50, waker.clone()).unwrap();
    shards.look(49, &mut driver);
    assert_eq!(woken.times(), 0);
    assert!(!shards.is_over(key, &waker));
    shards.look(50, &mut driver);
    assert_eq!(woken.times(), 1);
    assert!(shards.is_over(key, &waker));
    shards.look(9_000, &mut driver);
    assert_eq!(woken.times(), 1);
}

#[test]
fn the_latest_waker_is_woken_and_the_earlier_one_let_go() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    let [(first, early), (second, late)] = [somebody(), somebody()];
    let key = shards.arm(0, 50, 50, early).unwrap();
    assert_eq!(Arc::strong_count(&first), 2);
    assert!(!shards.is_over(key, &late));
    assert_eq!(Arc::strong_count(&first), 1);
    shards.look(50, &mut driver);
    assert_eq!((first.times(), second.times()), (0, 1));
}

#[test]
fn who_is_disarmed_is_not_woken_and_leaves_nothing_behind() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    for round in 0..1_000 {
        let (woken, waker) = somebody();
        let key = shards.arm(0, round + 50, 50, waker).unwrap();
        shards.disarm(key);
        assert_eq!(Arc::strong_count(&woken), 1);
        shards.look(round + 50, &mut driver);
        assert_eq!(woken.times(), 0);
    }
    assert_eq!(shards.slots(0), 1, "slots follow the calls in flight");
}

#[test]
fn a_sleep_that_is_never_dropped_frees_its_slot_at_the_deadline() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    for round in 0..100 {
        let (_, waker) = somebody();
        shards.arm(0, round + 1, 1, waker).unwrap();
        shards.look(round + 1, &mut driver);
    }
    assert_eq!(shards.slots(0), 1);
}

#[test]
fn many_who_are_due_at_once_are_all_woken_in_one_look() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    let (woken, waker) = somebody();
    for thread in 0..1_000 {
        shards.arm(thread, 5, 5, waker.clone()).unwrap();
    }
    shards.look(5, &mut driver);
    assert_eq!(woken.times(), 1_000);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics; the test expects it");
    }
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_being_woken() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    let (woken, waker) = somebody();
    for thread in 0..6 {
        let waker = if thread % 3 == 1 { Waker::from(Arc::new(Panics)) } else { waker.clone() };
        shards.arm(thread, 5, 5, waker).unwrap();
    }
    shards.look(5, &mut driver);
    assert_eq!(woken.times(), 4);
    shards.arm(0, 9, 4, waker).unwrap();
    shards.look(9, &mut driver);
    assert_eq!(woken.times(), 5, "and it goes on");
}

/// Has something to do with the timer whenever it is cloned, dropped or woken.
struct Reenters(&'static Shards, Option<Key>);

impl Reenters {
    fn uses_the_timer(&self) {
        let key = self.0.arm(0, 7, 7, Waker::noop().clone());
        self.0.disarm(key.expect("it needs no thread"));
        if let Some(key) = self.1 {
            self.0.disarm(key);
        }
    }
}

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        self.uses_the_timer();
    }
}

impl Drop for Reenters {
    fn drop(&mut self) {
        self.uses_the_timer();
    }
}

#[test]
fn wakers_may_use_the_timer_themselves() {
    let (shards, mut driver) = (by_hand(), Driver::new());
    let other = shards.arm(0, 90, 90, Waker::noop().clone()).unwrap();
    let reenters = || Waker::from(Arc::new(Reenters(shards, Some(other))));
    let key = shards.arm(0, 5, 5, reenters()).unwrap();
    assert!(!shards.is_over(key, &reenters()), "drops the first");
    shards.look(5, &mut driver);
    let key = shards.arm(0, 9, 4, reenters()).unwrap();
    shards.disarm(key);
    shards.look(100, &mut driver);
    assert_eq!(shards.slots(0), 3, "the two, and that of a destructor");
}

#[test]
fn without_a_thread_nobody_waits() {
    let shards = Shards::new(2, |_| Err(io::Error::other("no more threads")));
    let shards: &'static Shards = Box::leak(Box::new(shards));
    let (woken, waker) = somebody();
    for _ in 0..3 {
        let refused = shards.arm(0, 50, 50, waker.clone()).unwrap_err();
        assert_eq!(refused.to_string(), "no more threads");
    }
    assert_eq!(Arc::strong_count(&woken), 2, "the clones are gone");
    assert_eq!(shards.slots(0), 1);
}

/// What happens to shards that the test drives in time.
#[derive(Clone, Debug)]
enum Do {
    Arm(u32, u64),
    Disarm(usize),
    Wait(u64),
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => (0..4u32, prop_oneof![1..20u64, 1..5_000u64]).prop_map(|(t, d)| Do::Arm(t, d)),
        3 => any::<usize>().prop_map(Do::Disarm),
        3 => prop_oneof![0..20u64, 0..9_000u64].prop_map(Do::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A driver that looks when it said it would, or at once when it is woken, wakes everybody at
    /// their tick.
    #[test]
    fn everybody_is_woken_at_the_tick(script in vec(doing(), 1..80)) {
        let (shards, mut driver) = (by_hand(), Driver::new());
        let mut waiting: Vec<(u64, Arc<Woken>, Key)> = vec![];
        let mut now = 0;
        for what in script {
            match what {
                Do::Arm(thread, delay) => {
                    let (woken, waker) = somebody();
                    let looks_at = shards.wake_at.load(Ordering::Relaxed);
                    let key = shards.arm(thread, now + delay, delay, waker).unwrap();
                    waiting.push((now + delay, woken, key));
                    if now + delay < looks_at {
                        shards.look(now, &mut driver);
                    }
                }
                Do::Disarm(which) if !waiting.is_empty() => {
                    let (_, woken, key) = waiting.swap_remove(which % waiting.len());
                    shards.disarm(key);
                    prop_assert_eq!((woken.times(), Arc::strong_count(&woken)), (0, 1));
                }
                Do::Disarm(_) => {}
                Do::Wait(by) => {
                    let until = now + by;
                    let mut looks = 0;
                    while shards.wake_at.load(Ordering::Relaxed) <= until {
                        now = shards.wake_at.load(Ordering::Relaxed);
                        shards.look(now, &mut driver);
                        let due = waiting.extract_if(.., |(tick, ..)| *tick <= now);
                        for (tick, woken, _) in due {
                            prop_assert_eq!((tick, woken.times()), (now, 1));
                        }
                        looks += 1;
                    }
                    prop_assert!(looks <= by + 16 + 8 * waiting.len() as u64, "{} looks", looks);
                    now = until;
                }
            }
            for (tick, woken, _) in &waiting {
                prop_assert!(*tick > now);
                prop_assert_eq!(woken.times(), 0);
            }
        }
    }
}
