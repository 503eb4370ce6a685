//! Readers, datasets and vertical splitters.
//!
//! Two slots meet here. A [`fet_core::data::Source`] is one labelled table (digits, idx, libsvm, csv); a dataset
//! (`dataset/`) is what several parties hold: real tables of their own (`linked`), or one source cut by
//! columns (`split`). To add either, copy the nearest file of its folder and add one `mod` line. Scaling,
//! the training split and linkage happen in `fet-train`.
//!
//! A binary that wants these plug-ins says `use fet_data as _;`: inventory drops a crate that nothing names.

mod dataset;
mod read;
pub mod source;

pub use dataset::linked::{LinkedSettings, TableSettings};
pub use dataset::split::SplitSettings;
pub use read::csv::{read_columns, read_header, read_keys};
