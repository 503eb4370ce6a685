//! Cells of all levels, and the totals of records over them.

/// Maximum number of cells of the finest level.
pub const MOST_CELLS: usize = 1 << 16;
/// Maximum number of dimensions: the finest level has at least two cells a side.
pub const MOST_DIMENSIONS: usize = 8;

/// An area and its division into cells, level by level.
#[derive(Debug, Clone, PartialEq)]
pub struct Pyramid {
    area: Vec<[f64; 2]>,
    coarsest: usize,
    levels: usize,
}

/// An area or a division that a pyramid cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AreaError {
    /// The number of dimensions.
    #[error("must have 1 to {MOST_DIMENSIONS} ranges, one for each key column")]
    Dimensions(usize),
    /// A range.
    #[error("must hold finite ranges [low, high] with low below high")]
    Range([f64; 2]),
    /// The sides of the coarsest and of the finest level.
    #[error("must be the side of the coarsest level times 1, 2, 4, 8, …")]
    Sides {
        /// Number of cells a side of the coarsest level.
        coarsest: usize,
        /// Number of cells a side of the finest level.
        finest: usize,
    },
    /// The number of cells.
    #[error("must leave at most {MOST_CELLS} cells at the finest level")]
    Cells(usize),
}

impl Pyramid {
    /// Creates the pyramid of an area: `coarsest` cells a side at the first level, and twice as many at each
    /// further level, until `finest`.
    ///
    /// # Errors
    /// The area has more than [`MOST_DIMENSIONS`] dimensions or none, a range is empty, or the sides do not fit.
    pub fn new(area: &[[f64; 2]], coarsest: usize, finest: usize) -> Result<Self, AreaError> {
        if !(1..=MOST_DIMENSIONS).contains(&area.len()) {
            return Err(AreaError::Dimensions(area.len()));
        }
        let is_range = |[low, high]: [f64; 2]| low.is_finite() && (high - low).is_finite() && low < high;
        if let Some(&range) = area.iter().find(|range| !is_range(**range)) {
            return Err(AreaError::Range(range));
        }
        let factor = finest.checked_div(coarsest).filter(|factor| factor.is_power_of_two());
        let Some(factor) = factor.filter(|factor| factor * coarsest == finest) else {
            return Err(AreaError::Sides { coarsest, finest });
        };
        match finest.checked_pow(area.len() as u32) {
            Some(cells) if cells <= MOST_CELLS => {}
            cells => return Err(AreaError::Cells(cells.unwrap_or(usize::MAX))),
        }
        Ok(Self { area: area.to_vec(), coarsest, levels: factor.trailing_zeros() as usize + 1 })
    }

    /// Returns the number of key columns.
    pub fn dimensions(&self) -> usize {
        self.area.len()
    }

    /// Returns the number of levels, L.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Returns the number of cells a side of a level.
    pub(super) fn side(&self, level: usize) -> usize {
        self.coarsest << level
    }

    /// Returns the number of cells of a level.
    pub(super) fn cells(&self, level: usize) -> usize {
        self.side(level).pow(self.area.len() as u32)
    }

    /// Returns the number of cells of all levels.
    pub fn all_cells(&self) -> usize {
        (0..self.levels).map(|level| self.cells(level)).sum()
    }

    /// Returns true if the area contains a key.
    pub fn contains(&self, key: &[f64]) -> bool {
        key.len() == self.area.len()
            && key.iter().zip(&self.area).all(|(x, [low, high])| (low..=high).contains(&x))
    }

    /// Returns the cell of each level that contains the key, or `None` if the key lies outside the area.
    pub(super) fn cells_of(&self, key: &[f64]) -> Option<impl Iterator<Item = usize> + use<>> {
        if !self.contains(key) {
            return None;
        }
        let (finest, levels, coarsest) = (self.finest(key), self.levels, self.coarsest);
        // All levels follow from the finest one, so that a cell is a part of one cell of the level before.
        Some((0..levels).map(move |level| {
            let side = coarsest << level;
            finest.iter().fold(0, |cell, place| cell * side + (place >> (levels - 1 - level)))
        }))
    }

    /// Returns the cell of the finest level that is nearest to the key.
    pub(super) fn nearest(&self, key: &[f64]) -> usize {
        let side = self.side(self.levels - 1);
        self.finest(key).iter().fold(0, |cell, place| cell * side + place)
    }

    /// Returns the key's place in each dimension of the finest level; a key outside has the place at the edge.
    fn finest(&self, key: &[f64]) -> Vec<usize> {
        let side = self.side(self.levels - 1);
        let place = |(x, [low, high]): (&f64, &[f64; 2])| {
            // A negative number or NaN becomes 0.
            (((x - low) / (high - low) * side as f64) as usize).min(side - 1)
        };
        key.iter().zip(&self.area).map(place).collect()
    }

