//! What a panic leaves behind for whoever is dropped because of it.

/// Says that there was a panic, to whatever is dropped because of it, unless it is [done](Note::done)
/// before. Nothing is written otherwise.
pub(super) struct Note<'a>(&'a mut bool);

impl<'a> Note<'a> {
    #[inline]
    pub(super) fn on(panicked: &'a mut bool) -> Self {
        Self(panicked)
    }

    /// There was none.
    #[inline]
    pub(super) fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        *self.0 = true;
    }
}
