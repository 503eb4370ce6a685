//! Vocabulary, plug-in slots, model, protocol and trainer of the Federated Transformer.

pub mod data;
pub mod registry;
pub mod rng;