    /// Returns the cell of the level before that contains a cell of `level`, which must not be 0.
    pub(super) fn parent(&self, level: usize, cell: usize) -> usize {
        let side = self.side(level);
        // The last dimension is the last digit of a cell's number in base `side`.
        let (mut rest, mut parent, mut unit) = (cell, 0, 1);
        for _ in &self.area {
            parent += rest % side / 2 * unit;
            rest /= side;
            unit *= side / 2;
        }
        parent
    }

    /// Returns the number of cells of the next level in one cell.
    pub(super) fn children(&self) -> usize {
        1 << self.area.len()
    }

    /// Returns the totals of records: for each level, for each cell, the sum of the records' vectors.
    ///
    /// `vectors` gives each record's key and its vector of `width` coordinates. A record outside the area is
    /// left out.
    ///
    /// # Panics
    /// If a vector has another number of coordinates, which is an error of the caller.
    pub fn totals<'a>(
        &self,
        width: usize,
        vectors: impl IntoIterator<Item = (&'a [f64], Vec<i64>)>,
    ) -> Vec<i64> {
        let mut totals = vec![0i64; self.all_cells() * width];
        for (key, vector) in vectors {
            assert_eq!(vector.len(), width, "coordinates of a record");
            let Some(cells) = self.cells_of(key) else { continue };
            let mut first = 0;
            for (level, cell) in cells.enumerate() {
                let at = (first + cell) * width;
                totals[at..at + width].iter_mut().zip(&vector).for_each(|(total, value)| *total += value);
                first += self.cells(level);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_areas_that_have_no_cells() {
        let square = [[0.0, 1.0], [0.0, 1.0]];
        for (area, coarsest, finest, expected) in [
            (&[][..], 4, 64, AreaError::Dimensions(0)),
            (&[[0.0, 1.0]; 9], 1, 2, AreaError::Dimensions(9)),
            (&[[0.0, 1.0]; 3], 4, 64, AreaError::Cells(262_144)),
            (&[[1.0, 1.0]], 4, 64, AreaError::Range([1.0, 1.0])),
            (&[[f64::NEG_INFINITY, 1.0]], 4, 64, AreaError::Range([f64::NEG_INFINITY, 1.0])),
            (&square, 4, 48, AreaError::Sides { coarsest: 4, finest: 48 }),
            (&square, 0, 4, AreaError::Sides { coarsest: 0, finest: 4 }),
            (&square, 8, 4, AreaError::Sides { coarsest: 8, finest: 4 }),
            (&square, 4, 512, AreaError::Cells(262_144)),
        ] {
            assert_eq!(Pyramid::new(area, coarsest, finest), Err(expected));
        }
        assert_eq!(Pyramid::new(&square, 4, 64).expect("valid").levels(), 5);
        assert_eq!(Pyramid::new(&[[0.0, 24.0]], 24, 24).expect("valid").all_cells(), 24);
    }

    #[test]
    fn each_cell_lies_in_its_parent() {
        for (dimensions, finest) in [(1, 24), (2, 24), (3, 24), (4, 12), (6, 6)] {
            let area =
                &[[-1.0, 2.0], [10.0, 11.0], [0.0, 1.0], [5.0, 7.5], [-3.0, 0.0], [0.0, 9.0]][..dimensions];
            let pyramid = Pyramid::new(area, 3, finest).expect("valid");
            for step in 0..=200u32 {
                // Each dimension has another place, so that the test does not follow the diagonal.
                let share = |column: usize| f64::from((step * (2 * column as u32 + 1)) % 201) / 200.0;
                let place = |(column, [low, high]): (usize, &[f64; 2])| low + share(column) * (high - low);
                let key: Vec<f64> = area.iter().enumerate().map(place).collect();
                let cells: Vec<usize> = pyramid.cells_of(&key).expect("inside").collect();
                assert_eq!(*cells.last().expect("levels"), pyramid.nearest(&key));
                for level in 1..pyramid.levels() {
                    assert!(cells[level] < pyramid.cells(level));
                    assert_eq!(pyramid.parent(level, cells[level]), cells[level - 1], "{key:?} {level}");
                }
            }
        }
    }

    #[test]
    fn a_key_outside_counts_nowhere_and_reads_the_edge() {
        let pyramid = Pyramid::new(&[[0.0, 1.0]], 2, 4).expect("valid");
        let totals =
            pyramid.totals(1, [([0.3].as_slice(), vec![5]), (&[1.1], vec![7]), (&[f64::NAN], vec![9])]);
        assert_eq!(totals, [5, 0, 0, 5, 0, 0]);
        assert_eq!([-3.0, 0.3, 7.0].map(|key| pyramid.nearest(&[key])), [0, 1, 3]);
    }
}
