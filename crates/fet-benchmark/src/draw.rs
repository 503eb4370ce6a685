//! Random numbers that are equal on every machine and for every version of the program.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Stream of random numbers. The name of its purpose is its seed.
pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    /// Makes the stream of a purpose, such as "flights: order of the fleet".
    pub(crate) fn new(purpose: &str) -> Self {
        Self(ChaCha8Rng::from_seed(fet_io::sha256(purpose.as_bytes())))
    }

    /// Returns an integer from 0 to `bound` − 1.
    ///
    /// # Panics
    /// Panics if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no integer is below 0");
        // Multiplication and shift; the bias is below 2^-32 for tables of any size here.
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns a number from 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an approximately normal number with mean 0 and standard deviation 1: the sum of twelve uniform ones.
    /// Unlike exact normal numbers it is equal on all machines.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Returns one of the items.
    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_gives_the_same_numbers() {
        let numbers = |purpose: &str| {
            let mut draw = Draw::new(purpose);
            (0..5).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers("a"), numbers("a"));
        assert_ne!(numbers("a"), numbers("b"));
    }

    /// The mean of 12,000 uniform numbers lies within 5 standard errors of 1/2 with probability above 1 − 1e-6, and
    /// the seed is fixed.
    #[test]
    fn numbers_have_the_stated_range_and_mean() {
        let mut draw = Draw::new("range");
        let units: Vec<f64> = (0..12_000).map(|_| draw.unit()).collect();
        assert!(units.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = units.iter().sum::<f64>() / 12_000.0;
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0_f64 / 12_000.0).sqrt(), "{mean}");
        let normals: Vec<f64> = (0..12_000).map(|_| draw.normal()).collect();
        let square = normals.iter().map(|x| x * x).sum::<f64>() / 12_000.0;
        assert!((square - 1.0).abs() < 0.07, "{square}");
        let mut order: Vec<usize> = (0..100).collect();
        draw.shuffle(&mut order);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
