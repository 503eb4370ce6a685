//! Pool of large buffers for reuse in the next step: fresh memory costs a page fault for every 4 KiB.
//!
//! Waiting and used buffers together never exceed 5/4 of the largest amount in use so far. A buffer that comes from outside the
//! pool, such as the memory of a message, replaces the buffer that has waited longest. The extra quarter covers buffers that
//! alternate: buffers of the blocks' backward pass wait while the decoder uses its own.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), waiting: 0, used: 0, most: 0 });

/// Waiting buffers, longest wait first, and their total number of values.
struct Pool {
    idle: Vec<Vec<f32>>,
    waiting: usize,
    used: usize,
    most: usize,
}

impl Pool {
    /// Takes the smallest waiting buffer with room for `length` to `most` values.
    fn take(&mut self, length: usize, most: usize) -> Option<Vec<f32>> {
        let fits = |values: &Vec<f32>| (length..=most).contains(&values.len());
        let best = (0..self.idle.len()).filter(|&i| fits(&self.idle[i])).min_by_key(|&i| self.idle[i].len());
        let values = self.idle.remove(best?);
        self.waiting -= values.len();
        Some(values)
    }

    /// Takes the largest waiting buffer, if it has room for `least` values.
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

/// Slice of floats; on drop, its memory returns to the pool.
#[derive(Debug, Default)]
pub struct Buffer {
    values: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// Takes a buffer of `length` values with arbitrary content.
    pub(crate) fn any(length: usize) -> Self {
        Self::within(length, 2 * length)
    }

    /// Takes the largest waiting buffer if it has room for `least` values, otherwise one with room for `otherwise` values.
    pub fn largest(least: usize, otherwise: usize) -> Self {
        let mut pool = pool();
        let Some(values) = pool.take_largest(least) else {
            drop(pool);
            return Self::any(otherwise);
        };
        pool.note_use(values.len());
        Self { length: values.len(), values }
    }

    /// Takes a buffer that will leave the pool, so that excess capacity would be wasted.
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
    /// Puts this memory into the pool, for the next buffer of a similar size.
    fn from(values: Vec<f32>) -> Self {
        pool().note_use(values.len());
        Self { length: values.len(), values }
    }
}

impl Buffer {
    /// Removes the values from the pool; the caller owns them.
    pub(crate) fn into_vec(mut self) -> Vec<f32> {
        let mut values = std::mem::take(&mut self.values);
        pool().used -= values.len();
        values.truncate(self.length);
        values
    }
}

/// Number of values per parallel copy task.
const PORTION: usize = 1 << 16;

/// Copies values on all threads, into memory from the pool if possible.
pub fn copy(values: &[f32]) -> Vec<f32> {
    let mut copy = Buffer::leaving(values.len());
    copy.par_chunks_mut(PORTION)
        .zip(values.par_chunks(PORTION))
        .for_each(|(to, from)| to.copy_from_slice(from));
    copy.into_vec()
}

/// Copies `rows` rows of `width` values on all threads into memory from the pool; `row` returns each row by its index.
///
/// # Panics
/// If a row has another width.
pub fn collect<'a>(rows: usize, width: usize, row: impl Fn(usize) -> &'a [f32] + Sync) -> Vec<f32> {
    let mut all = Buffer::leaving(rows * width);
    all.par_chunks_mut(width.max(1)).enumerate().for_each(|(index, to)| to.copy_from_slice(row(index)));
    all.into_vec()
}

/// Puts memory that is no longer needed into the pool.
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

/// Largest number of waiting buffers.
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
    fn copies_every_value() {
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
    fn keeps_little_more_memory_than_was_in_use_at_a_time() {
        // A separate pool, because parallel tests share the pool of the process.
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
        assert!(
            pool.idle.iter().all(|values| values.len() == 100),
            "the longest waiting buffer was replaced"
        );
    }

    /// A tape stays in use while the decoder's backward pass and then the blocks' backward pass take buffers; neither replaces
    /// the buffers of the other.
    #[test]
    fn keeps_buffers_that_are_used_in_turn() {
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
