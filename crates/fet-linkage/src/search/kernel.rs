//! Counting of common bits: one plain loop, compiled for the vector instructions available at run time.
//!
//! The loop is written once, and the compiler vectorises it (table look-ups under AVX2, a word at a time
//! elsewhere). Only the count under AVX-512 (`vpopcntq`) is written by hand.

use super::measure::Measure;
use crate::bits::BitTable;
use crate::top::Top;

/// Number of records with interleaved words.
pub(crate) const LANES: usize = 8;
/// Number of queries that are compared with a block at a time.
pub(crate) const QUERIES: usize = 4;

/// A query in progress.
pub(crate) struct Search<'a> {
    pub(super) words: &'a [u64],
    pub(super) ones: u32,
    pub(super) top: Top,
}

/// Consecutive blocks of the index.
pub(crate) struct Tile<'a> {
    pub(super) width: usize,
    pub(super) blocks: &'a [[u64; LANES]],
    pub(super) records: &'a [u32],
    pub(super) ones: &'a [u32],
    /// Smallest number of set bits among the records of the tile.
    pub(super) low: u32,
    pub(super) measure: Measure,
}

impl Tile<'_> {
    /// Returns the number of common bits that a record of the tile needs to be useful to the search.
    #[inline]
    fn bound(&self, search: &Search<'_>) -> u64 {
        if search.top.wants() {
            self.measure.least_common(search.top.bar(), search.ones, self.low)
        } else {
            u64::MAX
        }
    }

    /// Offers the records of a block that have enough common bits.
    #[cold]
    fn offer(&self, block: usize, counts: &[u64; LANES], bound: u64, search: &mut Search<'_>) {
        for (lane, &common) in counts.iter().enumerate() {
            let place = block * LANES + lane;
            if common >= bound && place < self.ones.len() {
                let score = self.measure.score(common as u32, search.ones, self.ones[place]);
                search.top.offer(score, self.records[place]);
            }
        }
    }
}

/// Instruction set that counts the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Instructions that every machine of the target has.
    Portable,
    /// AVX2.
    Avx2,
    /// AVX-512 with VPOPCNTDQ.
    Avx512,
}

