//! The breaker against its rules.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::settings::FailureRatio;
use super::*;

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

pub(super) fn settings() -> BreakerSettings {
    BreakerSettings {
        ratio: Some(FailureRatio(0.5)),
        min_throughput: 4,
        window: 100 * MS,
        open_for: OpenFor::Always(1_000 * MS),
        ..BreakerSettings::default()
    }
}

pub(super) fn admit(breaker: &Breaker, now: u64) -> Result<Ticket, Refused> {
    breaker.admit(|| at(now)).map(|(ticket, _)| ticket)
}

/// Lets a call through and ends it at once.
fn call(breaker: &Breaker, now: u64, failed: bool) -> Option<Transition> {
    let ticket = admit(breaker, now).expect("it goes through");
    if failed { breaker.failed(ticket, at(now)) } else { breaker.succeeded(ticket, at(now)) }
}

fn opened(breaker: &Breaker, now: u64) {
    for _ in 0..4 {
        call(breaker, now, true);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn it_opens_at_the_ratio_once_there_is_enough_to_go_by() {
    let breaker = Breaker::new(settings());
    assert_eq!([true, true, false].map(|failed| call(&breaker, 0, failed)), [None; 3]);
    let open_for = Some(1_000 * MS);
    let transition = Transition { state: BreakerState::Open, open_for };
    assert_eq!(call(&breaker, 1, true), Some(transition));
    let refused = admit(&breaker, 1).unwrap_err();
    assert_eq!(refused, Refused { state: BreakerState::Open, retry_after: open_for });
    assert_eq!(admit(&breaker, 901).unwrap_err().retry_after, Some(100 * MS));
}

#[test]
fn failures_that_left_the_window_do_not_count() {
    let breaker = Breaker::new(settings());
    for now in [0, 0, 0, 150, 150] {
        assert_eq!(call(&breaker, now, true), None);
    }
    assert_eq!(call(&breaker, 155, true), None);
    assert!(call(&breaker, 155, true).is_some());
}

#[test]
fn how_exactly_a_success_has_to_be_told_depends_on_what_counts_it() {
    let (row, half) = (Some(1), Some(FailureRatio(0.5)));
    for (ratio, window, expected) in [
        (None, 100, NeedsTime::No),
        (None, 30_000, NeedsTime::No),
        (half, 999, NeedsTime::Exactly),
        (half, 1_000, NeedsTime::Roughly),
    ] {
        let window = Duration::from_millis(window);
        let set = BreakerSettings { ratio, window, in_a_row: row, ..settings() };
        let breaker = Breaker::new(set);
        assert_eq!(breaker.needs_time(&admit(&breaker, 0).unwrap()), expected, "{window:?}");
        assert!(call(&breaker, 0, true).is_some());
        let probe = admit(&breaker, 60_000).unwrap();
        assert_eq!(breaker.needs_time(&probe), NeedsTime::Exactly, "its lease is exact");
    }
}

#[test]
fn failures_in_a_row_open_it_and_a_success_ends_the_row() {
    let settings = BreakerSettings { ratio: None, in_a_row: Some(3), ..settings() };
    let breaker = Breaker::new(settings);
    for failed in [true, true, false, true, true] {
        assert_eq!(call(&breaker, 0, failed), None);
    }
    assert!(call(&breaker, 0, true).is_some());
}

#[test]
fn all_probes_must_succeed_and_there_are_never_more() {
    let breaker = Breaker::new(BreakerSettings { probes: 2, ..settings() });
    opened(&breaker, 0);
    let (one, transition) = breaker.admit(|| at(1_000)).unwrap();
    assert_eq!(transition.unwrap().state, BreakerState::HalfOpen);
    let two = admit(&breaker, 1_000).unwrap();
    assert_eq!(admit(&breaker, 1_000).unwrap_err().state, BreakerState::HalfOpen);
    assert_eq!(breaker.succeeded(one, at(1_010)), None);
    assert!(admit(&breaker, 1_010).is_err(), "one has succeeded, one runs: there are two");
    assert_eq!(breaker.succeeded(two, at(1_020)).unwrap().state, BreakerState::Closed);
    assert_eq!(call(&breaker, 1_020, true), None, "what was counted before is forgotten");
}

#[test]
fn a_probe_that_fails_opens_it_for_one_new_time() {
    let open_for = OpenFor::By(Arc::new(|opened| opened * 1_000 * MS));
    let breaker = Breaker::new(BreakerSettings { probes: 2, open_for, ..settings() });
    opened(&breaker, 0);
    let (one, two) = (admit(&breaker, 1_000).unwrap(), admit(&breaker, 1_000).unwrap());
    let transition = breaker.failed(one, at(1_010)).unwrap();
    assert_eq!(transition.open_for, Some(2_000 * MS), "it is the second time");
    assert_eq!(breaker.failed(two, at(1_500)), None, "it was of an earlier turn");
    assert!(admit(&breaker, 3_009).is_err());
    let probe = admit(&breaker, 3_010).unwrap();
    assert_eq!(breaker.succeeded(probe, at(3_010)), None);
}

/// Two probes; whenever it is asked how long it stays open, something happens first. And how often
/// it had opened, by what it was asked.
fn troubled(
    trouble: impl Fn(&Breaker, usize) + Send + Sync + 'static,
) -> (Arc<Breaker>, Arc<Mutex<Vec<u32>>>) {
    let (asked, own) = (Arc::new(Mutex::new(vec![])), Arc::new(OnceLock::<Arc<Breaker>>::new()));
    let (asks, breaker) = (Arc::clone(&asked), Arc::clone(&own));
    let open_for = OpenFor::By(Arc::new(move |opened| {
        let mut asks = asks.lock().expect("nothing panics under it");
        asks.push(opened);
        let times = asks.len();
        drop(asks);
        trouble(breaker.get().expect("it is made"), times);
        1_000 * MS
    }));
    let breaker = Arc::new(Breaker::new(BreakerSettings { probes: 2, open_for, ..settings() }));
    assert!(own.set(Arc::clone(&breaker)).is_ok());
    (breaker, asked)
}

fn panics(of: impl FnOnce() -> Option<Transition>) -> bool {
    catch_unwind(AssertUnwindSafe(of)).is_err()
}

#[test]
fn whoever_says_how_long_it_stays_open_may_switch_it() {
    let (breaker, _) = troubled(|breaker, _| assert!(breaker.isolate().is_some()));
    for _ in 0..4 {
        assert_eq!(call(&breaker, 0, true), None, "what the hand did was sooner");
    }
    assert_eq!(breaker.state(), BreakerState::Isolated);
    let (breaker, asked) = troubled(|breaker, times| {
        if times <= 2 {
            assert_eq!(breaker.reset(), None, "it has not opened yet");
        }
    });
    for _ in 0..8 {
        assert_eq!(call(&breaker, 0, true), None);
    }
    opened(&breaker, 0);
    assert_eq!(*asked.lock().unwrap(), [1; 3]);
}

#[test]
fn whoever_says_how_long_it_stays_open_may_panic() {
    let (breaker, asked) = troubled(|_, times| assert_ne!(times, 1));
    for _ in 0..3 {
        assert_eq!(call(&breaker, 0, true), None);
    }
    assert!(panics(|| call(&breaker, 0, true)));
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert!(call(&breaker, 0, true).is_some());
    assert_eq!(*asked.lock().unwrap(), [1, 1], "it had not opened yet");
}

#[test]
fn a_probe_that_fails_keeps_its_place_until_it_has_opened() {
    for panics_then in [false, true] {
        let (breaker, asked) = troubled(move |breaker, times| {
            if times == 2 {
                assert!(admit(breaker, 1_000).is_err(), "there are two");
                assert!(!panics_then);
            }
        });
        opened(&breaker, 0);
        let (one, two) = (admit(&breaker, 1_000).unwrap(), admit(&breaker, 1_000).unwrap());
        assert_eq!(panics(|| breaker.failed(one, at(1_000))), panics_then);
        if panics_then {
            assert_eq!(breaker.state(), BreakerState::HalfOpen);
            assert!(admit(&breaker, 1_000).is_ok(), "then it makes room");
        }
        assert_eq!(breaker.failed(two, at(1_000)).is_some(), panics_then);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(asked.lock().unwrap()[1..], [2, 2][..=usize::from(panics_then)]);
    }
}

#[test]
fn pr_19_a_probe_that_is_forgotten_makes_room() {
    let breaker = Breaker::new(settings());
    opened(&breaker, 0);
    let probe = admit(&breaker, 1_000).unwrap();
    assert!(admit(&breaker, 1_000).is_err());
    breaker.forget(probe);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "that says nothing");
    let next = admit(&breaker, 1_000).unwrap();
    assert_eq!(breaker.succeeded(next, at(1_001)).unwrap().state, BreakerState::Closed);
}

#[test]
fn pr_19_a_probe_that_never_ends_makes_room_when_its_lease_is_over() {
    let breaker = Breaker::new(BreakerSettings { probe_lease: 500 * MS, ..settings() });
    opened(&breaker, 0);
    let late = admit(&breaker, 1_000).unwrap();
    assert_eq!(admit(&breaker, 1_400).unwrap_err().retry_after, Some(100 * MS));
    let next = admit(&breaker, 1_500).unwrap();
    assert_eq!(breaker.failed(late, at(1_600)), None, "it was given up");
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(breaker.succeeded(next, at(1_600)).is_some());
}

#[test]
fn pr_67_late_results_of_an_earlier_turn_change_nothing() {
    let breaker = Breaker::new(settings());
    let mut early: Vec<_> = (0..10).map(|_| admit(&breaker, 0).unwrap()).collect();
    opened(&breaker, 0);
    assert_eq!(breaker.failed(early.pop().unwrap(), at(900)), None);
    assert!(admit(&breaker, 999).is_err());
    let probe = admit(&breaker, 1_000).unwrap();
    assert_eq!(breaker.failed(early.pop().unwrap(), at(1_000)), None);
    assert_eq!(breaker.succeeded(early.pop().unwrap(), at(1_000)), None);
    assert!(admit(&breaker, 1_000).is_err(), "none of them was a probe");
    assert!(breaker.succeeded(probe, at(1_001)).is_some());
    assert_eq!(breaker.failed(early.pop().unwrap(), at(1_002)), None);
    assert_eq!(breaker.window.sum(breaker.turn.load(Ordering::Relaxed) >> 2, at(1_002)).calls, 0);
}

#[test]
fn it_is_isolated_and_reset_by_hand() {
    let breaker = Breaker::new(settings());
    let under_way = admit(&breaker, 0).unwrap();
    assert_eq!(breaker.isolate().unwrap().state, BreakerState::Isolated);
    assert_eq!(breaker.isolate(), None);
    let refused = Refused { state: BreakerState::Isolated, retry_after: None };
    assert_eq!(admit(&breaker, 1_000_000), Err(refused));
    assert_eq!(breaker.succeeded(under_way, at(1)), None);
    assert_eq!(breaker.reset().unwrap().state, BreakerState::Closed);
    assert_eq!(breaker.reset(), None);
    assert!(admit(&breaker, 1).is_ok());
}

#[test]
fn the_longest_open_time_is_for_ever() {
    let open_for = OpenFor::Always(Duration::MAX);
    let breaker = Breaker::new(BreakerSettings { open_for, ..settings() });
    opened(&breaker, 0);
    let refused = breaker.admit(|| Moment::from_nanos(u64::MAX - 1)).unwrap_err();
    assert_eq!(refused, Refused { state: BreakerState::Open, retry_after: None });
}

#[test]
fn impossible_numbers_are_refused_by_name() {
    let names = |settings: BreakerSettings| {
        let mut mistakes = Vec::new();
        settings.check(&mut mistakes);
        mistakes.iter().map(|mistake| mistake.option().to_owned()).collect::<Vec<_>>()
    };
    assert!(names(BreakerSettings::default()).is_empty());
    for ratio in [0.0, -0.1, 1.1, f64::NAN] {
        let ratio = Some(FailureRatio(ratio));
        assert_eq!(names(BreakerSettings { ratio, ..settings() }), ["failure_ratio"]);
    }
    let all = BreakerSettings {
        window: Duration::ZERO,
        min_throughput: 0,
        in_a_row: Some(0),
        probes: 0,
        probe_lease: Duration::ZERO,
        ..settings()
    };
    let expected = ["window", "min_throughput", "consecutive", "probes", "probe_lease"];
    assert_eq!(names(all), expected);
    let most = BreakerSettings { min_throughput: BreakerSettings::MOST_THROUGHPUT, ..settings() };
    let more = BreakerSettings { min_throughput: most.min_throughput + 1, ..settings() };
    assert_eq!((names(most), names(more)), (vec![], vec!["min_throughput".to_owned()]));
}

/// However many came before, and although full buckets are halved.
#[test]
fn the_highest_throughput_is_reached_within_an_instant() {
    let min_throughput = BreakerSettings::MOST_THROUGHPUT;
    for before in [0, 1, 100_000, 262_142, 262_143, 262_144, 400_000] {
        let breaker = Breaker::new(BreakerSettings { min_throughput, ..settings() });
        let good = (0..before).filter(|_| call(&breaker, 0, false).is_some()).count();
        assert_eq!(good, 0);
        let enough = before.max(min_throughput) + 2;
        assert!((0..enough).any(|_| call(&breaker, 0, true).is_some()), "after {before}");
        let alone = Breaker::new(BreakerSettings { min_throughput, ..settings() });
        let needed = (1..=before + min_throughput).find(|_| call(&alone, 0, true).is_some());
        assert_eq!(needed, Some(min_throughput));
    }
}
