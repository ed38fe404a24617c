//! The learner's parts, in every order of what several threads do.

#![allow(clippy::unwrap_used, reason = "a model that cannot go on has failed")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::buckets::{BUCKETS, Bucket};
use super::recorder::{Counts, Recorder};
use super::rounds::Rounds;
use crate::sharded::models::{Part, at_once, in_every_order};
use crate::time::Moment;

#[test]
fn of_two_that_come_at_once_one_makes_the_round() {
    in_every_order(5, || {
        let rounds = Arc::new(Rounds::new(0, Duration::from_millis(50)));
        let come = |at: u64| -> Part {
            let rounds = Arc::clone(&rounds);
            Box::new(move || {
                let now = Moment::from_millis(at);
                if rounds.is_due(now)
                    && let Some(mut made) = rounds.begin(now)
                {
                    *made += 1;
                }
            })
        };
        at_once([come(100), come(101)]);
        assert_eq!(*rounds.begin(Moment::from_millis(151)).unwrap(), 1);
    });
}

/// Latencies in two blocks.
const FAST: usize = 3;
const SLOW: usize = 40;

/// A recorder, what its reader has seen, and how much of each latency it was told.
struct Read {
    recorder: Recorder,
    /// The checker does not see this lock, and so cannot be kept from an order by it.
    told: Mutex<(Counts, [u32; 2])>,
}

impl Read {
    fn read(&self) {
        let (seen, told) = &mut *self.told.lock().unwrap();
        let (counts, used) = self.recorder.since(seen);
        let outside = |index: &usize| !used.contains(index) && counts.done.0[*index] > 0;
        assert_eq!((0..BUCKETS).find(outside), None);
        told[0] += counts.done.0[FAST];
        told[1] += counts.done.0[SLOW];
    }

    fn told(&self) -> [u32; 2] {
        self.told.lock().unwrap().1
    }
}

#[test]
fn a_record_is_read_once_by_whoever_reads_meanwhile() {
    in_every_order(2, || {
        let read = Arc::new(Read {
            recorder: Recorder::default(),
            told: Mutex::new((Counts::NONE, [0; 2])),
        });
        let part = |part: fn(&Read)| -> Part {
            let read = Arc::clone(&read);
            Box::new(move || part(&read))
        };
        at_once([
            part(|read| read.recorder.done(Bucket::at(FAST))),
            part(|read| read.recorder.done(Bucket::at(SLOW))),
            part(|read| {
                read.recorder.done(Bucket::at(FAST));
                read.read();
            }),
        ]);
        let told = read.told();
        assert!(told[0] <= 2 && told[1] <= 1, "{told:?}");
        at_once([part(Read::read)]);
        assert_eq!(read.told(), [2, 1], "nothing is lost");
    });
}
