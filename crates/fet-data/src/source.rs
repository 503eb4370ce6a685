//! Plug-ins of the `data.source` slot: one labelled table, before it is split among parties. Their contract
//! is `fet_core::data::Source`.

mod csv;
mod digits;
mod idx;
mod libsvm;
mod probes;

pub use csv::CsvSettings;
pub use digits::DigitsSettings;
pub use idx::IdxSettings;
pub use libsvm::LibsvmSettings;
pub use probes::ProbesSettings;
