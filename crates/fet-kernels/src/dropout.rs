//! Dropout masks from a stream that can be entered anywhere, so that sequences draw theirs in any order.

use std::ops::Deref;

use rand_chacha::ChaCha8Rng;

use crate::keystream;
use crate::math::vectorised;

/// Inverted dropout: a value is zero with probability `rate`, else divided by `1 - rate`.
///
/// Each value takes two bytes of the stream, in the order of the tensor it belongs to; the rate is honoured to
/// 1/65536, and the scale is that of the rate as honoured.
#[derive(Debug, Clone)]
pub struct Dropout {
    rng: ChaCha8Rng,
    start: u128,
    threshold: u16,
    scale: f32,
}

impl Dropout {
    /// Masks that begin at the current position of `rng`.
    ///
    /// # Panics
    /// If the rate is not in (0, 1).
    pub fn new(rng: ChaCha8Rng, rate: f64) -> Self {
        assert!(rate > 0.0 && rate < 1.0, "a dropout rate of {rate}");
        let threshold = (rate * 65536.0).round();
        let scale = (65536.0 / (65536.0 - threshold)) as f32;
        Self { start: rng.get_word_pos(), rng, threshold: threshold as u16, scale }
    }

    /// Stream after `tensors` masks with this many values each.
    pub fn after(&self, tensors: &[usize]) -> ChaCha8Rng {
        let mut rng = self.rng.clone();
        rng.set_word_pos(self.start + words(tensors));
        rng
    }

    /// Factor of the kept values.
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// Gate that decides which values to keep, for loops over them.
    pub(crate) fn gate(&self) -> Gate {
        Gate { threshold: self.threshold, scale: self.scale }
    }

    /// Fills `numbers` with the random numbers from `first` of the tensor that follows `before`.
    pub(crate) fn draw(&self, before: u128, first: usize, numbers: &mut Numbers, count: usize) {
        // A word of the stream has two numbers, so an odd start draws one more number.
        let skip = first % 2;
        let from = self.start + before + (first / 2) as u128;
        let place = keystream::words(&self.rng, from, (count + skip).div_ceil(2), &mut numbers.words);
        (numbers.first, numbers.count) = (2 * place + skip, count);
        if cfg!(target_endian = "big") {
            numbers.words.iter_mut().for_each(|word| *word = word.rotate_left(16));
        }
    }
}

/// Drawn random numbers.
#[derive(Default)]
pub(crate) struct Numbers {
    words: Vec<u32>,
    first: usize,
    count: usize,
}

impl Deref for Numbers {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &bytemuck::cast_slice(&self.words)[self.first..self.first + self.count]
    }
}

/// Decision to keep or drop a value: kept if its random number reaches the threshold.
///
/// Uses bit masks, because the processor could not predict a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate {
    threshold: u16,
    scale: f32,
}

impl Gate {
    /// All ones if the value is kept.
    #[inline(always)]
    fn mask(self, number: u16) -> u32 {
        0u32.wrapping_sub(u32::from(number >= self.threshold))
    }

    /// The value scaled, or 0.
    #[inline(always)]
    pub(crate) fn pass(self, number: u16, value: f32) -> f32 {
        f32::from_bits((value * self.scale).to_bits() & self.mask(number))
    }

    /// The value, which must not be negative; negated if it is dropped.
    #[inline(always)]
    pub(crate) fn sign(self, number: u16, value: f32) -> f32 {
        f32::from_bits(value.to_bits() | (!self.mask(number) & SIGN))
    }
}

const SIGN: u32 = 1 << 31;

/// Reverses [`Gate::sign`]: the scaled value, or 0 if the sign marks it as dropped.
#[inline(always)]
pub(crate) fn passed(scale: f32, signed: f32) -> f32 {
    let stays = (signed.to_bits() >> 31).wrapping_sub(1);
    f32::from_bits((signed * scale).to_bits() & stays)
}

/// Dropout of some values, with one random number each.
pub(crate) type Drawn<'a> = Option<(&'a Dropout, &'a [u16])>;

/// # Panics
/// If the numbers of values and of random numbers differ.
pub(crate) fn check_numbers(drawn: Drawn<'_>, values: &[f32]) {
    assert!(
        drawn.is_none_or(|(_, numbers)| numbers.len() == values.len()),
        "one random number for each value"
    );
}

/// Copies each value, zeroed or scaled by its random number.
pub(crate) fn drop_into(values: &[f32], drawn: Drawn<'_>, out: &mut [f32]) {
    check_numbers(drawn, values);
    let Some((dropout, numbers)) = drawn else {
        return out.copy_from_slice(values);
    };
    let gate = dropout.gate();
    vectorised(
        #[inline(always)]
        move || {
            for ((out, value), &number) in out.iter_mut().zip(values).zip(numbers) {
                *out = gate.pass(number, *value);
            }
        },
    );
}

/// x ← x + Drop(values), with a copy of the result.
pub(crate) fn add_dropped(x: &mut [f32], values: &[f32], drawn: Drawn<'_>, copy: &mut [f32]) {
    check_numbers(drawn, values);
    vectorised(
        #[inline(always)]
        move || {
            let each = x.iter_mut().zip(copy).zip(values);
            match drawn {
                Some((dropout, numbers)) => {
                    let gate = dropout.gate();
                    for (((x, copy), value), &number) in each.zip(numbers) {
                        *x += gate.pass(number, *value);
                        *copy = *x;
                    }
                }
                None => {
                    for ((x, copy), value) in each {
                        *x += value;
                        *copy = *x;
                    }
                }
            }
        },
    );
}

/// Number of words of the stream that masks of these sizes take in sequence.
pub(crate) fn words(tensors: &[usize]) -> u128 {
    tensors.iter().map(|count| count.div_ceil(2) as u128).sum()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn any_part_of_a_mask_is_the_part_of_the_whole() {
        let mut rng = ChaCha8Rng::from_seed([7; 32]);
        let _ = rng.next_u32();
        let dropout = Dropout::new(rng.clone(), 0.25);
        let mut bytes = vec![0u8; 2 * 1001];
        rng.fill_bytes(&mut bytes);
        let whole: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        let mut part = Numbers::default();
        for (first, count) in [(0, 1001), (0, 4), (3, 10), (500, 501), (1000, 1)] {
            dropout.draw(0, first, &mut part, count);
            assert_eq!(*part, whole[first..first + count], "{count} from {first}");
        }
        // The next tensor begins at the next word, as if the masks were drawn in sequence.
        assert_eq!(dropout.after(&[1001]).next_u32(), rng.next_u32());
    }
}
