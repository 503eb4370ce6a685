//! Place for the next request of a program, in which a newer request replaces an older one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Slot {
    content: Mutex<Content>,
    arrived: Condvar,
}

#[derive(Default)]
struct Content {
    /// Number and bytes of the request.
    request: Option<(u64, Vec<u8>)>,
    is_closed: bool,
}

impl Slot {
    /// Puts a request in place of one that was not taken.
    pub(super) fn put(&self, number: u64, bytes: Vec<u8>) {
        self.content().request = Some((number, bytes));
        self.arrived.notify_one();
    }

    /// Ends the wait for requests. A request that was not taken is dropped.
    pub(super) fn close(&self) {
        self.content().is_closed = true;
        self.arrived.notify_one();
    }

    /// Waits for a request; returns `None` if the place is closed.
    pub(super) fn take(&self) -> Option<(u64, Vec<u8>)> {
        let waits = |content: &mut Content| content.request.is_none() && !content.is_closed;
        let content = self.arrived.wait_while(self.content(), waits);
        let mut content = content.unwrap_or_else(PoisonError::into_inner);
        if content.is_closed { None } else { content.request.take() }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_request_is_taken_until_the_place_is_closed() {
        let slot = Slot::default();
        slot.put(1, vec![1]);
        slot.put(2, vec![2]);
        assert_eq!(slot.take(), Some((2, vec![2])));
        slot.put(3, vec![3]);
        slot.close();
        assert_eq!(slot.take(), None);
    }
}
