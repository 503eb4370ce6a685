//! Readers, datasets and vertical splitters.
//!
//! There are two slots. A [`fet_core::data::Source`] is one labelled table (digits, idx, libsvm, csv, probes); a dataset
//! (`dataset/`) is the data of several parties: real tables (`linked`), or one source split by columns (`split`). To
//! add either, copy the most similar file of its folder and add one `mod` line. Scaling, the training split and linkage
//! happen in `fet-train`.
//!
//! A binary references these plug-ins by `use fet_data as _;`: inventory drops a crate that nothing references.

mod dataset;
mod read;
pub mod source;

pub use dataset::linked::{LinkedSettings, TableSettings};
pub use dataset::split::SplitSettings;
pub use read::table::{Stored, read_equal_keys, read_keys, read_names, read_texts, read_verbatim};
