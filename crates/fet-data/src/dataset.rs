//! Plug-ins of the `data` slot: the data of several parties. Their contract is `fet_core::data::Dataset`.

pub(crate) mod linked;
mod pca;
pub(crate) mod split;
