//! Exact K nearest points: a kd-tree for up to eight dimensions, and all distances beyond that.
//!
//! Equal distances are ordered by index, also at the boundary of the K nearest. A query allocates only its
//! answer. Queries run in parallel, in the order of the tree. Beyond eight dimensions a kd-tree visits almost
//! every leaf. If the exact search is too slow there, [`crate::hnsw`] is a good approximation.

mod candidates;
mod tree;

use rayon::prelude::*;

use crate::distance::Squared;
use candidates::Candidates;

pub use candidates::Nearest;

/// Returns the `take` records nearest to each query. Both tables are rows of `columns` finite numbers.
///
/// # Panics
/// If there are fewer than `take` records, or `take` is 0.
pub fn nearest(queries: &[f64], records: &[f64], columns: usize, take: usize) -> Nearest {
    assert!(take > 0 && take * columns <= records.len(), "{take} of {} records", records.len() / columns);
    match columns {
        1 => tree::search::<1>(queries, records, take),
        2 => tree::search::<2>(queries, records, take),
        3 => tree::search::<3>(queries, records, take),
        4 => tree::search::<4>(queries, records, take),
        5 => tree::search::<5>(queries, records, take),
        6 => tree::search::<6>(queries, records, take),
        7 => tree::search::<7>(queries, records, take),
        8 => tree::search::<8>(queries, records, take),
        _ => all(queries, records, columns, take),
    }
}

/// Returns the same neighbours as [`nearest`] by computing every distance. It is the reference for the tree.
pub fn all(queries: &[f64], records: &[f64], columns: usize, take: usize) -> Nearest {
    let rows = queries.len() / columns;
    let mut found = Nearest { indices: vec![0; rows * take], squared: vec![0.0; rows * take] };
    let squared = Squared::best();
    // A few queries share each record while it is in the cache.
    let few = 16;
    let out = found.indices.par_chunks_mut(few * take).zip(found.squared.par_chunks_mut(few * take));
    out.zip(queries.par_chunks(few * columns)).for_each_init(
        || vec![Candidates::new(take); few],
        |candidates, ((indices, distances), queries)| {
            for (index, record) in records.chunks_exact(columns).enumerate() {
                for (query, candidates) in queries.chunks_exact(columns).zip(&mut *candidates) {
                    candidates.offer(squared.doubles(query, record), index as u32);
                }
            }
            let answers = indices.chunks_exact_mut(take).zip(distances.chunks_exact_mut(take));
            for (candidates, (indices, distances)) in candidates.iter_mut().zip(answers) {
                candidates.drain(indices, distances);
            }
        },
    );
    found
}

/// Returns points on the unit sphere for rows of longitude and latitude in degrees. Their straight-line
/// distances have the same order as distances along the sphere, which [`along_sphere`] returns.
pub fn on_sphere(degrees: &[f64]) -> Vec<f64> {
    let point = |[lon, lat]: &[f64; 2]| {
        let (lon, lat) = (lon.to_radians(), lat.to_radians());
        [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    };
    degrees.as_chunks::<2>().0.iter().flat_map(point).collect()
}

/// Mean radius of the Earth in metres (IUGG).
pub const EARTH_RADIUS: f64 = 6_371_008.8;

/// Returns the distance along the sphere in metres between two points, given their squared straight-line
/// distance on the unit sphere.
pub fn along_sphere(squared: f64) -> f64 {
    2.0 * EARTH_RADIUS * (0.5 * squared.sqrt()).min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn points(rows: usize, columns: usize, seed: u64, grid: f64) -> Vec<f64> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let snap = |x: f64| if grid > 0.0 { (x / grid).round() * grid } else { x };
        (0..rows * columns).map(|_| snap(rng.random::<f64>())).collect()
    }

    fn check(records: usize, columns: usize, take: usize, grid: f64) {
        let (queries, records) = (points(60, columns, 1, grid), points(records, columns, 2, grid));
        let found = nearest(&queries, &records, columns, take);
        let expected = all(&queries, &records, columns, take);
        assert_eq!(
            found.indices,
            expected.indices,
            "{columns} dimensions, {take} of {}",
            records.len() / columns
        );
        let close = found.squared.iter().zip(&expected.squared).all(|(a, b)| (a - b).abs() <= 1e-12);
        assert!(close, "{columns} dimensions: equal except for the order of summation");
    }

    #[test]
    fn the_tree_finds_what_all_distances_give_ties_included() {
        for columns in 1..=9 {
            check(700, columns, 20, 0.0);
            check(700, columns, 33, 0.25);
            check(7, columns, 7, 0.0);
        }
        check(400, 2, 400, 0.0);
        check(3_000, 2, 50, 0.1);
        check(3_000, 1, 7, 0.5);
        check(1, 2, 1, 0.0);
    }

    #[test]
    fn identical_points_are_found_in_order() {
        let same = [1.0, 2.0].repeat(5_000);
        let found = nearest(&same[..4], &same, 2, 3);
        assert_eq!(found.indices, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn the_sphere_is_measured_along_its_surface() {
        // Paris to London, Singapore to Auckland across the date line, and a pole. Distances are from the
        // haversine formula.
        let check = |a: [f64; 2], b: [f64; 2], kilometres: f64| {
            let (a, b) = (on_sphere(&a), on_sphere(&b));
            let squared = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum();
            assert!((along_sphere(squared) / 1e3 - kilometres).abs() < 0.5, "{}", along_sphere(squared));
        };
        check([2.3522, 48.8566], [-0.1276, 51.5074], 343.6);
        check([179.9, 0.0], [-179.9, 0.0], 22.2);
        check([0.0, 90.0], [123.0, 90.0], 0.0);
        check([0.0, 0.0], [180.0, 0.0], 20_015.1);
    }
}
