//! Words of a ChaCha8 stream, sixteen blocks at a time on processors with vectors of sixteen words.
//!
//! The words equal those of `rand_chacha`, which generates four blocks at a time.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Number of words of a block.
const BLOCK: usize = 16;
/// Number of blocks per step.
#[cfg(target_arch = "x86_64")]
const BLOCKS: usize = 16;

/// Generates `count` words of the stream from word `first`, and returns their start in `words`, which may hold more words
/// before and after them.
pub(crate) fn words(rng: &ChaCha8Rng, first: u128, count: usize, words: &mut Vec<u32>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && count >= BLOCK * BLOCKS / 2 {
        let start = (first % BLOCK as u128) as usize;
        let length = (start + count).next_multiple_of(BLOCK * BLOCKS);
        if words.len() < length {
            words.resize(length, 0);
        }
        let (chunks, _) = words[..length].as_chunks_mut::<{ BLOCK * BLOCKS }>();
        let state = vectors::State::new(rng);
        for (index, chunk) in chunks.iter_mut().enumerate() {
            let block = ((first / BLOCK as u128) as u64).wrapping_add((index * BLOCKS) as u64);
            #[expect(unsafe_code, reason = "the processor supports these instructions")]
            // SAFETY: the processor supports these instructions, as checked above.
            unsafe {
                state.blocks(block, chunk);
            }
        }
        return start;
    }
    if words.len() < count {
        words.resize(count, 0);
    }
    let mut rng = rng.clone();
    rng.set_word_pos(first);
    rng.fill_bytes(bytemuck::cast_slice_mut(&mut words[..count]));
    words[..count].iter_mut().for_each(|word| *word = u32::from_le(*word));
    0
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    //! AVX-512 version: a vector holds one word of each of sixteen blocks.

    use std::arch::x86_64::{
        __m512i, _mm512_add_epi32, _mm512_castps_si512, _mm512_castsi512_ps, _mm512_loadu_si512,
        _mm512_rol_epi32, _mm512_set1_epi32, _mm512_storeu_si512, _mm512_xor_si512,
    };

    use rand_chacha::ChaCha8Rng;

    use super::{BLOCK, BLOCKS};
    use crate::transpose::vectors::block_of_sixteen;

    /// Words that all blocks of a stream share: constants, key, and the stream number after the counter.
    pub(super) struct State {
        words: [u32; BLOCK],
    }

    impl State {
        pub(super) fn new(rng: &ChaCha8Rng) -> Self {
            let mut words = [0; BLOCK];
            words[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
            let seed = rng.get_seed();
            for (word, bytes) in words[4..12].iter_mut().zip(seed.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
            let stream = rng.get_stream();
            (words[14], words[15]) = (stream as u32, (stream >> 32) as u32);
            Self { words }
        }

        /// The blocks from `first`.
        #[target_feature(enable = "avx512f")]
        pub(super) fn blocks(&self, first: u64, out: &mut [u32; BLOCK * BLOCKS]) {
            let counters: [u64; BLOCKS] = std::array::from_fn(|index| first.wrapping_add(index as u64));
            let mut start = [_mm512_set1_epi32(0); BLOCK];
            // The compiler does not use these instructions within closures.
            for (place, word) in start.iter_mut().zip(self.words) {
                *place = _mm512_set1_epi32(word.cast_signed());
            }
            let (low, high) =
                (counters.map(|counter| counter as u32), counters.map(|counter| (counter >> 32) as u32));
            #[expect(unsafe_code, reason = "loads and stores of these instructions take pointers")]
            // SAFETY: both arrays hold sixteen words.
            unsafe {
                (start[12], start[13]) =
                    (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast()));
            }
            let mut state = start;
            for _ in 0..4 {
                for column in 0..4 {
                    quarter(&mut state, [column, 4 + column, 8 + column, 12 + column]);
                }
                for at in 0..4 {
                    quarter(&mut state, [at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4]);
                }
            }
            for (word, start) in state.iter_mut().zip(start) {
                *word = _mm512_add_epi32(*word, start);
            }
            let mut blocks = [_mm512_castsi512_ps(state[0]); BLOCK];
            for (block, word) in blocks.iter_mut().zip(state) {
                *block = _mm512_castsi512_ps(word);
            }
            let blocks = block_of_sixteen(blocks);
            for (block, out) in blocks.into_iter().zip(out.as_chunks_mut::<BLOCK>().0) {
                #[expect(unsafe_code, reason = "loads and stores of these instructions take pointers")]
                // SAFETY: the chunk holds sixteen words.
                unsafe {
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_castps_si512(block));
                }
            }
        }
    }

    /// A quarter round (RFC 8439, section 2.1).
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn quarter(state: &mut [__m512i; BLOCK], [a, b, c, d]: [usize; 4]) {
        state[a] = _mm512_add_epi32(state[a], state[b]);
        state[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(state[d], state[a]));
        state[c] = _mm512_add_epi32(state[c], state[d]);
        state[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(state[b], state[c]));
        state[a] = _mm512_add_epi32(state[a], state[b]);
        state[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(state[d], state[a]));
        state[c] = _mm512_add_epi32(state[c], state[d]);
        state[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(state[b], state[c]));
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_library() {
        let mut rng = ChaCha8Rng::from_seed([7; 32]);
        rng.set_stream(0x0123_4567_89ab_cdef);
        let mut found = Vec::new();
        // The last begins shortly before the lower word of the counter overflows.
        for (first, count) in [(0u128, 1000), (5, 128), (16, 256), (3_333, 5_001), ((1 << 36) - 40, 600)] {
            let mut library = rng.clone();
            library.set_word_pos(first);
            let start = words(&rng, first, count, &mut found);
            for (index, word) in found[start..start + count].iter().enumerate() {
                assert_eq!(*word, library.next_u32(), "word {index} from {first}");
            }
        }
    }
}
