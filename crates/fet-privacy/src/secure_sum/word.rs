//! Integers modulo 2^b as messages hold them.

/// An unsigned word of 32 or 64 bits.
pub trait Word: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// How many bits it has.
    const BITS: u32;
    /// How many bytes it has.
    const BYTES: usize;
    /// The low bits of `value`.
    fn from_signed(value: i64) -> Self;
    /// The value in −2^{bits−1}..2^{bits−1} that is congruent to the word modulo 2^bits.
    fn to_signed(self, bits: u32) -> i64;
    /// The word of little-endian bytes.
    ///
    /// # Panics
    /// If there are not [`Word::BYTES`] of them.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// The sum modulo the word's own 2^BITS.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The difference modulo the word's own 2^BITS.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// The word modulo 2^bits.
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
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as the word has"))
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
        assert_eq!(u32::from_signed(128).low(8).to_signed(8), -128, "what does not fit wraps");
    }
}
