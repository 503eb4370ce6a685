//! Learned grids of several cell sizes as an encoding of keys in few dimensions (the multi-resolution
//! encoding of Müller et al. 2022, "Instant neural graphics primitives").
//!
//! Each corner of a cell has a learned vector. A key gets the mean of its corners' vectors, weighted by their
//! distance. Coarse cells represent the region of a key, and fine cells the city block. Fourier features of
//! one scale must be configured for that scale, and a perceptron behind them learns local structure slowly.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use fet_core::parameters::host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Init;

/// Shift of the first grid's corners, in cells: no corner has a common key value such as 0.
const SHIFT: f32 = 0.37;
/// Bound on the distance of keys from the origin, in cells; keys further out are clamped.
const FARTHEST: f32 = 1e9;
/// Number of corners of a cell in two dimensions.
const CORNERS: usize = 4;

/// Learned grids of several cell sizes over numeric keys (Müller et al. 2022): each pair of key columns gets
/// a vector from each grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// Width of the vectors of a grid; 0 for no grids.
    #[schemars(range(min = 0, max = 256))]
    pub width: usize,
    /// Number of grids; each halves the cell size of the one before.
    #[schemars(range(min = 1, max = 24))]
    pub levels: usize,
    /// Side of the first grid's cells, in the unit of the models' keys: standard deviations if keys are
    /// standardised.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub coarsest: f64,
    /// Number of vectors of a grid, rounded up to a power of two: corners of fine grids share vectors by a
    /// hash.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub places: usize,
}

impl Default for Grid {
    fn default() -> Self {
        Self { width: 0, levels: 7, coarsest: 1.0, places: 8192 }
    }
}

impl Grid {
    pub(super) fn layer(&self, init: &mut Init<'_>, key_columns: usize) -> Option<GridEncoding> {
        (self.width > 0 && key_columns > 0).then(|| GridEncoding::new(init, key_columns, self))
    }

    pub(super) fn outputs(&self, key_columns: usize) -> usize {
        if self.width > 0 && key_columns > 0 {
            GridEncoding::outputs(key_columns, self.levels, self.width)
        } else {
            0
        }
    }
}

/// A table of vectors for each pair of key columns and each level. A single key column forms a pair with
/// itself. A hash assigns corners to places of the table, so that corners of fine grids may share a place.
#[derive(Module, Debug)]
pub struct GridEncoding {
    /// Vectors, [pairs · levels · places, width].
    pub table: Param<Tensor<2>>,
    levels: usize,
    /// Number of places of a level, a power of two.
    places: usize,
    width: usize,
    /// Side of a cell of the first level, in the unit of the models' keys.
    coarsest: f64,
}

impl GridEncoding {
    /// Makes grids over `key_columns` columns; each level halves the cell size. Vectors ~ N(0, 0.1²).
    pub fn new(init: &mut Init<'_>, key_columns: usize, grid: &Grid) -> Self {
        let Grid { width, levels, coarsest, places } = *grid;
        let places = places.next_power_of_two();
        let rows = pairs(key_columns).len() * levels * places;
        Self { table: init.normal([rows, width], 0.1), levels, places, width, coarsest }
    }

    /// Returns the width of an encoded key.
    pub fn outputs(key_columns: usize, levels: usize, width: usize) -> usize {
        pairs(key_columns).len() * levels * width
    }

    /// # Shapes
    /// - keys: [n, m], result: [n, [`GridEncoding::outputs`]]
    pub fn forward(&self, keys: Tensor<2>) -> Tensor<2> {
        let [rows, columns] = keys.dims();
        let device = keys.device();
        let (places, weights) = self.corners(&host(keys), columns);
        let cells = places.len() / CORNERS;
        let places = Tensor::<1, Int>::from_data(TensorData::from(places.as_slice()), &device);
        let weights = Tensor::<3>::from_data(TensorData::new(weights, [cells, CORNERS, 1]), &device);
        let corners = self.table.val().select(0, places).reshape([cells, CORNERS, self.width]);
        (corners * weights).sum_dim(1).reshape([rows, cells / rows * self.width])
    }

