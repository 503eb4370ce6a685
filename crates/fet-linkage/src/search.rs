//! Exact search for the K most similar of many bit vectors, by counting common bits.
//!
//! The index sorts records by their number of set bits and stores them in blocks of eight with interleaved
//! words. One vector instruction thus counts a word of eight records, and no sum across lanes is needed. Each
//! query keeps a heap of its K best records. The worst of them determines how many common bits a record of a
//! block must have. Most blocks end with that one comparison, or are skipped if even all bits would be too
//! few. The search stores no matrix of all pairs: it only needs memory for the records and the answer. For
//! real-valued keys, use [`crate::points`].

mod kernel;
mod measure;

use rayon::prelude::*;

use crate::bits::BitTable;
use crate::neighbours::Neighbours;
use crate::top::Top;
use kernel::{LANES, QUERIES, Search, Tile};

pub use kernel::Kernel;
pub use measure::Measure;

/// Number of blocks that a group of queries is compared with before the next blocks: 16 blocks of 1,024 bits
/// take 16 KiB.
const TILE: usize = 16;
/// Number of queries that share a tile while it is in the cache.
const GROUP: usize = 64;

/// A searchable index of bit vectors.
pub struct Index {
    width: usize,
    rows: usize,
    /// Interleaved words of eight records; zeros fill the last block.
    blocks: Vec<[u64; LANES]>,
    /// Record at each place, in order of set bits; `u32::MAX` for places in the padding.
    records: Vec<u32>,
    ones: Vec<u32>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index[{} x {}]", self.rows, 64 * self.width)
    }
}

impl Index {
    /// Sorts and interleaves `records`.
    pub fn new(records: &BitTable) -> Self {
        let (width, rows) = (records.width(), records.rows());
        let ones: Vec<u32> = (0..rows).into_par_iter().map(|row| records.ones(row)).collect();
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| ones[row as usize]);
        let count = rows.div_ceil(LANES);
        let mut blocks = vec![[0u64; LANES]; count * width];
        blocks.par_chunks_mut(width).zip(order.par_chunks(LANES)).for_each(|(block, rows)| {
            for (lane, &row) in rows.iter().enumerate() {
                for (words, &word) in block.iter_mut().zip(records.row(row as usize)) {
                    words[lane] = word;
                }
            }
        });
        let ones = order.iter().map(|&row| ones[row as usize]).collect();
        order.resize(count * LANES, u32::MAX);
        Self { width, rows, blocks, records: order, ones }
    }

    /// Returns the `take` most similar records of each query, best first, with equal scores ordered by index.
    /// `done` receives the number of answered queries.
    ///
    /// # Panics
    /// If the vectors have different lengths or there are fewer than `take` records.
    pub fn search(
        &self,
        queries: &BitTable,
        take: usize,
        measure: Measure,
        done: &(dyn Fn(usize) + Sync),
    ) -> Neighbours {
        self.search_with(Kernel::best(), queries, take, measure, done)
    }

    /// Searches with a given kernel. All kernels find the same records.
    pub fn search_with(
        &self,
        kernel: Kernel,
        queries: &BitTable,
        take: usize,
        measure: Measure,
        done: &(dyn Fn(usize) + Sync),
    ) -> Neighbours {
        assert_eq!(queries.width(), self.width, "vectors of one length");
        assert!(take <= self.rows, "{take} of {} records", self.rows);
        let ones: Vec<u32> = (0..queries.rows()).map(|row| queries.ones(row)).collect();
        let mut order: Vec<u32> = (0..queries.rows() as u32).collect();
        // Queries with similar numbers of bits form a group and start at the same tile.
        order.sort_by_key(|&row| ones[row as usize]);
        let request = Request { queries, ones: &ones, take, measure };
        let found: Vec<Vec<(f32, u32)>> = order
            .par_chunks(GROUP)
            .map(|group| {
                let found = self.group(kernel, &request, group);
                done(group.len());
                found
            })
            .collect();
        let mut neighbours = Neighbours {
            take,
            indices: vec![0; queries.rows() * take],
            scores: vec![0.0; queries.rows() * take],
        };
        for (rows, found) in order.chunks(GROUP).zip(&found) {
            for (&row, found) in rows.iter().zip(found.chunks_exact(take.max(1))) {
                let start = row as usize * take;
                for (place, &(score, index)) in (start..).zip(found) {
                    neighbours.scores[place] = score;
                    neighbours.indices[place] = index;
                }
            }
        }
        neighbours
    }

    /// Answers the queries at these rows together.
    fn group(&self, kernel: Kernel, request: &Request<'_>, group: &[u32]) -> Vec<(f32, u32)> {
        let Request { queries, ones, take, measure } = *request;
        let mut searches: Vec<Search<'_>> = group
            .iter()
            .map(|&row| Search {
                words: queries.row(row as usize),
                ones: ones[row as usize],
                top: Top::new(take),
            })
            .collect();
        // Searches that take no records fill an incomplete group of four.
        let whole = searches.len().next_multiple_of(QUERIES);
        let filler = searches[0].words;
        searches.resize_with(whole, || Search { words: filler, ones: 0, top: Top::new(0) });
        let tiles = self.records.len().div_ceil(TILE * LANES);
        let middle = ones[group[group.len() / 2] as usize];
        let start = self.ones.partition_point(|&ones| ones < middle) / (TILE * LANES);
        for tile in outwards(start.min(tiles.saturating_sub(1)), tiles) {
            let first = tile * TILE;
            let last = (first + TILE).min(self.records.len() / LANES);
            let (low, high) = (self.ones[first * LANES], self.ones[(last * LANES).min(self.rows) - 1]);
            let tile = Tile {
                width: self.width,
                blocks: &self.blocks[first * self.width..last * self.width],
                records: &self.records[first * LANES..last * LANES],
                ones: &self.ones[first * LANES..(last * LANES).min(self.rows)],
                low,
                measure,
            };
            for four in searches.as_chunks_mut::<QUERIES>().0 {
                let possible = |search: &Search<'_>| {
                    let least = measure.least_common(search.top.bar(), search.ones, low);
                    search.top.wants() && u64::from(search.ones.min(high)) >= least
                };
                if four.iter().any(possible) {
                    kernel.scan(&tile, four);
                }
            }
        }
        let mut found = Vec::with_capacity(group.len() * take);
        searches.into_iter().take(group.len()).for_each(|search| found.extend(search.top.into_sorted()));
        found
    }
}

