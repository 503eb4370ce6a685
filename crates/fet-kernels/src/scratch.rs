//! Workspaces of kernels, reused between calls: the system would clear and map fresh memory page by page in every step.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Unused workspaces of one kind; their number never exceeds the largest number in use at a time.
pub(crate) struct Rooms<T: 'static>(Mutex<Vec<T>>);

impl<T: Default> Rooms<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Borrows a workspace with arbitrary content until the guard is dropped.
    pub(crate) fn enter(&'static self) -> Room<T> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Room { inside: idle.unwrap_or_default(), home: self }
    }
}

/// Workspace in use.
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
