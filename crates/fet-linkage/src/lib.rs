//! Record linkage: which rows of two tables belong together, by keys that are text, numbers or secrets.
//!
//! - [`text`]: normal forms and q-grams; [`edit`]: comparison of texts in the clear.
//! - [`clk`]: cryptographic long-term keys; [`clkhash`]: those of another program; [`pivots`]: numbers as bits; [`bits`], [`search`], [`blocking`]: bit vectors and
//!   the K most similar of them.
//! - [`points`]: the K nearest points, exactly, also on the sphere; [`hnsw`]: nearly; [`rotation`]: points in disguise.
//! - [`weights`]: match weights by expectation-maximisation; [`threshold`]: which pairs are links.
//! - [`psi`]: equal keys and nothing else, also with payloads or as a count alone; [`secret`]: where secrets come from; [`noise`]: noise on similarities.
//! - [`patterns`]: an attack on filters, by which hardening is measured.
//! - [`quality`]: precision and recall where the truth is known.
//!
//! It knows no party, no message and no plug-in, and links no tensor library: the linkers of `fet-linkers` are made of it.

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

/// The finaliser of SplitMix64: a fixed, well-spread function of 64 bits; not a keyed one.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
