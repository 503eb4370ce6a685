//! Record linkage: finds the rows of two tables that belong together, by keys that are text, numbers or
//! secrets.
//!
//! - [`text`]: normal forms and q-grams; [`edit`]: comparison of plain texts.
//! - [`clk`]: cryptographic long-term keys; [`clkhash`]: keys compatible with the program clkhash;
//!   [`pivots`]: numbers as bits; [`bits`], [`search`], [`blocking`]: bit vectors and the K most similar of
//!   them.
//! - [`points`]: exact K nearest points, also on the sphere; [`hnsw`]: approximate K nearest points;
//!   [`rotation`]: points under a secret transformation.
//! - [`weights`]: match weights by expectation-maximisation; [`threshold`]: the threshold for links.
//! - [`psi`]: private set intersection, also with payloads or as a count; [`secret`]: derivation of secrets;
//!   [`noise`]: noise on similarities.
//! - [`patterns`]: an attack on filters that measures hardening.
//! - [`quality`]: precision and recall if the truth is known.
//!
//! The crate contains no parties, messages or plug-ins and links no tensor library. The linkers of
//! `fet-linkers` build on it.

pub mod bits;
pub mod blocking;
pub mod clk;
pub mod clkhash;
pub mod distance;
pub mod edit;
pub mod hnsw;
pub mod neighbours;
pub mod noise;
pub mod patterns;
pub mod pivots;
pub mod points;
pub mod psi;
pub mod quality;
pub mod rotation;
pub mod search;
pub mod secret;
pub mod text;
pub mod tfidf;
pub mod threshold;
pub mod top;
pub mod weights;

/// Finaliser of SplitMix64: a fixed, well-mixing function of 64 bits without a key.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The example of the README, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
