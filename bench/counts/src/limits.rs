//! The limits that `counts` holds Hedgerow to: the one place to change them.

/// Allocations of a call whose primary answers at the first poll.
pub const READY_ALLOCATIONS: u64 = 0;

/// Allocations of a call whose primary is pending once, so that the hedge's timer is armed and
/// disarmed.
pub const PENDING_ALLOCATIONS: u64 = 0;

/// Allocations of a call whose one hedge starts and wins: the hedge's own box.
pub const HEDGED_ALLOCATIONS: u64 = 1;

/// Allocations of a stream whose primary is pending once before its first item, which is read.
pub const STREAM_ALLOCATIONS: u64 = PENDING_ALLOCATIONS;

/// Allocations of a stream whose one hedge has the first item: the hedge's own box.
pub const HEDGED_STREAM_ALLOCATIONS: u64 = HEDGED_ALLOCATIONS;

/// Instructions of a call whose primary answers at the first poll, the loop around it included.
pub const READY_INSTRUCTIONS: u64 = 60;

/// Instructions of a call whose primary is pending once and whose timer is the ring, the scheduler's
/// among them, and those of the ring's thread: how often that wakes differs from run to run, so that
/// the count does, by some ten in a hundred.
pub const PENDING_ON_RING_INSTRUCTIONS: u64 = 1_200;

/// Instructions of an execution that answers at the first poll, through a timeout, a retry, a circuit
/// breaker and a hedge; one clock read is among them.
pub const PIPELINE_READY_INSTRUCTIONS: u64 = 1_000;

/// The same by the ring. Valgrind has the system asked for the time of its latest tick.
pub const PIPELINE_READY_ON_RING_INSTRUCTIONS: u64 = 950;

/// The same of one whose primary is pending once: two timers of tokio's and the scheduler are among them.
pub const PIPELINE_PENDING_INSTRUCTIONS: u64 = 3_000;
