//! Readers, datasets and vertical splitters.
//!
//! There are two slots. A [`fet_core::data::Source`] is one labelled table (digits, idx, libsvm, csv,
//! probes). A dataset (`dataset/`) is the data of several parties: real tables (`linked`), or one source
//! split by columns (`split`). To add a plug-in, copy the most similar file of its folder and add one `mod`
//! line. `fet-federation` does the scaling, the training split and the linkage.
//!
//! A binary references these plug-ins by `use fet_data as _;`, because inventory drops a crate without
//! references.

mod dataset;
mod read;
pub mod source;

pub use dataset::linked::{LARGEST_LABEL, LinkedSettings, TableSettings};
pub use dataset::split::SplitSettings;
pub use read::table::{Stored, read_equal_keys, read_keys, read_names, read_texts, read_verbatim};
