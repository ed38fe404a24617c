//! The breaker against a slow one, which only follows the rules.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::tests::{MS, admit, at, settings};
use super::*;

/// The rules, followed slowly: every call of the closed turn is kept.
struct Slow {
    settings: BreakerSettings,
    state: BreakerState,
    turn: u64,
    until: u64,
    calls: VecDeque<(u64, bool)>,
    row: u32,
    opened: u32,
    running: u32,
    succeeded: u32,
}

impl Slow {
    fn turn_to(&mut self, state: BreakerState) {
        self.turn += 1;
        (self.running, self.succeeded, self.row) = (0, 0, 0);
        self.calls.clear();
        match state {
            BreakerState::Open => self.opened += 1,
            BreakerState::Closed => self.opened = 0,
            BreakerState::HalfOpen | BreakerState::Isolated => {}
        }
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
        self.turn_to(BreakerState::Open);
        self.until = now + 400 * u64::from(self.opened);
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
            open_for: OpenFor::By(Arc::new(|opened| opened * 400 * MS)),
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
            opened: 0,
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
