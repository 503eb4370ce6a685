//! What kernels work in, kept from one call to the next: fresh memory would be cleared and entered page by page in every portion of
//! every step.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Rooms of one kind that nobody works in: no more than were once worked in at a time.
pub(crate) struct Rooms<T: 'static>(Mutex<Vec<T>>);

impl<T: Default> Rooms<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// A room, which holds whatever was left in it, until the guard is dropped.
    pub(crate) fn enter(&'static self) -> Room<T> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Room { inside: idle.unwrap_or_default(), home: self }
    }
}

/// A room that somebody works in.
pub(crate) struct Room<T: Default + 'static> {
    inside: T,
    home: &'static Rooms<T>,
}

impl<T: Default> Deref for Room<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inside
    }
}

impl<T: Default> DerefMut for Room<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inside
    }
}

impl<T: Default> Drop for Room<T> {
    fn drop(&mut self) {
        let inside = std::mem::take(&mut self.inside);
        self.home.0.lock().unwrap_or_else(PoisonError::into_inner).push(inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_used_again_and_never_by_two() {
        static ROOMS: Rooms<Vec<u8>> = Rooms::new();
        let mut first = ROOMS.enter();
        first.push(1);
        let mut second = ROOMS.enter();
        assert!(second.is_empty(), "the first is worked in");
        second.push(2);
        drop(first);
        assert_eq!(*ROOMS.enter(), [1]);
        drop(second);
        let (a, b, c) = (ROOMS.enter(), ROOMS.enter(), ROOMS.enter());
        assert_eq!((a.len(), b.len(), c.len()), (1, 1, 0));
        assert_ne!(*a, *b);
    }
}