/// Queries and their wanted records.
struct Request<'a> {
    queries: &'a BitTable,
    /// Number of set bits of each query.
    ones: &'a [u32],
    /// Number of records for each query.
    take: usize,
    measure: Measure,
}

/// Returns the numbers of 0..count in alternation, from `start` outwards.
fn outwards(start: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut up = start..count;
    let mut down = (0..start).rev();
    let mut turn = false;
    std::iter::from_fn(move || {
        turn = !turn;
        if turn { up.next().or_else(|| down.next()) } else { down.next().or_else(|| up.next()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn table(rows: usize, bits: usize, seed: u64) -> BitTable {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        // Rows have very different numbers of bits, so that pruning takes effect; some rows are empty.
        let mut row = |row: usize| {
            let ands = row % 5;
            (0..bits / 64)
                .map(|_| {
                    if row % 97 == 96 { 0 } else { (0..ands).fold(u64::MAX, |word, _| word & rng.next_u64()) }
                })
                .collect::<Vec<_>>()
        };
        BitTable::from_words(bits, (0..rows).flat_map(&mut row).collect())
    }

    /// Checks that every kernel finds the sorted list of all pairs, cut at K.
    fn check(queries: usize, records: usize, bits: usize, take: usize, measure: Measure) {
        let (queries, records) = (table(queries, bits, 1), table(records, bits, 2));
        let index = Index::new(&records);
        for kernel in Kernel::all() {
            let found = index.search_with(kernel, &queries, take, measure, &|_| ());
            for query in 0..queries.rows() {
                let score =
                    |row: usize| (measure.score_rows(queries.row(query), records.row(row)), row as u32);
                let mut all: Vec<_> = (0..records.rows()).map(score).collect();
                all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let expected: Vec<u32> = all[..take].iter().map(|&(_, row)| row).collect();
                assert_eq!(found.row(query), expected, "{kernel:?} {measure:?} query {query} of {bits} bits");
                assert_eq!(found.scores(query)[take - 1], all[take - 1].0);
            }
        }
    }

    #[test]
    fn every_kernel_finds_what_sorting_all_pairs_finds() {
        for (queries, records, bits, take) in
            [(70, 1_000, 1_024, 10), (3, 257, 64, 257), (65, 130, 192, 1), (1, 1, 2_048, 1)]
        {
            for measure in [Measure::Dice, Measure::Correlation(bits as u32), Measure::Hamming] {
                check(queries, records, bits, take, measure);
            }
        }
    }

    #[test]
    fn the_best_kernel_is_one_of_all() {
        assert!(Kernel::all().contains(&Kernel::best()) && Kernel::all().contains(&Kernel::Portable));
    }
}
