//! Counts of the latest calls, by time.

use std::time::Duration;

use super::BreakerSettings;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Moment;

/// Into how many pieces the window is cut: what leaves it does so a piece at a time.
#[cfg(not(all(test, loom)))]
const BUCKETS: usize = 10;
#[cfg(all(test, loom))]
const BUCKETS: usize = 2;

/// Calls and failures of the latest while, counted without a lock.
///
/// Each bucket is one word: which turn of the breaker it belongs to, which lap of the window, how
/// many calls and how many failures. A count of another turn is too late; one of a later lap takes
/// the bucket over.
#[derive(Debug)]
pub(super) struct Window {
    buckets: [AtomicU64; BUCKETS],
    /// Nanoseconds of each bucket, at least 1.
    span: u64,
}

/// Calls, and how many of them failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) failures: u64,
}

/// What a bucket holds, unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    turn: u64,
    lap: u64,
    counts: Counts,
}

const TURN_BITS: u32 = 12;
const LAP_BITS: u32 = 16;
const COUNT_BITS: u32 = 18;

// A full bucket is halved, and still holds enough to open for.
const _: () = assert!(BreakerSettings::MOST_THROUGHPUT as u64 <= mask(COUNT_BITS) / 2);

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Bucket {
    fn unpack(word: u64) -> Self {
        let field = |shift: u32, bits: u32| (word >> shift) & mask(bits);
        Self {
            turn: field(2 * COUNT_BITS + LAP_BITS, TURN_BITS),
            lap: field(2 * COUNT_BITS, LAP_BITS),
            counts: Counts { calls: field(COUNT_BITS, COUNT_BITS), failures: field(0, COUNT_BITS) },
        }
    }

    fn pack(self) -> u64 {
        let Self { turn, lap, counts: Counts { calls, failures } } = self;
        turn << (2 * COUNT_BITS + LAP_BITS)
            | lap << (2 * COUNT_BITS)
            | calls << COUNT_BITS
            | failures
    }

    /// The same with one call more. A full bucket keeps the share of its failures.
    fn with(mut self, failed: bool) -> Self {
        if self.counts.calls == mask(COUNT_BITS) {
            self.counts.calls /= 2;
            self.counts.failures /= 2;
        }
        self.counts.calls += 1;
        self.counts.failures += u64::from(failed);
        self
    }
}

