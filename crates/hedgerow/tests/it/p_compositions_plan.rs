//! What attempts and callers do, at random.

use fastrand::Rng;

/// What an attempt does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Act {
    Good(u64),
    Bad(u64),
    Fatal(u64),
    /// It says that it never started.
    Busy(u64),
    Panics(u64),
    /// There is not even a future.
    PanicsAtOnce,
    Never,
}

/// What a caller does.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Plan {
    pub(crate) acts: Vec<Act>,
    pub(crate) begin_at: u64,
    /// After how many polls it is dropped.
    pub(crate) polls: usize,
    /// Whether it is dropped only when the next poll is due.
    pub(crate) late: bool,
    pub(crate) cancel_at: Option<u64>,
    pub(crate) idempotent: bool,
    pub(crate) tokens: bool,
    pub(crate) deadline: Option<u64>,
    /// Whether rejections are worth another try.
    pub(crate) handles_rejections: bool,
}

impl Plan {
    /// It succeeds at once, and waits for that.
    pub(crate) fn simple() -> Self {
        Self {
            acts: vec![Act::Good(0)],
            begin_at: 0,
            polls: usize::MAX,
            late: false,
            cancel_at: None,
            idempotent: true,
            tokens: false,
            deadline: None,
            handles_rejections: false,
        }
    }

    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let grid = |rng: &mut Rng, steps| 5 * rng.u64(..steps);
        let mut act = || {
            let after = grid(rng, 8);
            match rng.u32(..24) {
                0..8 => Act::Good(after),
                8..16 => Act::Bad(after),
                16 | 17 => Act::Fatal(after),
                18 | 19 => Act::Busy(after),
                20 => Act::Panics(after),
                21 => Act::PanicsAtOnce,
                _ => Act::Never,
            }
        };
        let acts = (0..5).map(|_| act()).collect();
        let (polls, late) = match rng.u32(..3) {
            0 => (rng.usize(..8), rng.bool()),
            _ => (usize::MAX, false),
        };
        Self {
            acts,
            begin_at: grid(rng, 6),
            polls,
            late,
            cancel_at: (rng.u32(..5) == 0).then(|| grid(rng, 20)),
            idempotent: rng.u32(..4) != 0,
            tokens: rng.bool(),
            deadline: (rng.u32(..5) == 0).then(|| 5 + grid(rng, 12)),
            handles_rejections: rng.u32(..3) == 0,
        }
    }

    /// Whether attempts have tokens.
    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens || self.cancel_at.is_some() || self.deadline.is_some()
    }
}
