//! Things that come and go, in places that are used again.

use crate::queue::Key;

/// Places for things that come and go. A key names a thing for as long as it is there; afterwards
/// the same place has another tenant.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    tenant: u32,
    thing: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn add(&mut self, thing: T) -> Key {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.thing = Some(thing);
            return Key { index, tenant: place.tenant };
        }
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 calls at once");
        self.places.push(Place { tenant: 0, thing: Some(thing) });
        Key { index, tenant: 0 }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.tenant == key.tenant { place.thing.as_mut() } else { None }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        if place.tenant == key.tenant { place.thing.as_ref() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.vacate(key)?.take()
    }

    /// Removes what is too large to be moved out for nothing.
    pub(crate) fn clear(&mut self, key: Key) {
        if let Some(thing) = self.vacate(key) {
            *thing = None;
        }
    }

    /// Makes a place free, and leaves it to the caller to empty it.
    fn vacate(&mut self, key: Key) -> Option<&mut Option<T>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.tenant != key.tenant || place.thing.is_none() {
            return None;
        }
        place.tenant = place.tenant.wrapping_add(1);
        self.free.push(key.index);
        Some(&mut place.thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_tenant_only() {
        let mut slots = Slots::default();
        let first = slots.add("a");
        assert_eq!(slots.get_mut(first), Some(&mut "a"));
        assert_eq!(slots.remove(first), Some("a"));
        let second = slots.add("b");
        assert_eq!(second.index, first.index, "places are used again");
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        slots.clear(first);
        assert_eq!(slots.get(second), Some(&"b"));
        slots.clear(second);
        assert_eq!(slots.add("c").index, first.index);
        assert_eq!(slots.get(second), None);
    }
}