impl Window {
    /// Of this length.
    pub(super) fn new(length: Duration) -> Self {
        let pieces = BUCKETS as u128;
        let span = u64::try_from((length.as_nanos() / pieces).max(1)).unwrap_or(u64::MAX);
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), span }
    }

    /// Forgets everything: what is counted from now on is of this turn.
    pub(super) fn begin(&self, turn: u64) {
        let empty = Bucket { turn: turn & mask(TURN_BITS), lap: 0, counts: Counts::default() };
        for bucket in &self.buckets {
            bucket.store(empty.pack(), Ordering::Release);
        }
    }

    /// Which bucket it is time for, and in which lap.
    fn place(&self, now: Moment) -> (usize, u64) {
        let tick = now.as_nanos() / self.span;
        let pieces = BUCKETS as u64;
        let index = usize::try_from(tick % pieces).unwrap_or(0);
        (index, (tick / pieces) & mask(LAP_BITS))
    }

    /// Counts a call of this turn.
    pub(super) fn add(&self, turn: u64, now: Moment, failed: bool) {
        let (index, lap) = self.place(now);
        let turn = turn & mask(TURN_BITS);
        let bucket = &self.buckets[index];
        let mut seen = bucket.load(Ordering::Relaxed);
        loop {
            let there = Bucket::unpack(seen);
            // Read a clock, and was then kept from counting for a lap or two.
            let late = matches!(there.lap.wrapping_sub(lap) & mask(LAP_BITS), 1 | 2);
            if there.turn != turn || late && there.counts.calls > 0 {
                return;
            }
            let begin = Bucket { turn, lap, counts: Counts::default() };
            let next = if there.lap == lap { there.with(failed) } else { begin.with(failed) };
            let swap = (Ordering::AcqRel, Ordering::Relaxed);
            match bucket.compare_exchange_weak(seen, next.pack(), swap.0, swap.1) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// What was counted of this turn in the latest while.
    pub(super) fn sum(&self, turn: u64, now: Moment) -> Counts {
        let (index, lap) = self.place(now);
        let turn = turn & mask(TURN_BITS);
        let mut sum = Counts::default();
        for (position, bucket) in self.buckets.iter().enumerate() {
            let there = Bucket::unpack(bucket.load(Ordering::Acquire));
            // Those after the present one were last filled a lap ago.
            let expected =
                if position <= index { lap } else { lap.wrapping_sub(1) & mask(LAP_BITS) };
            if there.turn == turn && there.lap == expected {
                sum.calls += there.counts.calls;
                sum.failures += there.counts.failures;
            }
        }
        sum
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let window = Window::new(Duration::from_millis(100));
        window.begin(1);
        for millis in [0, 5, 15, 95] {
            window.add(1, at(millis), millis == 5);
        }
        assert_eq!(window.sum(1, at(99)), Counts { calls: 4, failures: 1 });
        assert_eq!(window.sum(1, at(100)), Counts { calls: 2, failures: 0 });
        assert_eq!(window.sum(1, at(189)).calls, 1);
        assert_eq!(window.sum(1, at(190)), Counts::default());
        assert_eq!(window.sum(1, at(10_000)), Counts::default());
        window.add(1, at(10_000), true);
        assert_eq!(window.sum(1, at(10_000)), Counts { calls: 1, failures: 1 });
    }

    #[test]
    fn another_turn_begins_anew_and_late_counts_are_ignored() {
        let window = Window::new(Duration::from_millis(100));
        window.begin(1);
        window.add(1, at(5), true);
        window.begin(2);
        assert_eq!(window.sum(2, at(5)), Counts::default());
        window.add(2, at(6), false);
        window.add(1, at(7), true);
        assert_eq!(window.sum(2, at(7)), Counts { calls: 1, failures: 0 });
        window.add(2, at(105), false);
        window.add(2, at(6), true); // a clock that was read long before
        assert_eq!(window.sum(2, at(105)), Counts { calls: 1, failures: 0 });
    }

    #[test]
    fn what_was_not_looked_at_for_long_begins_anew() {
        let window = Window::new(Duration::from_millis(10));
        for laps in [1, 63, 64, 1_000, 32_767, 32_768, 40_000, 65_535, 70_000] {
            window.begin(1);
            window.add(1, at(0), true);
            window.add(1, at(10 * laps), false);
            let expected = Counts { calls: 1, failures: 0 };
            let counted = if laps == 65_535 { Counts::default() } else { expected };
            assert_eq!(window.sum(1, at(10 * laps)), counted, "{laps}: the lap before, it seems");
        }
    }

    #[test]
    fn a_full_bucket_keeps_the_share_of_its_failures() {
        let window = Window::new(Duration::from_millis(100));
        window.begin(1);
        for call in 0..300_000 {
            window.add(1, at(0), call % 4 == 0);
        }
        let Counts { calls, failures } = window.sum(1, at(0));
        assert!(calls > 100_000, "{calls}");
        assert!((calls / 4).abs_diff(failures) < 10, "{failures} of {calls}");
    }

    #[test]
    fn the_shortest_and_longest_windows() {
        for length in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let window = Window::new(length);
            window.begin(1);
            window.add(1, Moment::ZERO, true);
            assert_eq!(window.sum(1, Moment::ZERO).failures, 1);
            window.add(1, Moment::NEVER, true);
            assert!(window.sum(1, Moment::NEVER).failures >= 1);
        }
    }
}
