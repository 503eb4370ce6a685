//! Vocabulary, plug-in slots, model, protocol and trainer of the Federated Transformer.

pub mod aggregator;
pub mod checkpoint;
pub mod data;
pub mod encoder;
pub mod experiment;
pub mod federation;
pub mod linker;
pub mod method;
pub mod model;
pub mod objective;
pub mod optimizer;
pub mod parameters;
pub mod prepare;
pub mod privacy;
pub mod protocol;
pub mod registry;
pub mod report;
pub mod rng;
pub mod schedule;
pub mod secondary;
pub mod trainable;
pub mod trainer;
