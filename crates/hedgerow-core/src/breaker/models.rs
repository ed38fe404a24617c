//! The breaker, in every order of what two threads do.

#![allow(clippy::unwrap_used, reason = "a model that cannot go on has failed")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::window::Window;
use super::{Breaker, BreakerSettings, BreakerState, OpenFor, SharedBreaker};
use crate::sharded::models::{Part, at_once, in_every_order};
use crate::sync::Ordering;
use crate::time::Moment;

const NOW: Moment = Moment::from_millis(1);
const LATER: Moment = Moment::from_millis(2_000);

fn breaker(probes: u32) -> Arc<Breaker> {
    Arc::new(Breaker::new(BreakerSettings {
        ratio: None,
        in_a_row: Some(1),
        open_for: OpenFor::By(Arc::new(|opened| Duration::from_secs(opened.into()))),
        probes,
        ..BreakerSettings::default()
    }))
}

/// One that has opened: a failure is enough.
fn opened(probes: u32) -> Arc<Breaker> {
    let breaker = breaker(probes);
    let (ticket, _) = breaker.admit(|| NOW).unwrap();
    assert!(breaker.failed(ticket, NOW).is_some());
    breaker
}

/// Runs both at once, and says what each came to.
fn both(one: impl Does, two: impl Does) -> [bool; 2] {
    let came = Arc::new(Mutex::new([false; 2]));
    let part = |index: usize, does: Box<dyn FnOnce() -> bool + Send>| -> Part {
        let came = Arc::clone(&came);
        Box::new(move || {
            let to = does();
            came.lock().unwrap()[index] = to;
        })
    };
    at_once([part(0, Box::new(one)), part(1, Box::new(two))]);
    let came = *came.lock().unwrap();
    came
}

trait Does: FnOnce() -> bool + Send + 'static {}

impl<F: FnOnce() -> bool + Send + 'static> Does for F {}

#[test]
fn model_the_last_place_of_a_probe_goes_to_one() {
    in_every_order(3, || {
        let breaker = opened(1);
        let probe = |breaker: Arc<Breaker>| move || breaker.admit(|| LATER).is_ok();
        let admitted = both(probe(Arc::clone(&breaker)), probe(Arc::clone(&breaker)));
        assert!(admitted[0] != admitted[1]);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
    });
}

#[test]
fn model_a_probe_that_is_forgotten_makes_room_for_one() {
    in_every_order(3, || {
        let breaker = opened(1);
        let (ticket, _) = breaker.admit(|| LATER).unwrap();
        let (gives_up, comes) = (Arc::clone(&breaker), Arc::clone(&breaker));
        let forget = move || {
            gives_up.forget(ticket);
            true
        };
        let [_, admitted] = both(forget, move || comes.admit(|| LATER).is_ok());
        // Whoever came too early finds the place free now.
        assert_eq!(breaker.admit(|| LATER).is_ok(), !admitted);
    });
}

#[test]
fn model_two_failures_open_it_once() {
    in_every_order(3, || {
        let breaker = breaker(1);
        let fail = || {
            let (breaker, (ticket, _)) = (Arc::clone(&breaker), breaker.admit(|| NOW).unwrap());
            move || breaker.failed(ticket, NOW).is_some()
        };
        let opened = both(fail(), fail());
        assert!(opened[0] != opened[1]);
        let refused = breaker.admit(|| NOW).unwrap_err();
        assert_eq!(refused.state, BreakerState::Open);
        assert_eq!(refused.retry_after, Some(Duration::from_secs(1)), "as for the first time");
    });
}

#[test]
fn model_a_probe_that_fails_keeps_its_place_until_it_has_opened() {
    in_every_order(3, || {
        let breaker = opened(1);
        let (ticket, _) = breaker.admit(|| LATER).unwrap();
        let (fails, comes) = (Arc::clone(&breaker), Arc::clone(&breaker));
        let close = move || {
            let Ok((ticket, _)) = comes.admit(|| LATER) else { return false };
            comes.succeeded(ticket, LATER).is_some()
        };
        let [opens, closes] = both(move || fails.failed(ticket, LATER).is_some(), close);
        assert_eq!((opens, closes), (true, false));
        assert_eq!(breaker.state(), BreakerState::Open);
    });
}

#[test]
fn model_what_the_hand_does_while_it_opens_holds() {
    in_every_order(3, || {
        let breaker = breaker(1);
        let (ticket, _) = breaker.admit(|| NOW).unwrap();
        let (fails, hand) = (Arc::clone(&breaker), Arc::clone(&breaker));
        let [_, isolated] =
            both(move || fails.failed(ticket, NOW).is_some(), move || hand.isolate().is_some());
        assert!(isolated);
        assert_eq!(breaker.state(), BreakerState::Isolated);
    });
}

#[test]
fn model_what_the_hand_does_while_it_is_made_holds() {
    for isolates in [true, false] {
        in_every_order(3, move || {
            let shared = Arc::new(SharedBreaker::default());
            if !isolates {
                shared.isolate();
            }
            let (makes, hand) = (Arc::clone(&shared), Arc::clone(&shared));
            let make =
                move || makes.get_or_make(&BreakerSettings::default()).settings().probes == 1;
            let switch = move || {
                if isolates {
                    hand.isolate()
                } else {
                    hand.reset()
                };
                true
            };
            assert_eq!(both(make, switch), [true; 2]);
            assert_eq!(shared.state() == BreakerState::Isolated, isolates);
        });
    }
}

#[test]
fn model_a_result_that_meets_a_reset_counts_before_it_or_not_at_all() {
    in_every_order(3, || {
        let breaker = breaker(1);
        let (ticket, _) = breaker.admit(|| NOW).unwrap();
        let (late, resets) = (Arc::clone(&breaker), Arc::clone(&breaker));
        let [opened, closed] =
            both(move || late.failed(ticket, NOW).is_some(), move || resets.reset().is_some());
        assert_eq!(opened, closed, "what it opened was closed, or it opened nothing");
        assert_eq!(breaker.state(), BreakerState::Closed);
        // Nothing of it is left in the row: one more failure is the first.
        assert_eq!(breaker.row.grows(super::unpack(breaker.turn.load(Ordering::Relaxed)).0), 1);
    });
}

#[test]
fn model_no_count_of_a_window_is_lost() {
    in_every_order(3, || {
        let window = Arc::new(Window::new(Duration::from_millis(100)));
        window.begin(1);
        let add = |failed| {
            let window = Arc::clone(&window);
            move || {
                window.add(1, NOW, failed);
                true
            }
        };
        both(add(true), add(false));
        let sum = window.sum(1, NOW);
        assert_eq!((sum.calls, sum.failures), (2, 1));
    });
}
