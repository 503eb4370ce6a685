//! Similarity of bit vectors.

/// Similarity of two bit vectors, given their numbers of set bits and of common bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// 2|a ∩ b| / (|a| + |b|), from 0 to 1; 0 if neither vector has a bit.
    Dice,
    /// Correlation of the bits of two vectors of this length (Yule's φ). It subtracts the bits that full
    /// vectors have in common by chance, and judges a short vector within a long one by the bits that it has.
    /// It is -1 if one vector has no bits or all bits, and nothing is known about it.
    Correlation(u32),
    /// Negative number of differing bits.
    Hamming,
}

impl Measure {
    /// Returns the score of two vectors with `a` and `b` set bits and `common` common bits.
    #[inline]
    pub fn score(self, common: u32, a: u32, b: u32) -> f32 {
        match self {
            Self::Dice if a + b == 0 => 0.0,
            Self::Dice => (2 * common) as f32 / (a + b) as f32,
            Self::Correlation(bits) => {
                let (bits, a, b) = (f64::from(bits), f64::from(a), f64::from(b));
                let spread = a * (bits - a) * b * (bits - b);
                if spread > 0.0 { ((f64::from(common) * bits - a * b) / spread.sqrt()) as f32 } else { -1.0 }
            }
            Self::Hamming => 2.0 * common as f32 - (a + b) as f32,
        }
    }

    /// Returns a number of common bits that every record of at least `b` bits needs to score `bar`.
    #[inline]
    pub(super) fn least_common(self, bar: f32, a: u32, b: u32) -> u64 {
        let sum = f64::from(a + b);
        let least = match self {
            Self::Dice => 0.5 * f64::from(bar) * sum,
            // As a function of b this is concave, and it equals a at the maximum of b. For larger b it is
            // therefore at least the smaller of its value here and a.
            Self::Correlation(bits) => {
                let (bits, a, b) = (f64::from(bits), f64::from(a), f64::from(b));
                (f64::from(bar) * (a * (bits - a) * b * (bits - b)).sqrt() + a * b) / bits
            }
            Self::Hamming => 0.5 * (f64::from(bar) + sum),
        };
        // Scores are rounded to 24 bits. The margin of 1e-3 bits far exceeds the rounding error for vectors
        // of up to a thousand words.
        (least - 1e-3).ceil().max(0.0) as u64
    }

    /// Returns the score of two rows.
    pub fn score_rows(self, a: &[u64], b: &[u64]) -> f32 {
        let ones = |row: &[u64]| row.iter().map(|word| word.count_ones()).sum::<u32>();
        let common = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
        self.score(common, ones(a), ones(b))
    }
}