impl Kernel {
    /// Returns the fastest kernel that this machine supports.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// Returns all kernels that this machine supports, the fastest first.
    pub fn all() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                found.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                found.push(Self::Avx2);
            }
        }
        found.push(Self::Portable);
        found
    }

    /// Compares four queries with every record of a tile.
    pub(crate) fn scan(self, tile: &Tile<'_>, four: &mut [Search<'_>; QUERIES]) {
        match self {
            Self::Portable => scan(tile, four, count),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"));
                #[expect(unsafe_code, reason = "a function compiled for AVX2 is called")]
                // SAFETY: the line above checks that the machine has the instructions.
                unsafe {
                    scan_avx2(tile, four);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq"));
                #[expect(unsafe_code, reason = "a function compiled for AVX-512 is called")]
                // SAFETY: the line above checks that the machine has the instructions.
                unsafe {
                    scan_avx512(tile, four);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => scan(tile, four, count),
        }
    }

    /// Passes to the callback the number of bits that `row` has in common with each of these rows of a table.
    /// The first part of each pair is ignored.
    pub(crate) fn shared(
        self,
        row: &[u64],
        table: &BitTable,
        others: &[(u32, u32)],
        tell: impl FnMut(u32, u32),
    ) {
        match self {
            Self::Portable => shared(row, table, others, tell),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"));
                #[expect(unsafe_code, reason = "a function compiled for AVX2 is called")]
                // SAFETY: the line above checks that the machine has the instructions.
                unsafe {
                    shared_avx2(row, table, others, tell);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq"));
                #[expect(unsafe_code, reason = "a function compiled for AVX-512 is called")]
                // SAFETY: the line above checks that the machine has the instructions.
                unsafe {
                    shared_avx512(row, table, others, tell);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => shared(row, table, others, tell),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn scan_avx2(tile: &Tile<'_>, four: &mut [Search<'_>; QUERIES]) {
    scan(tile, four, count);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn scan_avx512(tile: &Tile<'_>, four: &mut [Search<'_>; QUERIES]) {
    scan(tile, four, |block, words| count_avx512(block, words));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn shared_avx2(row: &[u64], table: &BitTable, others: &[(u32, u32)], tell: impl FnMut(u32, u32)) {
    shared(row, table, others, tell);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn shared_avx512(row: &[u64], table: &BitTable, others: &[(u32, u32)], tell: impl FnMut(u32, u32)) {
    shared(row, table, others, tell);
}

#[inline(always)]
fn shared(row: &[u64], table: &BitTable, others: &[(u32, u32)], mut tell: impl FnMut(u32, u32)) {
    for &(_, other) in others {
        let words = row.iter().zip(table.row(other as usize));
        let common: u64 = words.map(|(a, b)| u64::from((a & b).count_ones())).sum();
        tell(other, common as u32);
    }
}

/// Number of common bits of each query and each record of a block.
type Counts = [[u64; LANES]; QUERIES];

#[inline(always)]
fn scan(
    tile: &Tile<'_>,
    four: &mut [Search<'_>; QUERIES],
    count: impl Fn(&[[u64; LANES]], [&[u64]; QUERIES]) -> Counts,
) {
    let words: [&[u64]; QUERIES] = std::array::from_fn(|query| four[query].words);
    let mut bounds: [u64; QUERIES] = std::array::from_fn(|query| tile.bound(&four[query]));
    for (number, block) in tile.blocks.chunks_exact(tile.width).enumerate() {
        let counts = count(block, words);
        for query in 0..QUERIES {
            let mut most = 0;
            for &common in &counts[query] {
                most = most.max(common);
            }
            if most >= bounds[query] {
                tile.offer(number, &counts[query], bounds[query], &mut four[query]);
                bounds[query] = tile.bound(&four[query]);
            }
        }
    }
}

#[inline(always)]
fn count(block: &[[u64; LANES]], queries: [&[u64]; QUERIES]) -> Counts {
    let [a, b, c, d] = queries;
    let mut counts = [[0u64; LANES]; QUERIES];
    for ((((lanes, a), b), c), d) in block.iter().zip(a).zip(b).zip(c).zip(d) {
        for (count, word) in counts.iter_mut().zip([a, b, c, d]) {
            for (count, lane) in count.iter_mut().zip(lanes) {
                *count += u64::from((lane & word).count_ones());
            }
        }
    }
    counts
}

/// Counts with one register for each query. The compiler alone would gather words from several blocks of
/// eight.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
#[inline]
fn count_avx512(block: &[[u64; LANES]], queries: [&[u64]; QUERIES]) -> Counts {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_popcnt_epi64, _mm512_set_epi64,
        _mm512_set1_epi64, _mm512_setzero_si512,
    };
    let [a, b, c, d] = queries;
    let mut counts: [__m512i; QUERIES] = [_mm512_setzero_si512(); QUERIES];
    for ((((lanes, a), b), c), d) in block.iter().zip(a).zip(b).zip(c).zip(d) {
        let [l0, l1, l2, l3, l4, l5, l6, l7] = lanes.map(u64::cast_signed);
        let lanes = _mm512_set_epi64(l7, l6, l5, l4, l3, l2, l1, l0);
        for (count, word) in counts.iter_mut().zip([a, b, c, d]) {
            let common = _mm512_and_si512(lanes, _mm512_set1_epi64(word.cast_signed()));
            *count = _mm512_add_epi64(*count, _mm512_popcnt_epi64(common));
        }
    }
    #[expect(unsafe_code, reason = "a register becomes the eight numbers that it holds")]
    // SAFETY: both types have 64 bytes, and every bit pattern is a valid array of eight numbers.
    counts.map(|count| unsafe { std::mem::transmute::<__m512i, [u64; LANES]>(count) })
}
