//! Nearly the K nearest of many points of many dimensions: a hierarchical navigable small world (Malkov and Yashunin
//! 2018), by the crate `instant-distance`.
//!
//! Recall is not certain: it grows with `search`, and [`recall`] measures it. The graph is built by one thread, for
//! the library's parallel build depends on which thread is first and links must repeat; queries are answered in parallel.

use instant_distance::{Builder, Point, Search};
use rayon::prelude::*;

use crate::distance::Squared;
use crate::neighbours::Neighbours;

/// How carefully the graph is built and searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HnswSettings {
    /// Candidates that are looked at where a point finds its place (ef_construction).
    pub construction: usize,
    /// Candidates that are looked at by a query (ef_search); at least K.
    pub search: usize,
    /// The seed of the graph's layers.
    pub seed: u64,
}

#[derive(Clone)]
struct Vector(Box<[f32]>, Squared);

impl Point for Vector {
    fn distance(&self, other: &Self) -> f32 {
        self.1.floats(&self.0, &other.0)
    }
}

/// The `take` records nearest to each query, nearly; scores are minus the distances. Both are rows of `columns` numbers.
///
/// # Panics
/// If there are fewer than `take` records.
pub fn search(
    queries: &[f32],
    records: &[f32],
    columns: usize,
    take: usize,
    settings: HnswSettings,
    done: &(dyn Fn(usize) + Sync),
) -> Neighbours {
    let rows = records.len() / columns;
    assert!(take <= rows, "{take} of {rows} records");
    let squared = Squared::best();
    let vector = |row: &[f32]| Vector(row.into(), squared);
    let points: Vec<Vector> = records.chunks_exact(columns).map(vector).collect();
    let builder = Builder::default()
        .ef_construction(settings.construction)
        .ef_search(settings.search.max(take))
        .seed(settings.seed);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    let (graph, places) = one.install(|| builder.build_hnsw(points));
    // The library puts points into an order of its own.
    let mut numbers = vec![0u32; rows];
    for (number, place) in places.iter().enumerate() {
        numbers[place.into_inner() as usize] = number as u32;
    }
    let mut found = Neighbours {
        take,
        indices: vec![0; queries.len() / columns * take],
        scores: vec![0.0; queries.len() / columns * take],
    };
    let out = found.indices.par_chunks_mut(take).zip(found.scores.par_chunks_mut(take));
    out.zip(queries.par_chunks_exact(columns)).for_each_init(
        Search::default,
        |search, ((indices, scores), query)| {
            let mut best: Vec<(f32, u32)> = graph
                .search(&vector(query), search)
                .take(take)
                .map(|item| (item.distance, numbers[item.pid.into_inner() as usize]))
                .collect();
            if best.len() < take {
                // The graph has parts that cannot be reached from each other: all distances are computed.
                best = records
                    .chunks_exact(columns)
                    .enumerate()
                    .map(|(number, record)| (squared.floats(query, record), number as u32))
                    .collect();
            }
            best.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for ((index, score), (distance, number)) in indices.iter_mut().zip(scores).zip(best) {
                (*index, *score) = (number, -distance.sqrt());
            }
            done(1);
        },
    );
    found
}

/// The share of `exact` neighbours that `found` has, in the mean over all queries.
pub fn recall(found: &[u32], exact: &[u32], take: usize) -> f64 {
    let rows = found.chunks_exact(take).zip(exact.chunks_exact(take));
    let common = |(found, exact): (&[u32], &[u32])| {
        let exact: std::collections::HashSet<_> = exact.iter().collect();
        found.iter().filter(|index| exact.contains(index)).count()
    };
    rows.map(common).sum::<usize>() as f64 / exact.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn it_repeats_and_finds_nearly_all() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        // Forty clusters in 24 dimensions.
        let centres: Vec<f32> = (0..40 * 24).map(|_| rng.random::<f32>() * 4.0).collect();
        let mut points = |rows: usize| -> Vec<f32> {
            (0..rows * 24).map(|i| centres[(i / 24 % 40) * 24 + i % 24] + rng.random::<f32>()).collect()
        };
        let (records, queries) = (points(2_000), points(50));
        let settings = HnswSettings { construction: 100, search: 100, seed: 7 };
        let found = search(&queries, &records, 24, 10, settings, &|_| ());
        assert_eq!(found, search(&queries, &records, 24, 10, settings, &|_| ()), "it repeats");
        let doubles = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let exact = points::nearest(&doubles(&queries), &doubles(&records), 24, 10);
        // The graph repeats, so that this figure does; 1.00 was measured.
        assert!(recall(&found.indices, &exact.indices, 10) > 0.95);
        assert!(found.scores(0).is_sorted_by(|a, b| a >= b));
    }
}
