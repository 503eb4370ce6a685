//! Neighbours of a query while a search finds them, and the result.

/// Record numbers and distances of the `take` nearest records of each query, nearest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// Record numbers, row by row.
    pub indices: Vec<u32>,
    /// Squared distance of each record, in the order of `indices`.
    pub squared: Vec<f64>,
}

/// Best K candidates so far. The buffer collects up to 2K candidates and then drops the worse half.
#[derive(Clone)]
pub(super) struct Candidates {
    take: usize,
    /// Bits of the squared distance, then the index. Bits of non-negative floats have the same order as the
    /// floats.
    keys: Vec<u128>,
    pub(super) bound: f64,
}

impl Candidates {
    pub(super) fn new(take: usize) -> Self {
        Self { take, keys: Vec::with_capacity(2 * take + 1), bound: f64::INFINITY }
    }

    #[inline]
    pub(super) fn offer(&mut self, squared: f64, index: u32) {
        if squared <= self.bound {
            self.keys.push(u128::from(squared.to_bits()) << 32 | u128::from(index));
            if self.keys.len() >= 2 * self.take.max(8) {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.keys.len() > self.take {
            self.keys.select_nth_unstable(self.take - 1);
            self.keys.truncate(self.take);
            self.bound = f64::from_bits((self.keys[self.take - 1] >> 32) as u64);
        }
    }

    /// Writes the candidates, nearest first, and empties the buffer.
    pub(super) fn drain(&mut self, indices: &mut [u32], squared: &mut [f64]) {
        self.cut();
        self.keys.sort_unstable();
        for ((key, index), squared) in self.keys.iter().zip(indices).zip(squared) {
            *index = *key as u32;
            *squared = f64::from_bits((key >> 32) as u64);
        }
        self.keys.clear();
        self.bound = f64::INFINITY;
    }
}
