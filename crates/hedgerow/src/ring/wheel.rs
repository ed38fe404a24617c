//! What is due when, as plain arithmetic: no clock, no thread, no lock.
//!
//! A wheel is a hierarchy of rings with 64 places each. A place of the lowest ring is one tick (a
//! millisecond), a place of the next ring is 64 ticks, and so on: an entry lies on the ring of the
//! highest digit, in base 64, in which its tick differs from the present. When time comes to a
//! place of an upper ring, its entries move down. Entries are slots of one vector, linked by index,
//! so that inserting and removing cost the same however many there are.

/// How many bits of a tick choose a place.
const BITS: u32 = 6;
/// Places of one ring.
const PLACES: u32 = 1 << BITS;
/// The bits of the lowest digit.
const DIGIT: u64 = 63;
/// Rings: together they hold 8,900 years of milliseconds.
const RINGS: u32 = 8;
/// The last tick that a wheel can hold.
const LAST: u64 = (1 << (BITS * RINGS)) - 1;
/// No slot.
const NONE: u32 = u32::MAX;

/// Entries by the tick at which they are due.
#[derive(Debug)]
pub(super) struct Wheel<W> {
    /// As many as entries were ever in it at once.
    slots: Vec<Slot<W>>,
    /// The first of the free slots, which are linked by `next`.
    free: u32,
    /// Everything that was due before this tick is gone.
    elapsed: u64,
    /// Which places of each ring have entries: a bit each.
    occupied: [u64; RINGS as usize],
    /// The first slot of each place.
    heads: [u32; (RINGS * PLACES) as usize],
}

#[derive(Debug)]
struct Slot<W> {
    held: Option<W>,
    tick: u64,
    previous: u32,
    next: u32,
    /// How often the slot was freed, so that a key to what it held before opens nothing. It comes
    /// round after 2^32 times, long after the key is gone.
    generation: u32,
    place: u32,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

impl<W> Wheel<W> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            elapsed: 0,
            occupied: [0; RINGS as usize],
            heads: [NONE; (RINGS * PLACES) as usize],
        }
    }

    /// Puts an entry in, due at `tick` or as soon as may be after it.
    pub(super) fn insert(&mut self, tick: u64, held: W) -> Key {
        let tick = tick.clamp(self.elapsed, LAST);
        let index = match self.free {
            NONE => {
                let index = u32::try_from(self.slots.len()).ok().filter(|index| *index != NONE);
                let index = index.expect("fewer than 2^32 calls wait at once");
                let (held, place) = (Some(held), 0);
                let slot = Slot { held, tick, previous: NONE, next: NONE, generation: 0, place };
                self.slots.push(slot);
                index
            }
            index => {
                let slot = &mut self.slots[index as usize];
                self.free = slot.next;
                slot.held = Some(held);
                slot.tick = tick;
                index
            }
        };
        self.link(index);
        Key { index, generation: self.slots[index as usize].generation }
    }

    /// Takes an entry out; `None` if it is gone already.
    pub(super) fn remove(&mut self, key: Key) -> Option<W> {
        self.get_mut(key)?;
        self.unlink(key.index);
        self.release(key.index)
    }

    /// What an entry holds; `None` if it is gone already.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut W> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation == key.generation { slot.held.as_mut() } else { None }
    }

    /// Takes out what is due by `now`, but `most` entries in all. Whether there may be more.
    pub(super) fn expire(&mut self, now: u64, most: usize, due: &mut Vec<W>) -> bool {
        let now = now.min(LAST);
        while let Some((start, place)) = self.earliest().filter(|(start, _)| *start <= now) {
            self.elapsed = start;
            let lowest = place < PLACES;
            while self.heads[place as usize] != NONE {
                if lowest && due.len() >= most {
                    return true;
                }
                let index = self.heads[place as usize];
                self.unlink(index);
                if lowest {
                    due.extend(self.release(index));
                } else {
                    self.link(index);
                }
            }
        }
        self.elapsed = self.elapsed.max(now);
        false
    }

    /// When to look again: no entry is due before it.
    pub(super) fn next(&self) -> Option<u64> {
        self.earliest().map(|(start, _)| start)
    }

    /// How many slots there are, free ones included.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The earliest place with entries, and the tick at which it begins. Entries of a lower ring
    /// are all before those of an upper one, and no ring holds anything before the present.
    fn earliest(&self) -> Option<(u64, u32)> {
        let (ring, places) = (0..).zip(self.occupied).find(|(_, places)| *places != 0)?;
        let (digit, shift) = (places.trailing_zeros(), BITS * ring);
        let above = self.elapsed >> (shift + BITS) << (shift + BITS);
        Some((above | u64::from(digit) << shift, ring * PLACES + digit))
    }

    /// The place of a tick, seen from the present.
    fn place(&self, tick: u64) -> u32 {
        let ring = ((self.elapsed ^ tick) | DIGIT).ilog2() / BITS;
        ring * PLACES + ((tick >> (BITS * ring)) & DIGIT) as u32
    }

    fn link(&mut self, index: u32) {
        let place = self.place(self.slots[index as usize].tick);
        let first = std::mem::replace(&mut self.heads[place as usize], index);
        if first != NONE {
            self.slots[first as usize].previous = index;
        }
        self.occupied[(place / PLACES) as usize] |= 1 << (place % PLACES);
        let slot = &mut self.slots[index as usize];
        slot.previous = NONE;
        slot.next = first;
        slot.place = place;
    }

    fn unlink(&mut self, index: u32) {
        let Slot { previous, next, place, .. } = self.slots[index as usize];
        if next != NONE {
            self.slots[next as usize].previous = previous;
        }
        if previous != NONE {
            self.slots[previous as usize].next = next;
            return;
        }
        self.heads[place as usize] = next;
        if next == NONE {
            self.occupied[(place / PLACES) as usize] &= !(1 << (place % PLACES));
        }
    }

    /// Frees the slot of an entry that is linked nowhere.
    fn release(&mut self, index: u32) -> Option<W> {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = std::mem::replace(&mut self.free, index);
        slot.held.take()
    }
}

#[cfg(test)]
mod tests;
