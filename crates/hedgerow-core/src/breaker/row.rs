//! Failures one after the other.

use crate::sync::{AtomicU64, Ordering};

/// How many there are, in the lower half; the turn of the breaker they belong to in the upper.
#[derive(Debug, Default)]
pub(super) struct Row(AtomicU64);

/// The lower half of a word.
const ROW: u64 = u32::MAX as u64;

impl Row {
    /// One more failure in a row: how many there are.
    pub(super) fn grows(&self, turn: u64) -> u32 {
        self.change(turn, |length| length.saturating_add(1))
    }

    /// A success ends the row.
    pub(super) fn ends(&self, turn: u64) {
        if self.0.load(Ordering::Relaxed) & ROW != 0 {
            self.change(turn, |_| 0);
        }
    }

    /// Changes the length of the row, if it is of this turn or an earlier one.
    fn change(&self, turn: u64, change: impl Fn(u32) -> u32) -> u32 {
        let own = turn << 32;
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (theirs, length) = (seen & !ROW, u32::try_from(seen & ROW).unwrap_or(u32::MAX));
            let ahead = theirs.wrapping_sub(own);
            if theirs != own && ahead < 1 << 63 {
                return 0; // somebody is further on: this comes too late
            }
            let length = change(if theirs == own { length } else { 0 });
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let next = own | u64::from(length);
            match self.0.compare_exchange_weak(seen, next, success, failure) {
                Ok(_) => return length,
                Err(other) => seen = other,
            }
        }
    }
}
