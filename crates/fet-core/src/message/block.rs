//! Host values with a shape: the form of representations and gradients between parties.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::array;

/// 32-bit floats of the shape [B, K, H], row by row. Copies share their values. `Debug` shows the shape, never the
/// values.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Block {
    shape: [usize; 3],
    #[serde(with = "array")]
    values: Arc<Vec<f32>>,
}

/// A shape that does not match the number of values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a block of the shape {shape:?} does not have {length} values")]
pub struct ShapeError {
    shape: [usize; 3],
    length: usize,
}

impl Block {
    /// Creates a block of the `shape` [B, K, H]; refuses `values` that do not fill it.
    pub fn new(shape: [usize; 3], values: Vec<f32>) -> Result<Self, ShapeError> {
        fill(shape, values.len())?;
        Ok(Self { shape, values: Arc::new(values) })
    }

    /// Returns the shape [B, K, H].
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns all values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns true if all values are finite; runs at memory speed.
    pub fn is_finite(&self) -> bool {
        // The compiler vectorises the loop because it does not branch on each value.
        let finite = |chunk: &[f32]| chunk.iter().fold(true, |all, value| all & value.is_finite());
        self.values.chunks(4_096).all(finite)
    }

    /// Returns all values; copies them only if another block shares them.
    pub fn into_values(self) -> Vec<f32> {
        self.into_values_by(<[f32]>::to_vec)
    }

    /// Returns all values; calls `copy` to copy them if another block shares them.
    pub fn into_values_by(self, copy: impl FnOnce(&[f32]) -> Vec<f32>) -> Vec<f32> {
        Arc::try_unwrap(self.values).unwrap_or_else(|shared| copy(&shared))
    }

    /// Returns all values, or `None` if another block shares them.
    pub fn into_unshared(self) -> Option<Vec<f32>> {
        Arc::into_inner(self.values)
    }
}

/// Refuses a shape that does not hold `length` values.
pub(super) fn fill(shape: [usize; 3], length: usize) -> Result<(), ShapeError> {
    let [rows, positions, width] = shape;
    let count = rows.checked_mul(positions).and_then(|count| count.checked_mul(width));
    if count == Some(length) { Ok(()) } else { Err(ShapeError { shape, length }) }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block{:?}", self.shape)
    }
}

#[derive(Deserialize)]
struct Unchecked {
    shape: [usize; 3],
    #[serde(with = "array")]
    values: Vec<f32>,
}

impl TryFrom<Unchecked> for Block {
    type Error = ShapeError;

    fn try_from(unchecked: Unchecked) -> Result<Self, ShapeError> {
        Self::new(unchecked.shape, unchecked.values)
    }
}
