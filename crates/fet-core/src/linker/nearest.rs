//! `nearest`: the K nearest keys by Euclidean distance, exactly.
//!
//! Keys of up to eight dimensions are searched by a kd-tree; beyond that a kd-tree visits almost every
//! leaf, so all distances are computed. Equal distances are ordered by index. Distances are those of the
//! raw keys: on longitudes and latitudes they are degrees, not metres.

use std::num::NonZero;

use kiddo::{ImmutableKdTree, SquaredEuclidean};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{LinkError, Linker, Links, check_tables};
use crate::data::Matrix;
use crate::registry::{Plugin, Recipe, Violation};

/// Settings of `nearest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NearestSettings {
    /// K, how many neighbours each primary record gets.
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them (the repeats are masked out).
    pub pad: bool,
}

impl Default for NearestSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false }
    }
}

impl Recipe<dyn Linker> for NearestSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.neighbours == 0 {
            return Err(Violation::new("neighbours", "must be at least 1", 0));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Nearest(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<NearestSettings>("nearest", "the K nearest keys by Euclidean distance, exactly")
}

struct Nearest(NearestSettings);

impl Linker for Nearest {
    fn neighbours(&self) -> usize {
        self.0.neighbours
    }

    fn link(&self, queries: &Matrix<f64>, records: &Matrix<f64>, _seed: u64) -> Result<Links, LinkError> {
        let neighbours = self.0.neighbours;
        check_tables(queries, records, neighbours, self.0.pad)?;
        let available = neighbours.min(records.rows());
        let found = match queries.columns() {
            1 => by_tree::<1>(queries, records, available),
            2 => by_tree::<2>(queries, records, available),
            3 => by_tree::<3>(queries, records, available),
            4 => by_tree::<4>(queries, records, available),
            5 => by_tree::<5>(queries, records, available),
            6 => by_tree::<6>(queries, records, available),
            7 => by_tree::<7>(queries, records, available),
            8 => by_tree::<8>(queries, records, available),
            _ => Ok(by_distance(queries, records, available)),
        }?;
        let repeated =
            |row: &Vec<(f64, u32)>| row.iter().copied().cycle().take(neighbours).collect::<Vec<_>>();
        let flat: Vec<(f64, u32)> = found.iter().flat_map(repeated).collect();
        let indices = flat.iter().map(|&(_, index)| index).collect();
        let similarities = flat.iter().map(|&(squared, _)| -squared.sqrt() as f32).collect();
        Ok(Links::new(neighbours, available, indices, similarities))
    }
}

/// For each query `take` (squared distance, index), nearest first.
type Found = Vec<Vec<(f64, u32)>>;

fn by_tree<const M: usize>(
    queries: &Matrix<f64>,
    records: &Matrix<f64>,
    take: usize,
) -> Result<Found, LinkError> {
    let points = points::<M>(records);
    let tree =
        ImmutableKdTree::<f64, M>::new_from_slice(&points).map_err(|e| LinkError::Index(e.to_string()))?;
    let take = NonZero::new(take).ok_or_else(|| LinkError::Index("no neighbours asked for".into()))?;
    let search = |query: &[f64; M]| {
        let hits = tree.query(query).nearest_n::<SquaredEuclidean<f64>>(take).execute();
        let mut row: Vec<_> = hits.iter().map(|hit| (hit.distance, hit.item)).collect();
        row.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        row
    };
    Ok(self::points::<M>(queries).par_iter().map(search).collect())
}

fn points<const M: usize>(keys: &Matrix<f64>) -> Vec<[f64; M]> {
    keys.values().as_chunks::<M>().0.to_vec()
}

fn by_distance(queries: &Matrix<f64>, records: &Matrix<f64>, take: usize) -> Found {
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    (0..queries.rows())
        .into_par_iter()
        .map(|query| {
            let mut row: Vec<_> = (0..records.rows())
                .map(|r| (squared(queries.row(query), records.row(r)), r as u32))
                .collect();
            row.select_nth_unstable_by(take - 1, order);
            row.truncate(take);
            row.sort_unstable_by(order);
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    fn keys(rows: usize, columns: usize, seed: u64, grid: f64) -> Matrix<f64> {
        let mut rng = stream(seed, 0, Purpose::Linking, 0);
        let snap = |x: f64| if grid > 0.0 { (x / grid).round() * grid } else { x };
        Matrix::new(columns, (0..rows * columns).map(|_| snap(rng.random::<f64>())).collect())
    }

    /// The tree finds the same distances as comparing every pair; where keys coincide the indices may
    /// differ among equals, and only there.
    fn check(records: usize, columns: usize, take: usize, grid: f64) {
        let (queries, records) = (keys(50, columns, 1, grid), keys(records, columns, 2, grid));
        let settings = NearestSettings { neighbours: take, pad: false };
        let links = Nearest(settings).link(&queries, &records, 0).expect("linkable");
        let expected = by_distance(&queries, &records, take);
        for (query, row) in expected.iter().enumerate() {
            let wanted: Vec<f32> = row.iter().map(|(d, _)| -d.sqrt() as f32).collect();
            assert_eq!(
                links.similarities(query),
                Some(wanted.as_slice()),
                "query {query}, {columns} dimensions"
            );
            if grid == 0.0 {
                let wanted: Vec<u32> = row.iter().map(|&(_, i)| i).collect();
                assert_eq!(links.row(query), wanted);
            }
        }
    }

    #[test]
    fn tree_and_brute_force_agree() {
        for columns in 1..=9 {
            check(400, columns, 20, 0.0);
        }
        check(400, 2, 400, 0.0);
        check(3_000, 2, 50, 0.1);
        check(3_000, 1, 7, 0.5);
    }

    #[test]
    fn identical_keys_are_no_trouble() {
        let same = Matrix::new(2, [1.0, 2.0].repeat(5_000));
        let links =
            Nearest(NearestSettings { neighbours: 3, pad: false }).link(&same, &same, 0).expect("linkable");
        assert!(links.similarities(4_999).is_some_and(|all| all.iter().all(|&s| s == 0.0)));
    }

    #[test]
    fn a_small_party_is_refused_or_padded() {
        let (queries, records) = (keys(4, 2, 1, 0.0), keys(3, 2, 2, 0.0));
        let link = |pad| Nearest(NearestSettings { neighbours: 5, pad }).link(&queries, &records, 0);
        assert_eq!(link(false), Err(LinkError::TooFewRecords { neighbours: 5, records: 3 }));
        let links = link(true).expect("padding was allowed");
        assert_eq!((links.neighbours(), links.available()), (5, 3));
        assert_eq!(links.row(0)[..2], links.row(0)[3..]);
    }
}
