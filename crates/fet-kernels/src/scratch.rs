//! Scratch memory of kernels, reused between calls: the system would clear and map fresh memory page by page in every step.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Unused scratch memories of one kind; their number never exceeds the largest number in use at a time.
pub(crate) struct ScratchPool<T: 'static>(Mutex<Vec<T>>);

impl<T: Default> ScratchPool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Borrows scratch memory with arbitrary content until the guard is dropped.
    pub(crate) fn borrow(&'static self) -> Borrowed<T> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Borrowed { value: idle.unwrap_or_default(), pool: self }
    }
}

/// Scratch memory in use.
pub(crate) struct Borrowed<T: Default + 'static> {
    value: T,
    pool: &'static ScratchPool<T>,
}

impl<T: Default> Deref for Borrowed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Borrowed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default> Drop for Borrowed<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_memory_and_never_lends_it_twice() {
        static POOL: ScratchPool<Vec<u8>> = ScratchPool::new();
        let mut first = POOL.borrow();
        first.push(1);
        let mut second = POOL.borrow();
        assert!(second.is_empty(), "the first is in use");
        second.push(2);
        drop(first);
        assert_eq!(*POOL.borrow(), [1]);
        drop(second);
        let (a, b, c) = (POOL.borrow(), POOL.borrow(), POOL.borrow());
        assert_eq!((a.len(), b.len(), c.len()), (1, 1, 0));
        assert_ne!(*a, *b);
    }
}
