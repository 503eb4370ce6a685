//! Rows of bits, packed into words: the form in which encoded keys are compared.

use std::fmt;

/// A table of bit vectors of equal length.
#[derive(Clone, PartialEq, Eq)]
pub struct BitTable {
    bits: usize,
    words: Vec<u64>,
}

impl BitTable {
    /// A table of `rows` vectors of `bits` zeros.
    ///
    /// # Panics
    /// If `bits` is not a positive multiple of 64: whole words are compared.
    pub fn zeros(rows: usize, bits: usize) -> Self {
        assert!(bits > 0 && bits.is_multiple_of(64), "{bits} bits are whole words of 64");
        Self { bits, words: vec![0; rows * bits / 64] }
    }

    /// A table of rows that are there already, word by word.
    ///
    /// # Panics
    /// If the words do not fill whole rows.
    pub fn from_words(bits: usize, words: Vec<u64>) -> Self {
        assert!(bits > 0 && bits.is_multiple_of(64), "{bits} bits are whole words of 64");
        assert!(words.len().is_multiple_of(bits / 64), "{} words are whole rows of {bits} bits", words.len());
        Self { bits, words }
    }

    /// The length of a vector.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// How many vectors there are.
    pub fn rows(&self) -> usize {
        self.words.len() / self.width()
    }

    /// Words of a vector.
    pub fn width(&self) -> usize {
        self.bits / 64
    }

    /// One vector.
    pub fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width()..(row + 1) * self.width()]
    }

    /// One vector, to be changed.
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        let width = self.width();
        &mut self.words[row * width..(row + 1) * width]
    }

    /// All words, row by row.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// All words, row by row, to be changed.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// How many bits of a vector are set.
    pub fn ones(&self, row: usize) -> u32 {
        self.row(row).iter().map(|word| word.count_ones()).sum()
    }
}

/// Shows the shape, never the bits: they stand for someone's keys.
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

/// Whether bit `at` of a vector is set.
#[inline]
pub(crate) fn get(row: &[u64], at: usize) -> bool {
    row[at / 64] >> (at % 64) & 1 == 1
}
