//! Large buffers that are used again in the next step: fresh memory costs a page fault for every 4 KiB.
//!
//! What waits and what is in use are together never more than 5/4 of what was once in use at a time: memory that comes from
//! elsewhere, as a message's does, displaces what waited longest. The quarter is for buffers that take turns: those of a step's
//! way back wait while the decoder has its own.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), waiting: 0, used: 0, most: 0 });

/// The buffers that wait, longest first, and how many values there are.
struct Pool {
    idle: Vec<Vec<f32>>,
    waiting: usize,
    used: usize,
    most: usize,
}

impl Pool {
    /// The smallest of those that wait and have room for `length` values, but not for more than `most`.
    fn take(&mut self, length: usize, most: usize) -> Option<Vec<f32>> {
        let fits = |values: &Vec<f32>| (length..=most).contains(&values.len());
        let best = (0..self.idle.len()).filter(|&i| fits(&self.idle[i])).min_by_key(|&i| self.idle[i].len());
        let values = self.idle.remove(best?);
        self.waiting -= values.len();
        Some(values)
    }

    /// The largest of those that wait, if it has room for `least` values.
    fn take_largest(&mut self, least: usize) -> Option<Vec<f32>> {
        let largest = (0..self.idle.len()).max_by_key(|&i| self.idle[i].len());
        let values = self.idle.remove(largest.filter(|&i| self.idle[i].len() >= least)?);
        self.waiting -= values.len();
        Some(values)
    }

    fn note_use(&mut self, values: usize) {
        self.used += values;
        self.most = self.most.max(self.used);
    }

    fn keep(&mut self, values: Vec<f32>) {
        self.waiting += values.len();
        self.idle.push(values);
        let mut oldest = 0;
        while self.idle.len() - oldest > MOST_IDLE || self.waiting + self.used > self.most + self.most / 4 {
            self.waiting -= self.idle[oldest].len();
            oldest += 1;
        }
        self.idle.drain(..oldest);
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A slice of floats whose memory is kept for the next buffer of about its size.
#[derive(Debug, Default)]
pub struct Buffer {
    values: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// `length` values, which hold whatever was there before.
    pub(crate) fn any(length: usize) -> Self {
        Self::within(length, 2 * length)
    }

    /// The largest that waits, if it has room for `least` values; else one with room for `otherwise` values.
    pub fn largest(least: usize, otherwise: usize) -> Self {
        let mut pool = pool();
        let Some(values) = pool.take_largest(least) else {
            drop(pool);
            return Self::any(otherwise);
        };
        pool.note_use(values.len());
        Self { length: values.len(), values }
    }

    /// The same for memory that will have another owner, to whom what is too much would be lost.
    fn leaving(length: usize) -> Self {
        Self::within(length, length + length / 8)
    }

    fn within(length: usize, most: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let mut pool = pool();
        let found = pool.take(length, most);
        pool.note_use(found.as_ref().map_or(length, Vec::len));
        drop(pool);
        let values = found.unwrap_or_else(|| vec![0.0; length]);
        Self { values, length }
    }

    /// `length` zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let mut buffer = Self::any(length);
        buffer.fill(0.0);
        buffer
    }
}

impl From<Vec<f32>> for Buffer {
    /// Takes the memory, which the next buffer of about its size will get.
    fn from(values: Vec<f32>) -> Self {
        pool().note_use(values.len());
        Self { length: values.len(), values }
    }
}

impl Buffer {
    /// The values, to be kept by another owner.
    pub(crate) fn into_vec(mut self) -> Vec<f32> {
        let mut values = std::mem::take(&mut self.values);
        pool().used -= values.len();
        values.truncate(self.length);
        values
    }
}

/// Portions of this many values are copied at a time.
const PORTION: usize = 1 << 16;

/// A copy, in memory that was used before if there is any, made on all threads.
pub fn copy(values: &[f32]) -> Vec<f32> {
    let mut copy = Buffer::leaving(values.len());
    copy.par_chunks_mut(PORTION)
        .zip(values.par_chunks(PORTION))
        .for_each(|(to, from)| to.copy_from_slice(from));
    copy.into_vec()
}

/// `rows` of `width` values each, that `row` names by their number, made on all threads in memory that was used before.
///
/// # Panics
/// If a row has another width.
pub fn collect<'a>(rows: usize, width: usize, row: impl Fn(usize) -> &'a [f32] + Sync) -> Vec<f32> {
    let mut all = Buffer::leaving(rows * width);
    all.par_chunks_mut(width.max(1)).enumerate().for_each(|(index, to)| to.copy_from_slice(row(index)));
    all.into_vec()
}

/// Memory that is no longer needed, for whoever wants as much next.
pub fn give_back(values: Vec<f32>) {
    drop(Buffer::from(values));
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::any(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.values.is_empty() {
            let values = std::mem::take(&mut self.values);
            let mut pool = pool();
            pool.used -= values.len();
            pool.keep(values);
        }
    }
}

/// How many buffers wait at most.
const MOST_IDLE: usize = 512;

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole() {
        let values: Vec<f32> = (0..3 * PORTION + 5).map(|value| value as f32).collect();
        assert_eq!(copy(&values), values);
        let width = 7;
        let reversed = collect(9, width, |row| &values[(8 - row) * width..(9 - row) * width]);
        let expected: Vec<f32> =
            (0..9).rev().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect();
        assert_eq!(reversed, expected);
        assert_eq!((copy(&[]), collect(0, 3, |_| &[])), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_waits_is_little_more_than_was_in_use_at_a_time() {
        // A pool of its own: that of the process has other tests beside it.
        let mut pool = Pool { idle: Vec::new(), waiting: 0, used: 0, most: 0 };
        let enter = |pool: &mut Pool, length: usize| {
            pool.note_use(length);
            vec![0.0; length]
        };
        let leave = |pool: &mut Pool, values: Vec<f32>| {
            pool.used -= values.len();
            pool.keep(values);
        };
        let both = [enter(&mut pool, 300), enter(&mut pool, 100)];
        for values in both {
            leave(&mut pool, values);
        }
        assert_eq!((pool.waiting, pool.idle.len()), (400, 2));
        assert!(pool.take(50, 200).is_some_and(|values| values.len() == 100), "the smallest that fits");
        assert!(pool.take(50, 200).is_none(), "300 values are too many");
        for _ in 0..10 {
            let foreign = enter(&mut pool, 100);
            leave(&mut pool, foreign);
            assert!(pool.waiting + pool.used <= 500, "{} wait", pool.waiting);
        }
        assert!(pool.take_largest(101).is_none() && pool.take_largest(100).is_some());
        assert!(pool.idle.iter().all(|values| values.len() == 100), "what waited longest went");
    }

    /// A tape stays in use while first the decoder's way back and then that of the blocks have buffers: neither displaces the other's.
    #[test]
    fn buffers_that_take_turns_all_stay() {
        let mut pool = Pool { idle: Vec::new(), waiting: 0, used: 0, most: 0 };
        let (tape, steps) = (vec![0.0; 1000], 3);
        pool.note_use(tape.len());
        for step in 0..steps {
            for length in [300, 100] {
                let found = pool.take(length, 2 * length);
                assert_eq!(found.is_some(), step > 0, "{length} values in step {step}");
                pool.note_use(length);
                let values = found.unwrap_or_else(|| vec![0.0; length]);
                pool.used -= length;
                pool.keep(values);
            }
        }
    }
}
