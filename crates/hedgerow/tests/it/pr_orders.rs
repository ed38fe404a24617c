//! PR-70: everything fails, in every order.

use std::cell::Cell;

use hedgerow::{Attempt, Hedge, NextAction};
use tokio::time::timeout;

use crate::discipline::{Strict, Turns};
use crate::h_generator::Next;
use crate::support::{Notes, act, err, ms};

const DELAY: u64 = 20;
const LENGTHS: [u64; 5] = [0, 10, DELAY - 1, DELAY, DELAY + 1];

/// Every way to choose a length for each of `attempts` attempts.
fn combinations(attempts: u32) -> impl Iterator<Item = Vec<u64>> {
    let length = |code: usize, place: u32| LENGTHS[code / LENGTHS.len().pow(place) % LENGTHS.len()];
    (0..LENGTHS.len().pow(attempts))
        .map(move |code| (0..attempts).map(|place| length(code, place)).collect())
}

/// When the call must end if the first `started` attempts are all that can start: a failure starts
/// the next one at once, and so does a delay without one since the latest start.
fn last_end(lengths: &[u64], started: usize) -> u64 {
    let (mut starts, mut earned) = (vec![0], 0);
    let mut counted = vec![false; started];
    for now in 0.. {
        loop {
            for attempt in 0..starts.len() {
                if !counted[attempt] && starts[attempt] + lengths[attempt] <= now {
                    counted[attempt] = true;
                    earned += 1;
                }
            }
            let due = starts[starts.len() - 1] + DELAY <= now;
            if starts.len() == started || !(earned > 0 || due) {
                break;
            }
            earned -= i32::from(earned > 0);
            starts.push(now);
        }
        if counted.iter().all(|counted| *counted) {
            return now;
        }
    }
    unreachable!("time goes on until all have ended")
}

/// Runs one order; `dry` is the number of the hedge for which there is no target any more.
async fn run(hedge: &Hedge, lengths: &[u64], dry: Option<u8>) {
    let (notes, turns, asked) = (Notes::new(), Turns::default(), Cell::new(0));
    let attempts = Cell::new(0);
    let work = |attempt: Attempt| {
        attempts.set(attempts.get() + 1);
        let number = usize::from(attempt.hedge_number());
        let error = ["p", "q", "r", "s", "t"][number];
        Strict::new(act(err(lengths[number], error)), &turns)
    };
    let call = hedge.call(work).next_action(|next| -> Next {
        asked.set(asked.get() + 1);
        let is_dry = Some(next.hedge_number()) == dry;
        Ok(if is_dry { NextAction::Stop } else { NextAction::Repeat })
    });
    let answer = timeout(ms(10_000), turns.drive(call)).await;
    let what = format!("{lengths:?} dry at {dry:?}");
    assert_eq!(answer, Ok(Err("p")), "{what}");
    let started = dry.map_or(lengths.len(), usize::from);
    assert_eq!(notes.at(), last_end(lengths, started), "{what}");
    assert_eq!(attempts.get(), started, "{what}");
    let stopped = usize::from(dry.is_some());
    assert_eq!(asked.get(), started - 1 + stopped, "{what}");
}

async fn every_order(attempts: u32) {
    let plain = Hedge::after(ms(DELAY)).max_hedges(attempts - 1);
    let hedges = crate::support::both(plain);
    for (index, lengths) in combinations(attempts).enumerate() {
        let hedge = &hedges[index % 2];
        run(hedge, &lengths, None).await;
        for dry in 1..attempts {
            run(&hedges[(index + 1) % 2], &lengths, u8::try_from(dry).ok()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_70_two_attempts_fail_in_every_order() {
    every_order(2).await;
}

#[tokio::test(start_paused = true)]
async fn pr_70_three_attempts_fail_in_every_order() {
    every_order(3).await;
}

#[tokio::test(start_paused = true)]
async fn pr_70_five_attempts_fail_in_every_order() {
    every_order(5).await;
}

#[test]
fn the_oracle_counts_as_people_do() {
    assert_eq!(last_end(&[10, 10], 2), 20);
    assert_eq!(last_end(&[21, 21], 2), 41);
    assert_eq!(last_end(&[20, 20], 2), 40);
    assert_eq!(last_end(&[0, 0, 0], 3), 0);
    assert_eq!(last_end(&[21, 0, 21], 3), 41, "the hedge fails at 20");
    assert_eq!(last_end(&[21, 0, 21], 1), 21);
    assert_eq!(combinations(3).count(), 125);
}
