//! Rows of bits packed into words. The searches compare encoded keys in this form.

use std::fmt;

use rayon::prelude::*;

/// A table of bit vectors of equal length.
#[derive(Clone, PartialEq, Eq)]
pub struct BitTable {
    bits: usize,
    words: Vec<u64>,
}

impl BitTable {
    /// Returns a table of `rows` vectors of `bits` zeros.
    ///
    /// # Panics
    /// If `bits` is not a positive multiple of 64, since the searches compare whole words.
    pub fn zeros(rows: usize, bits: usize) -> Self {
        assert!(bits > 0 && bits.is_multiple_of(64), "{bits} bits must be whole words of 64");
        Self { bits, words: vec![0; rows * bits / 64] }
    }

    /// Returns a table with the rows of `words`, one row after another.
    ///
    /// # Panics
    /// If the words do not fill whole rows.
    pub fn from_words(bits: usize, words: Vec<u64>) -> Self {
        assert!(bits > 0 && bits.is_multiple_of(64), "{bits} bits must be whole words of 64");
        assert!(
            words.len().is_multiple_of(bits / 64),
            "{} words must be whole rows of {bits} bits",
            words.len()
        );
        Self { bits, words }
    }

    /// Returns the length of a vector in bits.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Returns the number of vectors.
    pub fn rows(&self) -> usize {
        self.words.len() / self.width()
    }

    /// Returns the number of words of a vector.
    pub fn width(&self) -> usize {
        self.bits / 64
    }

    /// Returns the words of one vector.
    pub fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width()..(row + 1) * self.width()]
    }

    /// Returns the words of one vector, mutably.
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        let width = self.width();
        &mut self.words[row * width..(row + 1) * width]
    }

    /// Returns all words, row by row.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns all words, row by row, mutably.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Returns the number of set bits of a vector.
    pub fn ones(&self, row: usize) -> u32 {
        self.row(row).iter().map(|word| word.count_ones()).sum()
    }

    /// Returns a table with vectors of `bits` bits. `change` receives each vector that has a set bit, and the
    /// zeros of its new vector. An empty vector stays empty, so that it does not resemble other empty vectors.
    pub(crate) fn map_rows(&self, bits: usize, change: impl Fn(&[u64], &mut [u64]) + Sync) -> Self {
        let mut out = Self::zeros(self.rows(), bits);
        let (from, to) = (self.width(), out.width());
        out.words_mut().par_chunks_mut(to).zip(self.words().par_chunks(from)).for_each(|(to, from)| {
            if from.iter().any(|word| *word != 0) {
                change(from, to);
            }
        });
        out
    }
}

/// Shows the shape and hides the bits, since they encode personal keys.
impl fmt::Debug for BitTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitTable[{} x {}]", self.rows(), self.bits)
    }
}

/// Sets bit `at` of a vector.
#[inline]
pub(crate) fn set(row: &mut [u64], at: usize) {
    row[at / 64] |= 1 << (at % 64);
}

/// Returns true if bit `at` of a vector is set.
#[inline]
pub(crate) fn get(row: &[u64], at: usize) -> bool {
    row[at / 64] >> (at % 64) & 1 == 1
}