    /// Returns, for each key, pair and level, the places of the surrounding corners, and their weights, which
    /// sum to 1.
    fn corners(&self, keys: &[f32], columns: usize) -> (Vec<i32>, Vec<f32>) {
        let pairs = pairs(columns);
        let count = keys.len() / columns.max(1) * pairs.len() * self.levels * CORNERS;
        let (mut places, mut weights) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for key in keys.chunks_exact(columns) {
            for (plane, &(first, second)) in pairs.iter().enumerate() {
                for level in 0..self.levels {
                    let cell = (self.coarsest / f64::from(1u32 << level.min(30))) as f32;
                    let position = |column: usize| {
                        let place = (key[column] / cell + SHIFT).clamp(-FARTHEST, FARTHEST);
                        (place.floor(), place - place.floor())
                    };
                    let ((x, right), (y, above)) = (position(first), position(second));
                    let table = (plane * self.levels + level) * self.places;
                    for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                        let share = |d: i32, part: f32| if d == 1 { part } else { 1.0 - part };
                        let place = self.place((x as i32).wrapping_add(dx), (y as i32).wrapping_add(dy));
                        places.push((table + place) as i32);
                        weights.push(share(dx, right) * share(dy, above));
                    }
                }
            }
        }
        (places, weights)
    }

    /// Returns the place of a corner in its level's table: a hash with two primes, as in the paper.
    fn place(&self, x: i32, y: i32) -> usize {
        let hash = (x as u32).wrapping_mul(2_654_435_761) ^ (y as u32).wrapping_mul(805_459_861);
        // The upper bits depend on all of x and y.
        (hash ^ (hash >> 15)) as usize & (self.places - 1)
    }
}

/// Returns the pairs of columns that have grids.
fn pairs(columns: usize) -> Vec<(usize, usize)> {
    match columns {
        1 => vec![(0, 0)],
        _ => (0..columns).flat_map(|first| (first + 1..columns).map(move |second| (first, second))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use fet_core::rng::{Purpose, stream};

    use super::*;

    fn encoding(columns: usize) -> (GridEncoding, Device) {
        let device = Device::flex().autodiff();
        let mut init = Init::new(stream(1, 0, Purpose::Weights, 0), &device);
        let grid = Grid { width: 3, levels: 5, coarsest: 1.0, places: 256 };
        (GridEncoding::new(&mut init, columns, &grid), device.clone())
    }

    #[test]
    fn the_weights_of_a_keys_corners_sum_to_one() {
        let (grid, _) = encoding(3);
        let keys = [0.0, -0.37, 1e6, 5.25, -7.125, 0.63, f32::MAX, f32::MIN, 0.1];
        let (places, weights) = grid.corners(&keys, 3);
        assert_eq!(places.len(), 3 * 3 * 5 * CORNERS);
        let rows = 3 * 5 * 256;
        assert!(places.iter().all(|place| (0..rows).contains(place)));
        for corners in weights.chunks_exact(CORNERS) {
            let sum: f32 = corners.iter().sum();
            assert!((sum - 1.0).abs() < 1e-5 && corners.iter().all(|w| *w >= 0.0), "{corners:?}");
        }
    }

    #[test]
    fn an_encoding_is_continuous_and_tells_keys_apart() {
        let (grid, device) = encoding(2);
        let encoded = |x: f32, y: f32| {
            let keys = Tensor::<2>::from_data(TensorData::new(vec![x, y], [1, 2]), &device);
            host(grid.forward(keys))
        };
        let difference = |one: &[f32], other: &[f32]| {
            one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        // The two keys are on both sides of a cell border of every level: 0.63 is a border of the first.
        let (below, above) = (encoded(0.629_999, 0.2), encoded(0.630_001, 0.2));
        assert_eq!(below.len(), GridEncoding::outputs(2, 5, 3));
        assert!(difference(&below, &above) < 1e-3, "{below:?} {above:?}");
        assert!(difference(&below, &encoded(0.7, 0.2)) > 1e-2);
    }
}
