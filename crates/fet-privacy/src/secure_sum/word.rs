//! Integers modulo 2^b, as stored in messages.

/// Unsigned word of 32 or 64 bits.
pub trait Word: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// Number of bits.
    const BITS: u32;
    /// Number of bytes.
    const BYTES: usize;
    /// Returns the low bits of `value`.
    fn from_signed(value: i64) -> Self;
    /// Returns the value in −2^{bits−1}..2^{bits−1} that is congruent to the word modulo 2^bits.
    fn to_signed(self, bits: u32) -> i64;
    /// Creates a word from little-endian bytes.
    ///
    /// # Panics
    /// If the number of bytes is not [`Word::BYTES`].
    fn from_bytes(bytes: &[u8]) -> Self;
    /// Returns the sum modulo 2^BITS.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Returns the difference modulo 2^BITS.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// Returns the word modulo 2^bits.
    #[must_use]
    fn low(self, bits: u32) -> Self;
}

macro_rules! word {
    ($unsigned:ty, $signed:ty) => {
        impl Word for $unsigned {
            const BITS: u32 = <$unsigned>::BITS;
            const BYTES: usize = size_of::<$unsigned>();

            fn from_signed(value: i64) -> Self {
                value as $unsigned
            }

            fn to_signed(self, bits: u32) -> i64 {
                let unused = Self::BITS - bits;
                i64::from(((self << unused) as $signed) >> unused)
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("one word's bytes"))
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn low(self, bits: u32) -> Self {
                self & (Self::MAX >> (Self::BITS - bits))
            }
        }
    };
}

word!(u32, i32);
word!(u64, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_signed_values_modulo_two_to_the_bits() {
        for (value, bits) in [(5, 8), (-5, 8), (-128, 8), (127, 8), (-1, 32), (i64::from(i32::MIN), 32)] {
            assert_eq!(u32::from_signed(value).low(bits).to_signed(bits), value, "{value} {bits}");
            assert_eq!(u64::from_signed(value).low(bits).to_signed(bits), value, "{value} {bits}");
        }
        assert_eq!(u64::from_signed(i64::MIN).to_signed(64), i64::MIN);
        assert_eq!(u32::from_signed(128).low(8).to_signed(8), -128, "larger values wrap around");
    }
}
