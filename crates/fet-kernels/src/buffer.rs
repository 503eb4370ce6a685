//! Large buffers that are used again in the next step: fresh memory costs a page fault for every 4 KiB.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

static IDLE: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// A slice of floats whose memory is kept for the next buffer of about its size.
#[derive(Debug, Default)]
pub struct Buffer {
    values: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// `length` values, which hold whatever was there before.
    pub(crate) fn any(length: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let mut idle = IDLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fits = |values: &Vec<f32>| (length..=4 * length).contains(&values.len());
        let best = (0..idle.len()).filter(|&i| fits(&idle[i])).min_by_key(|&i| idle[i].len());
        if let Some(index) = best {
            return Self { values: idle.remove(index), length };
        }
        drop(idle);
        Self { values: vec![0.0; length], length }
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
        Self { length: values.len(), values }
    }
}

impl Buffer {
    /// The values, to be kept by another owner.
    pub(crate) fn into_vec(mut self) -> Vec<f32> {
        let mut values = std::mem::take(&mut self.values);
        values.truncate(self.length);
        values
    }
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
            let mut idle = IDLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // What waited longest goes first, so that sizes that are no longer asked for do not pile up.
            if idle.len() >= MOST_IDLE {
                idle.remove(0);
            }
            idle.push(values);
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
