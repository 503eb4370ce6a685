//! Encoding of records as filters, after checking their values.

use std::collections::HashMap;

use rayon::prelude::*;

use super::Schema;
use super::feature::Hashing;
use super::hash::Keys;
use crate::bits::{BitTable, set};

/// Number of rows that use one cache of hashes.
const CHUNK: usize = 2_048;

/// Reason for refusing a table. It shows the value, as clkhash does, and is intended for the party with the
/// table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A value breaks a rule of the schema.
    #[error("row {row} (from 0), {feature}: the value {rule}; it is {value:?}")]
    Value {
        /// Row of the value, from 0.
        row: usize,
        /// Identifier of the feature.
        feature: String,
        /// Rule for every value of the feature.
        rule: String,
        /// The value.
        value: String,
    },
    /// The cells do not fill whole rows.
    #[error("{cells} cells are not whole rows of {features} features")]
    Cells {
        /// Number of cells.
        cells: usize,
        /// Number of features of a row.
        features: usize,
    },
}

/// Encodes records under a secret.
pub struct Encoder {
    schema: Schema,
    keys: Vec<Keys>,
}

/// Shows the schema and hides the keys.
impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder({:?})", self.schema)
    }
}

/// Places of each hashed token of a feature.
type Known = HashMap<String, Vec<u32>>;

impl Encoder {
    /// Returns an encoder of records under a schema. clkhash encodes a secret given as text in UTF-8.
    pub fn new(schema: &Schema, secret: &[u8]) -> Self {
        Self { keys: schema.kdf.keys(secret, schema.features.len()), schema: schema.clone() }
    }

    /// Returns the filter of each record. `cells` contains the records row by row, one text for each feature,
    /// including ignored features.
    ///
    /// Bit i of a row is bit i of clkhash's bitarray.
    ///
    /// # Errors
    /// If the schema refuses a value. The error names the first such value.
    pub fn encode<T: AsRef<str> + Sync>(&self, cells: &[T]) -> Result<BitTable, ValueError> {
        let features = self.schema.features.len();
        if !cells.len().is_multiple_of(features) {
            return Err(ValueError::Cells { cells: cells.len(), features });
        }
        let mut table = BitTable::zeros(cells.len() / features, self.schema.bits());
        let width = table.width();
        let chunks = table.words_mut().par_chunks_mut(CHUNK * width).zip(cells.par_chunks(CHUNK * features));
        let encoded =
            chunks.enumerate().map(|(chunk, (words, cells))| self.chunk(chunk * CHUNK, words, cells));
        match encoded.find_first(Result::is_err) {
            Some(Err(error)) => Err(error),
            _ => Ok(table),
        }
    }

    fn chunk<T: AsRef<str>>(&self, before: usize, words: &mut [u64], cells: &[T]) -> Result<(), ValueError> {
        let width = self.schema.bits() / 64;
        let mut filter = vec![0; self.schema.unfolded() / 64];
        let mut known = vec![Known::new(); self.schema.features.len()];
        let rows = words.chunks_exact_mut(width).zip(cells.chunks_exact(known.len()));
        for (at, (row, cells)) in rows.enumerate() {
            filter.fill(0);
            self.record(before + at, &mut filter, cells, &mut known)?;
            // Repeated folding in half combines each word with the words at whole multiples of the folded
            // length behind it.
            for part in filter.chunks_exact(width) {
                row.iter_mut().zip(part).for_each(|(word, other)| *word ^= other);
            }
        }
        Ok(())
    }

    fn record<T: AsRef<str>>(
        &self,
        row: usize,
        filter: &mut [u64],
        cells: &[T],
        known: &mut [Known],
    ) -> Result<(), ValueError> {
        let features = self.schema.features.iter().zip(&self.keys);
        for ((cell, (feature, keys)), known) in cells.iter().zip(features).zip(known) {
            let Some(hashing) = &feature.hashing else { continue };
            hashing.insert(cell.as_ref(), keys, filter, known).map_err(|rule| ValueError::Value {
                row,
                feature: feature.identifier.clone(),
                rule,
                value: cell.as_ref().to_string(),
            })?;
        }
        Ok(())
    }
}

impl Hashing {
    /// Sets the bits of a value. Fails with the rule that the value breaks.
    fn insert(&self, value: &str, keys: &Keys, filter: &mut [u64], known: &mut Known) -> Result<(), String> {
        let value = self.normal(value)?;
        let (count, bits) = (self.comparison.count(&value), filter.len() * 64);
        let mut place = 0;
        self.comparison.tokens(&value, |token| {
            let wanted = self.strategy.bits(place, count);
            place += 1;
            if !known.contains_key(token) {
                known.insert(token.to_string(), Vec::new());
            }
            if let Some(places) = known.get_mut(token) {
                self.places(token, keys, bits, wanted, places);
                places[..wanted].iter().for_each(|at| set(filter, *at as usize));
            }
        })?;
        Ok(())
    }

    fn places(&self, token: &str, keys: &Keys, bits: usize, wanted: usize, known: &mut Vec<u32>) {
        if known.len() < wanted {
            let mut bytes = Vec::new();
            self.encoding.write(token, &mut bytes);
            self.hash.places(&bytes, keys, bits, wanted, known);
        }
    }
}
