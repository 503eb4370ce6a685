//! The linkers: plug-ins that find the records of another party for each primary record.
//!
//! Each file is one plug-in of the slot `linker`, whose contract is [`fet_core::linker`]. The search and
//! encoding algorithms are in `fet-linkage`. This crate uses no tensors. To add a linker, copy `nearest.rs`
//! and add one `mod` line, or see `examples/custom-linker` for a linker in a separate crate.
//!
//! A binary must reference these plug-ins by `use fet_linkers as _;`, since inventory does not see the
//! plug-ins of a crate without references.

mod aligned;
mod blind;
mod clk;
mod edit;
mod equal;
mod exact;
mod federal;
mod hnsw;
mod nearest;
mod noisy;
mod posterior;
mod psi;
mod random;
mod rotation;
mod secret;
mod tfidf;
mod top1;
mod wire;

use fet_core::linker::{LinkError, Links};
use fet_core::registry::Violation;
use fet_linkage::neighbours::Neighbours;
use fet_linkage::top;

pub use aligned::AlignedSettings;
pub use clk::{ClkSettings, Harden, LinkageSchema, Order, Scoring, Sign, Weighting};
pub use edit::EditSettings;
pub use equal::{Compare, Merged, comparisons, contents, known, merged, missing};
pub use exact::ExactSettings;
pub use federal::FederalSettings;
pub use hnsw::HnswSettings;
pub use nearest::{Metric, NearestSettings, latitude_first};
pub use noisy::NoisySettings;
pub use posterior::PosteriorSettings;
pub use psi::PsiSettings;
pub use random::RandomSettings;
pub use rotation::RotationSettings;
pub use tfidf::TfidfSettings;
pub use top1::Top1Settings;

/// Returns links from search results: `found` neighbours for each query, repeated up to K if K is larger.
pub(crate) fn links(neighbours: usize, found: Neighbours) -> Links {
    let available = found.take;
    if available == neighbours {
        return Links::new(neighbours, available, found.indices, found.scores);
    }
    let rows = found.indices.len() / available;
    let places = |row: usize| (0..neighbours).map(move |place| row * available + place % available);
    let indices = (0..rows).flat_map(places).map(|place| found.indices[place]).collect();
    let scores = (0..rows).flat_map(places).map(|place| found.scores[place]).collect();
    Links::new(neighbours, available, indices, scores)
}

/// Returns the links of a linker with other similarities of the same neighbours, and sorts each row by them.
pub(crate) fn resorted(links: &Links, rows: impl Iterator<Item = Vec<(f32, u32)>>) -> Links {
    let rows = rows.map(|mut pairs| {
        top::sort(&mut pairs);
        pairs
    });
    crate::links(links.neighbours(), Neighbours::from_rows(links.available(), rows))
}

/// Refuses weights that are all 0.
pub(crate) fn check_weights(weights: &[f64]) -> Result<(), Violation> {
    if weights.is_empty() || weights.iter().any(|&weight| weight > 0.0) {
        return Ok(());
    }
    Err(Violation::new(
        "weights",
        "must be empty, or weights with at least one above 0",
        format!("{weights:?}"),
    ))
}

/// Returns the weights of `fields` fields: the set weights, or 1 for each field.
pub(crate) fn weights(set: &[f64], fields: usize) -> Result<Vec<f64>, LinkError> {
    match set.len() {
        0 => Ok(vec![1.0; fields]),
        // Only the ratios of weights matter. Dividing by the largest keeps their sum finite.
        length if length == fields => {
            let most = set.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            Ok(set.iter().map(|weight| weight / most).collect())
        }
        length => Err(wrong_length("weights", length, fields)),
    }
}

pub(crate) fn wrong_length(setting: &'static str, length: usize, fields: usize) -> LinkError {
    LinkError::Length { setting, length, fields }
}
