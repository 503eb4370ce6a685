//! Squared Euclidean distances of long vectors, compiled for the vector instructions of the machine.
//!
//! Sums run in sixteen lanes that are added at the end. Fused operations are not used, so that the result is
//! the same on every machine.

/// Instruction set that computes the distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Squared(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

macro_rules! per_level {
    ($name:ident, $avx2:ident, $avx512:ident, $lanes:ident, $type:ty, $doc:literal) => {
        impl Squared {
            #[doc = $doc]
            #[inline]
            pub fn $name(self, a: &[$type], b: &[$type]) -> $type {
                match self.0 {
                    Level::Portable => $lanes(a, b),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => {
                        #[expect(unsafe_code, reason = "a function compiled for AVX2 is called")]
                        // SAFETY: only `best` creates this level, and only if the machine has AVX2.
                        unsafe {
                            $avx2(a, b)
                        }
                    }
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => {
                        #[expect(unsafe_code, reason = "a function compiled for AVX-512 is called")]
                        // SAFETY: only `best` creates this level, and only if the machine has AVX-512.
                        unsafe {
                            $avx512(a, b)
                        }
                    }
                }
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2(a: &[$type], b: &[$type]) -> $type {
            $lanes(a, b)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        fn $avx512(a: &[$type], b: &[$type]) -> $type {
            $lanes(a, b)
        }

        #[inline(always)]
        fn $lanes(a: &[$type], b: &[$type]) -> $type {
            let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
            let mut sums = [0.0; 16];
            for (a, b) in a.iter().zip(b) {
                for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                    *sum += (a - b) * (a - b);
                }
            }
            let rest: $type = rest_a.iter().zip(rest_b).map(|(a, b)| (a - b) * (a - b)).sum();
            sums.iter().sum::<$type>() + rest
        }
    };
}

per_level!(floats, floats_avx2, floats_avx512, lanes_floats, f32, "|a - b|² in single precision.");
per_level!(doubles, doubles_avx2, doubles_avx512, lanes_doubles, f64, "|a - b|² in double precision.");

impl Squared {
    /// Returns the fastest level that this machine supports.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Self(Level::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Level::Avx2);
            }
        }
        Self(Level::Portable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_plain_sum() {
        for length in [0, 1, 15, 16, 17, 784] {
            let a: Vec<f64> = (0..length).map(|i| f64::from(i % 13)).collect();
            let b: Vec<f64> = (0..length).map(|i| f64::from(i % 7)).collect();
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
            let singles = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
            for squared in [Squared::best(), Squared(Level::Portable)] {
                // Small integers: every sum is exact in both precisions.
                assert_eq!(squared.doubles(&a, &b), plain);
                assert_eq!(f64::from(squared.floats(&singles(&a), &singles(&b))), plain);
            }
        }
    }
}
