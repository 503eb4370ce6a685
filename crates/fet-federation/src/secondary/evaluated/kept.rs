//! Cached values of an evaluation, and their memory.

use std::collections::{BTreeSet, HashMap};

use fet_kernels::Buffer;

/// Values of lists that occur in later batches. If there is not enough room for all, the lists whose next use
/// is latest are removed.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Place of each list's values, and the batch of its next use.
    pub(super) lists: HashMap<u32, (Place, u32)>,
    /// The same lists, ordered by the batch of their next use.
    pub(super) next: BTreeSet<(u32, u32)>,
    pub(super) shelf: Shelf,
}

impl Kept {
    pub(super) fn has(&self, list: u32) -> bool {
        self.lists.contains_key(&list)
    }

    pub(super) fn values(&self, list: u32) -> &[f32] {
        self.shelf.at(self.lists[&list].0)
    }

    /// Records that a list was used; its next use is in batch `next`, or never.
    pub(super) fn renew(&mut self, list: u32, next: Option<u32>) {
        let Some((place, due)) = self.lists.get_mut(&list) else { return };
        self.next.remove(&(*due, list));
        if let Some(next) = next {
            *due = next;
            self.next.insert((next, list));
        } else {
            self.shelf.free.push(*place);
            self.lists.remove(&list);
        }
    }

    /// Keeps a list whose next use is in batch `next`, if there is room or another list's next use is later.
    /// `room` is a number of lists.
    pub(super) fn admit(&mut self, list: u32, next: u32, values: &[f32], room: usize) {
        let place = if self.lists.len() < room {
            self.shelf.place(values.len(), room)
        } else {
            let Some(&(latest, other)) = self.next.last().filter(|&&last| last > (next, list)) else {
                return;
            };
            self.next.remove(&(latest, other));
            self.lists.remove(&other).expect("it is kept").0
        };
        self.shelf.put(place, values);
        self.lists.insert(list, (place, next));
        self.next.insert((next, list));
    }
}

/// Storage for the values of lists, in a few large buffers.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    boards: Vec<Buffer>,
    block: usize,
    /// Number of places.
    pub(super) places: usize,
    pub(super) free: Vec<Place>,
}

/// A place: the board, and the offset of the values in it.
pub(super) type Place = (usize, usize);

impl Shelf {
    /// Returns a place for `block` values. A new board has no more places than `room` leaves.
    fn place(&mut self, block: usize, room: usize) -> Place {
        self.block = block;
        if self.free.is_empty() {
            let left = room - self.places;
            let board = Buffer::largest(block, block * left.min(BOARD.div_ceil(block)));
            let places = left.min(board.len() / block);
            self.places += places;
            let number = self.boards.len();
            self.free.extend((0..places).rev().map(|place| (number, place * block)));
            self.boards.push(board);
        }
        self.free.pop().expect("a board has a place")
    }

    fn at(&self, (board, start): Place) -> &[f32] {
        &self.boards[board][start..start + self.block]
    }

    fn put(&mut self, (board, start): Place, values: &[f32]) {
        self.boards[board][start..start + self.block].copy_from_slice(values);
    }
}

/// Number of values of a new board if no buffer can be reused.
const BOARD: usize = 1 << 19;
