//! What a call costs where a clock is too noisy to tell: allocations and instructions.
//!
//! The program `counts` checks Hedgerow with it; the benchmark `peers` measures everyone with the
//! same pieces.

pub mod allocator;
pub mod callgrind;
pub mod operation;
pub mod scheduler;
