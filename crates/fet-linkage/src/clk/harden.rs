//! Hardening of filters against attacks on the frequencies of bits.

use hmac::{Hmac, Mac};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use sha2::Sha256;

use crate::bits::{BitTable, get, set};
use crate::mix;

use super::diffuse::diffuse;

/// Transformation of a filter after encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hardening {
    /// No transformation.
    #[default]
    None,
    /// Appends the complement of the filter and permutes the result by the secret. Every record has the same
    /// number of set bits, and the vector is twice as long (Schnell and Borgs 2016, "balanced").
    Balanced,
    /// Exclusive-or of the two halves of the filter. No bit belongs to one q-gram any more, and the vector is
    /// half as long (Schnell and Borgs 2016, "XOR-folding").
    XorFold,
    /// Windows of sixteen bits seed new bits under the secret (Schnell and Borgs 2016, "rehashing").
    Rehash,
    /// Each bit is the exclusive-or of this number of bits of the filter, at places drawn by the secret
    /// (Armknecht, Heng and Schnell 2023, "diffusion").
    Diffusion(usize),
}

impl Hardening {
    /// Returns the length of a hardened vector.
    pub fn bits(self, bits: usize) -> usize {
        match self {
            Self::None | Self::Rehash | Self::Diffusion(_) => bits,
            Self::Balanced => 2 * bits,
            Self::XorFold => bits / 2,
        }
    }

    pub(super) fn apply(self, table: BitTable, mac: &Hmac<Sha256>) -> BitTable {
        let bits = table.bits();
        let draw = |purpose: &[u8]| -> [u8; 32] {
            let mut mac = mac.clone();
            mac.update(purpose);
            mac.finalize().into_bytes().into()
        };
        match self {
            Self::None => table,
            Self::Balanced => {
                let mut places: Vec<usize> = (0..2 * bits).collect();
                places.shuffle(&mut ChaCha20Rng::from_seed(draw(b"fet clk balanced")));
                table.map_rows(2 * bits, |from, to| {
                    for at in 0..bits {
                        set(to, places[if get(from, at) { at } else { bits + at }]);
                    }
                })
            }
            Self::XorFold => table.map_rows(bits / 2, |from, to| {
                let (low, high) = from.split_at(to.len());
                to.iter_mut().zip(low.iter().zip(high)).for_each(|(to, (low, high))| *to = low ^ high);
            }),
            Self::Diffusion(indices) => diffuse(&table, indices, draw(b"fet clk diffusion")),
            Self::Rehash => {
                // The seed depends on the secret, so that a table of windows computed in advance is useless.
                let seed =
                    u64::from_le_bytes(draw(b"fet clk rehash")[..8].try_into().expect("eight bytes of 32"));
                table.map_rows(bits, |from, to| {
                    for (window, start) in (0..bits).step_by(8).enumerate() {
                        let value =
                            (0..16).fold(0u64, |v, i| v << 1 | u64::from(get(from, (start + i) % bits)));
                        let mut state = mix(seed ^ mix(value | (window as u64) << 16));
                        for _ in 0..REHASHED {
                            state = mix(state);
                            set(to, (state % bits as u64) as usize);
                        }
                    }
                })
            }
        }
    }
}

/// Number of bits that a window sets. With one window for every eight bits, half of the vector is set.
const REHASHED: usize = 5;
