//! Walker's alias table of a discrete Gaussian, built in integers so that draws have exactly the tabulated
//! probabilities.

use std::f64::consts::PI;

use rand::Rng;

/// Slot of the table: an outcome, and the alias that replaces it above a threshold.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Share of the slot that belongs to the outcome, in units of 2^-64.
    threshold: u64,
    outcome: i32,
    alias: i32,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// log2 of the number of slots.
    bits: u32,
}

/// Number of values drawn at a time.
const BLOCK: usize = 512;
/// Exponent k²/2s² beyond which outcomes are left out.
const FARTHEST_EXPONENT: f64 = 64.0;

impl Table {
    pub(super) fn new(deviation: f64) -> Self {
        let farthest = (deviation * (2.0 * FARTHEST_EXPONENT).sqrt()).floor() as i32;
        let outcomes = 2 * farthest as usize + 1;
        let bits = outcomes.next_power_of_two().trailing_zeros();
        Self { slots: alias(&weights(deviation, farthest, bits), farthest, bits), bits }
    }

    /// Draws a value for each entry of `out`.
    pub(super) fn fill(&self, out: &mut [i32], rng: &mut impl Rng, mut put: impl FnMut(&mut i32, i32)) {
        let bits = self.bits;
        let mut bytes = [0u8; 8 * BLOCK];
        for block in out.chunks_mut(BLOCK) {
            let bytes = &mut bytes[..8 * block.len()];
            rng.fill_bytes(bytes);
            for (slot, word) in block.iter_mut().zip(bytes.as_chunks::<8>().0) {
                let word = u64::from_le_bytes(*word);
                let entry = &self.slots[(word >> (64 - bits)) as usize];
                let mut fraction = word << bits;
                if (fraction ^ entry.threshold) >> bits == 0 {
                    // The fraction lacks the bits that chose the slot, and here the missing bits decide.
                    fraction |= rng.next_u64() >> (64 - bits);
                }
                put(slot, if fraction < entry.threshold { entry.outcome } else { entry.alias });
            }
        }
    }
}

/// Returns the probabilities of −farthest..=farthest in units of 2^-(64 + bits). They add up to 1 exactly.
fn weights(deviation: f64, farthest: i32, bits: u32) -> Vec<u128> {
    // Σ exp(−k²/2s²) = s√(2π)(1 + 2exp(−2π²s²) + ...); the second term is below 1e-500 here.
    let unit = 2f64.powi(64) * 2f64.powi(bits as i32) / (deviation * (2.0 * PI).sqrt());
    let scale = 0.5 / (deviation * deviation);
    let mut weights: Vec<u128> = (-farthest..=farthest)
        .map(|k| ((-f64::from(k) * f64::from(k) * scale).exp() * unit).round() as u128)
        .collect();
    // Rounding leaves some 2^-52 of the whole, which the bulk takes evenly.
    let total: u128 = weights.iter().sum();
    let left = (1i128 << (64 + bits)) - total as i128;
    let bulk = 2 * (deviation as usize) + 1;
    let first = farthest as usize - deviation as usize;
    let (each, mut rest) = (left.div_euclid(bulk as i128), left.rem_euclid(bulk as i128));
    for weight in &mut weights[first..first + bulk] {
        let extra = each + i128::from(rest > 0);
        rest -= i128::from(rest > 0);
        *weight = (*weight as i128 + extra) as u128;
    }
    weights
}

