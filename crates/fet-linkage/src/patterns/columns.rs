//! Filters bit by bit: the records that have each bit.

use crate::bits::{BitTable, get, set};

/// A transposed table of filters, with a row of records for each bit of a filter.
pub struct Columns {
    rows: usize,
    transposed: Vec<Vec<u64>>,
    /// Set bits of each record.
    filters: Vec<Vec<u32>>,
    /// Number of records with each bit.
    counts: Vec<u32>,
    /// Groups of records with equal filters.
    equal: Vec<Vec<u32>>,
}

impl std::fmt::Debug for Columns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Columns[{} x {}]", self.rows, self.bits())
    }
}

impl Columns {
    /// Transposes a table.
    pub fn transpose(filters: &BitTable) -> Self {
        let rows = filters.rows();
        let mut transposed = vec![vec![0u64; rows.div_ceil(64)]; filters.bits()];
        let mut filters_of = Vec::with_capacity(rows);
        let mut equal: std::collections::BTreeMap<&[u64], Vec<u32>> = Default::default();
        for row in 0..rows {
            let filter = filters.row(row);
            let bits: Vec<u32> =
                (0..filters.bits()).filter(|&bit| get(filter, bit)).map(|bit| bit as u32).collect();
            bits.iter().for_each(|&bit| set(&mut transposed[bit as usize], row));
            filters_of.push(bits);
            // Filters without bits belong to empty records.
            if filters.ones(row) > 0 {
                equal.entry(filter).or_default().push(row as u32);
            }
        }
        let counts = transposed.iter().map(|column| ones(column)).collect();
        Self { rows, transposed, filters: filters_of, counts, equal: equal.into_values().collect() }
    }

    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the length of a filter.
    pub fn bits(&self) -> usize {
        self.transposed.len()
    }

    /// Returns the share of records with a bit, strictly between 0 and 1.
    pub(super) fn share(&self, bit: usize) -> f64 {
        (f64::from(self.counts[bit]) + 0.5) / (self.rows as f64 + 1.0)
    }

    /// Returns the number of records of a set that have a bit.
    pub(super) fn among(&self, bit: usize, records: &[u64]) -> u32 {
        self.transposed[bit].iter().zip(records).map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// Returns the number of records of a set with each bit.
    pub(super) fn counts(&self, records: &[u64]) -> Vec<u32> {
        // For a small set, reading its filters is faster than checking every bit.
        if 4 * ones(records) as usize > self.rows {
            return (0..self.bits()).map(|bit| self.among(bit, records)).collect();
        }
        let mut counts = vec![0; self.bits()];
        for row in members(records) {
            self.filters[row].iter().for_each(|&bit| counts[bit as usize] += 1);
        }
        counts
    }

    /// Returns the set of records with a bit.
    pub(super) fn with(&self, bit: usize) -> &[u64] {
        &self.transposed[bit]
    }

    /// Returns the groups of records with equal filters, ordered by filter.
    pub(super) fn equal(&self) -> &[Vec<u32>] {
        &self.equal
    }

    /// Returns the set of these records.
    pub(super) fn set_of(&self, rows: &[u32]) -> Vec<u64> {
        let mut records = vec![0; self.rows.div_ceil(64)];
        rows.iter().for_each(|&row| set(&mut records, row as usize));
        records
    }
}

/// Returns the number of records of a set.
pub(super) fn ones(records: &[u64]) -> u32 {
    records.iter().map(|word| word.count_ones()).sum()
}

/// Returns the records of a set.
pub(super) fn members(records: &[u64]) -> impl Iterator<Item = usize> {
    records.iter().enumerate().flat_map(|(at, &word)| {
        let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
        rest.take_while(|word| *word != 0).map(move |word| 64 * at + word.trailing_zeros() as usize)
    })
}
