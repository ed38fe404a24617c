//! A global allocator that counts for the passes that ask for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

/// The system's allocator. Counts while a [`Counting`] lives; costs one relaxed load and a branch
/// for each operation otherwise, so timed passes may run under it.
#[derive(Debug)]
pub struct CountingAllocator;

impl CountingAllocator {
    #[inline]
    fn allocated(size: usize) {
        if COUNTING.load(Relaxed) {
            ALLOCATIONS.fetch_add(1, Relaxed);
            ALLOCATED.fetch_add(size as u64, Relaxed);
        }
    }

    #[inline]
    fn freed(size: usize) {
        if COUNTING.load(Relaxed) {
            FREED.fetch_add(size as u64, Relaxed);
        }
    }
}

#[expect(
    unsafe_code,
    reason = "`GlobalAlloc` is an unsafe trait; each method hands its arguments to the system's allocator unchanged"
)]
// SAFETY: all memory comes from and goes back to `System`; counting touches atomics only.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::allocated(layout.size());
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::allocated(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::freed(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::freed(layout.size());
        Self::allocated(size);
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// What the whole process allocated over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Blocks asked for; growing a block counts as one.
    pub allocations: u64,
    /// Bytes asked for.
    pub allocated: u64,
    /// Bytes given back.
    pub freed: u64,
}

impl Counted {
    fn totals() -> Self {
        Self {
            allocations: ALLOCATIONS.load(Relaxed),
            allocated: ALLOCATED.load(Relaxed),
            freed: FREED.load(Relaxed),
        }
    }

    /// Bytes held at the end beyond those held at the start.
    pub fn live(&self) -> i64 {
        self.allocated.wrapping_sub(self.freed).cast_signed()
    }
}

/// Switches counting on for as long as it lives. One at a time.
#[derive(Debug)]
pub struct Counting {
    before: Counted,
}

impl Counting {
    /// Starts to count.
    #[must_use = "counting ends when this is dropped"]
    pub fn start() -> Self {
        let already = COUNTING.swap(true, Relaxed);
        assert!(!already, "only one count at a time");
        Self { before: Counted::totals() }
    }

    /// What was counted so far.
    pub fn so_far(&self) -> Counted {
        let now = Counted::totals();
        Counted {
            allocations: now.allocations - self.before.allocations,
            allocated: now.allocated - self.before.allocated,
            freed: now.freed - self.before.freed,
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTING.store(false, Relaxed);
    }
}
