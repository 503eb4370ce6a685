//! Counting common bits: one plain loop, compiled for the vector instructions that the machine turns out to have.
//!
//! The loop is written once; the compiler makes vector code of it (`vpopcntq` under AVX-512, table look-ups under
//! AVX2, a word at a time elsewhere).

use super::{Search, Tile};
use crate::bits::BitTable;

/// Records whose words stand beside each other.
pub(crate) const LANES: usize = 8;
/// Queries that are compared with a block at a time.
pub(crate) const QUERIES: usize = 4;

/// Which instructions count the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Those that every machine of the target has.
    Portable,
    /// AVX2.
    Avx2,
    /// AVX-512 with VPOPCNTDQ.
    Avx512,
}

impl Kernel {
    /// The fastest that this machine has.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// All that this machine has, the fastest first.
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
        self.run(|| scan(tile, four));
    }

    /// Tells how many bits `row` shares with each of these rows of a table; the first of a pair is passed over.
    pub(crate) fn shared(
        self,
        row: &[u64],
        table: &BitTable,
        others: &[(u32, u32)],
        mut tell: impl FnMut(u32, u32),
    ) {
        self.run(|| {
            for &(_, other) in others {
                let words = row.iter().zip(table.row(other as usize));
                tell(other, words.map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>() as u32);
            }
        });
    }

    /// Runs a loop that is compiled for the instructions.
    #[inline(always)]
    fn run(self, work: impl FnOnce()) {
        match self {
            Self::Portable => work(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"));
                #[expect(unsafe_code, reason = "a function compiled for AVX2 is called")]
                // SAFETY: the line above has made sure that the machine has the instructions.
                unsafe {
                    run_avx2(work);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq"));
                #[expect(unsafe_code, reason = "a function compiled for AVX-512 is called")]
                // SAFETY: the line above has made sure that the machine has the instructions.
                unsafe {
                    run_avx512(work);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => work(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn run_avx2(work: impl FnOnce()) {
    work();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn run_avx512(work: impl FnOnce()) {
    work();
}

#[inline(always)]
fn scan(tile: &Tile<'_>, four: &mut [Search<'_>; QUERIES]) {
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

/// How many bits each query shares with each record of a block.
#[inline(always)]
fn count(block: &[[u64; LANES]], queries: [&[u64]; QUERIES]) -> [[u64; LANES]; QUERIES] {
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
