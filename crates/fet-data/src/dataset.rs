//! The data of several parties: the plug-ins of the `data` slot, whose contract is `fet_core::data::Dataset`.

pub(crate) mod linked;
mod pca;
pub(crate) mod split;
