//! The contracts of the Federated Transformer: slots, registry, experiment, messages and data types.
//!
//! The slots are traits: [`linker::Linker`], [`release::Release`], and with the feature `tensor`, which adds Burn,
//! `encoder::Encoder`, `aggregator::Aggregator`, `privacy::PrivacyMechanism`, `labels::LabelProtection`,
//! `method::Method` and `attack::Attack`. Without that feature the crate compiles without Burn, which
//! linkers, datasets and sources do not need. The crate implements no plug-in, trains nothing and reads no
//! file: `fet-federation`, `fet-linkers`, `fet-data`, `fet-baselines` and `fet-attacks` do.
//!
//! # Glossary
//!
//! - **party**: an organisation with a table. The **primary** has the labels; a **secondary** helps it.
//! - **key**: a fuzzy identifier, of the same kind at all parties: coordinates, a name, an address.
//! - **record**: a row of a party's table; **features** are its columns other than the key.
//! - **link**: a pair of a primary record and a secondary record; the K linked records are its **neighbours**.
//! - **representation** [B, K, H]: the output of a secondary's **encoder** for a batch's neighbours.
//! - **dynamic mask**: a learned number for each neighbour, added to attention logits.
//! - **similarity**: how much a neighbour's key resembles the primary's, larger is closer; it stays with the
//!   secondary unless a method or an aggregator needs it.
//! - **memory** [B, K, W]: the output of the **aggregator** for the active parties' representations.
//! - **party dropout**: leaving secondaries out of a training step; the remaining ones are **active**.
//! - **release**: one representation that left its party; the privacy mechanism accounts for each.
//! - **exposure**: the gradients that the primary sends, which depend on its labels; a **label protection**
//!   bounds it.
//! - **method**: the halves of a split model, the primary's and the secondaries', and a **plan** for the
//!   trainer.
//! - **slot**, **plug-in**, **recipe**: a trait, an implementation of it, and its settings ([`registry`]).
//! - **round**: a step with releases, such as a training step or an evaluation batch; it keys random streams
//!   ([`rng`]).
//! - **cell**: in an ablation, one variant with one seed.
//!
//! Shapes: B rows of a batch, K neighbours, H hidden width, W width of the memory, m key columns, d feature
//! columns.

#[cfg(feature = "tensor")]
pub mod aggregator;
#[cfg(feature = "tensor")]
pub mod attack;
pub mod changes;
pub mod data;
#[cfg(feature = "tensor")]
pub mod encoder;
#[cfg(feature = "tensor")]
pub mod experiment;
#[cfg(feature = "tensor")]
pub mod labels;
#[cfg(feature = "tensor")]
pub mod learning_rate;
pub mod linker;
mod loss;
pub mod message;
#[cfg(feature = "tensor")]
pub mod method;
#[cfg(feature = "tensor")]
pub mod model;
#[cfg(feature = "tensor")]
pub mod objective;
pub mod optimizer;
pub mod parameters;
pub mod party;
#[cfg(feature = "tensor")]
pub mod policy;
#[cfg(feature = "tensor")]
pub mod privacy;
pub mod registry;
pub mod release;
pub mod rng;
pub mod schema;
#[cfg(feature = "tensor")]
pub mod trainable;
