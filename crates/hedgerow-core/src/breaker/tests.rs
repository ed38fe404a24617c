//! The breaker against its rules, and against a slow one that only follows them.

use std::collections::VecDeque;

use super::settings::FailureRatio;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

fn settings() -> BreakerSettings {
    BreakerSettings {
        ratio: Some(FailureRatio(0.5)),
        min_throughput: 4,
        window: 100 * MS,
        open_for: OpenFor::Always(1_000 * MS),
        ..BreakerSettings::default()
    }
}

fn admit(breaker: &Breaker, now: u64) -> Result<Ticket, Refused> {
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
fn failures_in_a_row_open_it_and_a_success_ends_the_row() {
    let settings = BreakerSettings { ratio: None, in_a_row: Some(3), ..settings() };
    let breaker = Breaker::new(settings);
    assert!(!breaker.needs_time(&admit(&breaker, 0).unwrap()));
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
    let open_for = OpenFor::By(std::sync::Arc::new(|opened| opened * 1_000 * MS));
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
}

/// The rules, followed slowly: every call of the closed turn is kept.
struct Slow {
    settings: BreakerSettings,
    state: BreakerState,
    turn: u64,
    until: u64,
    calls: VecDeque<(u64, bool)>,
    row: u32,
    running: u32,
    succeeded: u32,
}

impl Slow {
    fn turn_to(&mut self, state: BreakerState) {
        self.turn += 1;
        (self.running, self.succeeded, self.row) = (0, 0, 0);
        self.calls.clear();
        self.state = state;
    }

    fn admit(&mut self, now: u64) -> Option<u64> {
        if self.state == BreakerState::Open && now >= self.until {
            self.turn_to(BreakerState::HalfOpen);
        }
        match self.state {
            BreakerState::Closed => Some(self.turn),
            BreakerState::HalfOpen if self.running + self.succeeded < self.settings.probes => {
                self.running += 1;
                Some(self.turn)
            }
            _ => None,
        }
    }

    fn end(&mut self, turn: u64, now: u64, failed: Option<bool>) {
        if turn != self.turn {
            return;
        }
        let half_open = self.state == BreakerState::HalfOpen;
        self.running -= u32::from(half_open);
        let Some(failed) = failed else { return };
        if half_open {
            self.succeeded += u32::from(!failed);
            if failed {
                self.open(now);
            } else if self.succeeded == self.settings.probes {
                self.turn_to(BreakerState::Closed);
            }
            return;
        }
        self.calls.push_back((now / 10, failed));
        self.row = if failed { self.row + 1 } else { 0 };
        if failed && self.trips(now / 10) {
            self.open(now);
        }
    }

    fn trips(&self, tick: u64) -> bool {
        let recent = self.calls.iter().filter(|(at, _)| at + 10 > tick);
        let (calls, failures) = recent.fold((0, 0), |(calls, failures), (_, failed)| {
            (calls + 1, failures + u32::from(*failed))
        });
        let by_ratio = calls >= self.settings.min_throughput && 2 * failures >= calls;
        by_ratio || self.settings.in_a_row.is_some_and(|most| self.row >= most)
    }

    fn open(&mut self, now: u64) {
        self.until = now + 1_000;
        self.turn_to(BreakerState::Open);
    }
}

#[test]
fn it_does_what_the_rules_say_whatever_happens() {
    for seed in 0..300_u64 {
        let mut seen = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |most: u64| {
            seen ^= seen << 13;
            seen ^= seen >> 7;
            seen ^= seen << 17;
            seen % most
        };
        let settings = BreakerSettings {
            in_a_row: (seed % 3 == 0).then_some(3),
            probes: 1 + u32::try_from(draw(3)).unwrap(),
            probe_lease: Duration::MAX,
            ..settings()
        };
        let breaker = Breaker::new(settings.clone());
        let mut slow = Slow {
            settings,
            state: BreakerState::Closed,
            turn: 0,
            until: 0,
            calls: VecDeque::new(),
            row: 0,
            running: 0,
            succeeded: 0,
        };
        let (mut now, mut running) = (0, Vec::new());
        for _ in 0..400 {
            now += [0, 1, 7, 30, 400][usize::try_from(draw(5)).unwrap()];
            if draw(2) == 0 {
                let ticket = admit(&breaker, now).ok();
                let turn = slow.admit(now);
                assert_eq!(ticket.is_some(), turn.is_some(), "seed {seed} at {now}");
                running.extend(ticket.zip(turn));
            } else if !running.is_empty() {
                let index = usize::try_from(draw(running.len() as u64)).unwrap();
                let (ticket, turn) = running.swap_remove(index);
                let failed = [Some(true), Some(true), Some(false), None];
                let failed = failed[usize::try_from(draw(4)).unwrap()];
                match failed {
                    None => breaker.forget(ticket),
                    Some(true) => drop(breaker.failed(ticket, at(now))),
                    Some(false) => drop(breaker.succeeded(ticket, at(now))),
                }
                slow.end(turn, now, failed);
            }
            assert_eq!(breaker.state(), slow.state, "seed {seed} at {now}");
        }
    }
}