/// Vose's construction: fills slots of 2^64 each with one outcome and its alias.
fn alias(weights: &[u128], farthest: i32, bits: u32) -> Vec<Slot> {
    let full = 1u128 << 64;
    let mut left = weights.to_vec();
    left.resize(1 << bits, 0);
    let outcome = |index: usize| index as i32 - farthest;
    let mut slots: Vec<Slot> =
        (0..left.len()).map(|i| Slot { threshold: 0, outcome: outcome(i), alias: outcome(i) }).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|&i| left[i] < full);
    while let Some(less) = small.pop() {
        let more = *large.last().expect("the weights above a slot's share balance those below");
        slots[less].threshold = left[less] as u64;
        slots[less].alias = outcome(more);
        left[more] -= full - left[less];
        if left[more] < full {
            large.pop();
            small.push(more);
        }
    }
    // The remaining slots are full, and each is its own alias.
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities recovered from the table's slots match the definition to the stated error.
    #[test]
    fn a_table_holds_the_definition() {
        for deviation in [8.0, 33.3, 160.0, 700.5] {
            let table = Table::new(deviation);
            let farthest = -table.slots[0].outcome;
            let mut found = vec![0u128; table.slots.len()];
            for slot in &table.slots {
                found[(slot.outcome + farthest) as usize] += u128::from(slot.threshold);
                found[(slot.alias + farthest) as usize] += (1 << 64) - u128::from(slot.threshold);
            }
            assert_eq!(found.iter().sum::<u128>(), 1 << (64 + table.bits), "{deviation}");
            let expected = weights(deviation, farthest, table.bits);
            assert_eq!(&found[..expected.len()], expected.as_slice(), "{deviation}");
            assert!(found[expected.len()..].iter().all(|&weight| weight == 0), "{deviation}");
            // Compares with a sum over all outcomes in place of the closed form of the normaliser.
            let term = |k: i32| (-0.5 * (f64::from(k) / deviation).powi(2)).exp();
            let normaliser: f64 = (-farthest..=farthest).map(term).sum();
            for k in [0, 1, (2.0 * deviation) as i32, -(5.0 * deviation) as i32] {
                let probability = found[(k + farthest) as usize] as f64 / 2f64.powi(64 + table.bits as i32);
                let definition = term(k) / normaliser;
                assert!((probability / definition - 1.0).abs() < 3e-14, "{deviation} {k}");
            }
        }
    }

    /// Number with twice the digits: a value and its remainder, by the error-free sum and product (Dekker
    /// 1971).
    #[derive(Clone, Copy)]
    struct DoubleDouble(f64, f64);

    impl DoubleDouble {
        fn sum(a: f64, b: f64) -> Self {
            let s = a + b;
            let t = s - a;
            Self(s, (a - (s - t)) + (b - t))
        }

        fn plus(self, other: Self) -> Self {
            let Self(s, e) = Self::sum(self.0, other.0);
            Self::sum(s, e + self.1 + other.1)
        }

        fn times(self, other: Self) -> Self {
            let product = self.0 * other.0;
            let lack = self.0.mul_add(other.0, -product);
            Self::sum(product, lack + self.0 * other.1 + self.1 * other.0)
        }

        fn over(self, other: Self) -> Self {
            let first = self.0 / other.0;
            let rest = self.plus(other.times(Self(-first, 0.0)));
            Self::sum(first, rest.0 / other.0)
        }

        /// Returns e^−self for a positive number: halves it twelve times, sums Taylor's series, and squares
        /// the sum twelve times.
        fn exp_of_negative(self) -> Self {
            let x = Self(-self.0 / 4096.0, -self.1 / 4096.0);
            let (mut sum, mut term) = (Self(1.0, 0.0), Self(1.0, 0.0));
            for n in 1..16 {
                term = term.times(x).over(Self(f64::from(n), 0.0));
                sum = sum.plus(term);
            }
            (0..12).fold(sum, |power, _| power.times(power))
        }
    }

    /// The two claims behind [`Slack`](crate::noise::Slack) hold, with the definition computed to some 28
    /// digits. The deviations cover the range of tables, including those just before and just after the
    /// number of slots doubles.
    #[test]
    fn the_stated_errors_hold() {
        use crate::noise::{BULK, RELATIVE_ERROR, TAIL_MASS};
        let half = f64::from(1 << 11) / (2.0 * (2.0 * FARTHEST_EXPONENT).sqrt());
        let mut most = 0.0f64;
        for deviation in [8.0, 9.7, half - 0.2, half + 0.2, 100.0, 160.0, 181.0, 700.5, 3_000.0, 17_400.0] {
            let farthest = (deviation * (2.0 * FARTHEST_EXPONENT).sqrt()).floor() as i32;
            let bits = (2 * farthest as usize + 1).next_power_of_two().trailing_zeros();
            let table = weights(deviation, farthest, bits);
            let square = DoubleDouble(deviation, 0.0).times(DoubleDouble(deviation, 0.0));
            let term = |k: i32| {
                let k = f64::from(k);
                DoubleDouble(0.5 * k * k, 0.0).over(square).exp_of_negative()
            };
            // Outcomes beyond the table count up to 13 deviations; outcomes farther out are negligible.
            let last = (13.0 * deviation) as i32;
            let terms: Vec<DoubleDouble> = (0..=last).map(term).collect();
            let zero = DoubleDouble(0.0, 0.0);
            let side = terms[1..].iter().rev().fold(zero, |sum, &term| sum.plus(term));
            let total = side.plus(side).plus(terms[0]);
            let unit = 2f64.powi(-64 - bits as i32);
            let mut tail = 0.0;
            for k in -last..=last {
                let expected = terms[k.unsigned_abs() as usize].over(total);
                let count = if k.abs() <= farthest { table[(k + farthest) as usize] } else { 0 };
                let (high, low) = ((count >> 50) as f64 * 2f64.powi(50), (count & ((1 << 50) - 1)) as f64);
                let found = DoubleDouble::sum(high * unit, low * unit);
                let error = found.plus(DoubleDouble(-expected.0, -expected.1)).0.abs();
                if f64::from(k.abs()) <= BULK * deviation {
                    let relative = error / expected.0;
                    assert!(relative <= RELATIVE_ERROR, "{deviation} {k}: {relative:e}");
                } else {
                    tail += error;
                }
            }
            assert!(tail <= TAIL_MASS, "{deviation}: {tail:e}");
            most = most.max(tail);
        }
        assert!(most > 0.2 * TAIL_MASS, "the charge is needed: {most:e}");
    }
}
