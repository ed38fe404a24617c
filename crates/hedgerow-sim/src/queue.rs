//! What happens next: events in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that is going to happen. In one instant attempts end before anything else, and timers
/// fire last, as in the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A server is done with a job.
    Done(Key),
    /// A server hears that nobody wants a job any more.
    Cancel(Key),
    /// A call wants to be asked again.
    Timer(Key),
}

/// A place in a [`Slots`](crate::slots::Slots), and which of its tenants is meant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) tenant: u32,
}

impl Event {
    fn class(self) -> u64 {
        match self {
            Self::Done(_) => 0,
            Self::Cancel(_) => 1,
            Self::Timer(_) => 2,
        }
    }
}

/// Events by time; those of one instant by class, then in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    added: u64,
}

impl Queue {
    /// The order in one instant: the class above, the count below.
    const CLASS: u32 = 60;

    pub(crate) fn add(&mut self, at: u64, event: Event) {
        self.added += 1;
        self.heap.push(Reverse((at, event.class() << Self::CLASS | self.added, event)));
    }

    /// When the next event happens.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(class: u8, index: u32) -> Event {
        let key = Key { index, tenant: 0 };
        [Event::Done(key), Event::Cancel(key), Event::Timer(key)][usize::from(class)]
    }

    proptest! {
        /// Events added at any time come out as a stable sort by time and class would have them.
        #[test]
        fn events_come_in_order(added in prop::collection::vec((0..20_u64, 0..3_u8), 0..200)) {
            let mut queue = Queue::default();
            let mut sorted = Vec::new();
            for (index, (at, class)) in (0..).zip(added) {
                queue.add(at, event(class, index));
                sorted.push((at, class, index));
            }
            sorted.sort_by_key(|(at, class, _)| (*at, *class));
            for (at, class, index) in sorted {
                prop_assert_eq!(queue.next_time(), Some(at));
                prop_assert_eq!(queue.pop(), Some((at, event(class, index))));
            }
            prop_assert_eq!(queue.pop(), None);
        }

        /// Adding while taking out never turns time back.
        #[test]
        fn time_never_runs_backwards(steps in prop::collection::vec((0..50_u64, 0..3_u8), 1..200)) {
            let (mut queue, mut now) = (Queue::default(), 0);
            for (index, (ahead, class)) in (0..).zip(steps) {
                queue.add(now + ahead, event(class, index));
                if ahead % 2 == 0 {
                    let (at, _) = queue.pop().unwrap();
                    prop_assert!(at >= now);
                    now = at;
                }
            }
        }
    }
}
