//! Approximate K nearest neighbours in many dimensions: a hierarchical navigable small world graph (Malkov
//! and Yashunin 2018), by the crate `instant-distance`.
//!
//! The search may miss neighbours. Recall grows with `search`, and [`recall`] measures it. One thread builds
//! the graph, because the result of the library's parallel build depends on the order of threads and links
//! must be reproducible. Queries run in parallel.

use instant_distance::{Builder, Hnsw, Point, PointId, Search};
use rayon::prelude::*;

use crate::distance::Squared;
use crate::neighbours::Neighbours;

/// Effort of building and searching the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HnswSettings {
    /// Number of candidates considered when a point is inserted (ef_construction).
    pub construction: usize,
    /// Number of candidates considered by a query (ef_search), at least K.
    pub search: usize,
    /// Seed of the graph's layers.
    pub seed: u64,
}

#[derive(Clone)]
struct Vector(Box<[f32]>, Squared);

impl Point for Vector {
    fn distance(&self, other: &Self) -> f32 {
        self.1.floats(&self.0, &other.0)
    }
}

/// A searchable graph of points.
pub struct Graph {
    graph: Hnsw<Vector>,
    /// Record number of each point, since the library reorders the points.
    numbers: Vec<u32>,
    columns: usize,
    squared: Squared,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph[{} x {}]", self.numbers.len(), self.columns)
    }
}

impl Graph {
    /// Builds a graph of `records`, rows of `columns` numbers, for searches of up to `take` neighbours.
    pub fn new(records: &[f32], columns: usize, take: usize, settings: HnswSettings) -> Self {
        let squared = Squared::best();
        let points: Vec<Vector> =
            records.chunks_exact(columns).map(|row| Vector(row.into(), squared)).collect();
        let mut numbers = vec![0u32; points.len()];
        let builder = Builder::default()
            .ef_construction(settings.construction)
            .ef_search(settings.search.max(take))
            .seed(settings.seed);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
        let (graph, places) = one.install(|| builder.build_hnsw(points));
        for (number, place) in places.iter().enumerate() {
            numbers[place.into_inner() as usize] = number as u32;
        }
        Self { graph, numbers, columns, squared }
    }

    /// Returns the approximately `take` nearest records of each query. Scores are negative distances.
    ///
    /// # Panics
    /// If there are fewer than `take` records.
    pub fn search(&self, queries: &[f32], take: usize, done: &(dyn Fn(usize) + Sync)) -> Neighbours {
        assert!(take <= self.numbers.len(), "{take} of {} records", self.numbers.len());
        let places = queries.len() / self.columns * take;
        let mut found = Neighbours { take, indices: vec![0; places], scores: vec![0.0; places] };
        let out = found.indices.par_chunks_mut(take).zip(found.scores.par_chunks_mut(take));
        out.zip(queries.par_chunks_exact(self.columns)).for_each_init(
            Search::default,
            |search, ((indices, scores), query)| {
                let point = Vector(query.into(), self.squared);
                let hits = self.graph.search(&point, search).take(take);
                let number = |place: PointId| self.numbers[place.into_inner() as usize];
                let mut best: Vec<(f32, u32)> = hits.map(|hit| (hit.distance, number(hit.pid))).collect();
                if best.len() < take {
                    // The graph has unconnected parts, so this query computes all distances.
                    let all = self.graph.iter();
                    best = all.map(|(place, other)| (point.distance(other), number(place))).collect();
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
}

/// Returns the share of `exact` neighbours that `found` contains, averaged over all queries.
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
    fn is_reproducible_and_finds_nearly_all_neighbours() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        // Forty clusters in 24 dimensions.
        let centres: Vec<f32> = (0..40 * 24).map(|_| rng.random::<f32>() * 4.0).collect();
        let mut points = |rows: usize| -> Vec<f32> {
            (0..rows * 24).map(|i| centres[(i / 24 % 40) * 24 + i % 24] + rng.random::<f32>()).collect()
        };
        let (records, queries) = (points(2_000), points(50));
        let settings = HnswSettings { construction: 100, search: 100, seed: 7 };
        let search = || Graph::new(&records, 24, 10, settings).search(&queries, 10, &|_| ());
        let found = search();
        assert_eq!(found, search(), "it repeats");
        let doubles = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let exact = points::nearest(&doubles(&queries), &doubles(&records), 24, 10);
        // The graph is reproducible, and so is this figure; 1.00 was measured.
        assert!(recall(&found.indices, &exact.indices, 10) > 0.95);
        assert!(found.scores(0).is_sorted_by(|a, b| a >= b));
    }
}
