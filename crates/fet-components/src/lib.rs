//! Components that compute on tensors: methods, encoders, aggregators, privacy mechanisms, label protections and releases, and the layers
//! that they are made of.
//!
//! `fet-core` has the contracts of these slots. `fet-federation` runs a training over parties with any components; it depends on
//! none of them.
//!
//! A program that uses these plug-ins must name the crate, because the linker drops a crate that no code names.

pub mod aggregators;
pub mod encoders;
pub mod labels;
pub mod mechanisms;
pub mod methods;
pub mod model;
pub mod releases;
