//! What is kept of an evaluation, and the memory that it lies in.

use std::collections::{BTreeSet, HashMap};

use fet_kernels::Buffer;

/// The values of lists that stand in later batches. Where there is no room for all, those go that are wanted last.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Where the values of a list are, and when it is wanted next.
    pub(super) lists: HashMap<u32, (Place, u32)>,
    /// The same lists by when they are wanted next.
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

    /// A list was used; it is wanted again in batch `next`, or never.
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

    /// Keeps a list that is wanted in batch `next`, if there is room or another that is wanted later. `room` is for how many lists.
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

/// The values of a list each, in a few large buffers.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    boards: Vec<Buffer>,
    block: usize,
    /// How many places there are.
    pub(super) places: usize,
    pub(super) free: Vec<Place>,
}

/// The board, and the values before it there.
pub(super) type Place = (usize, usize);

impl Shelf {
    /// A place for `block` values. A board has no more places than `room` leaves.
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

/// Values of a board for which no buffer waits.
const BOARD: usize = 1 << 19;
