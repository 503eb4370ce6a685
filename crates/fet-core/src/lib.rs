//! Vocabulary, plug-in slots, model, protocol and trainer of the Federated Transformer.
//!
//! It names no tensor backend and reads no data file; the crates `fet-backends` and `fet-data` do.
//!
//! # Glossary
//!
//! - **party**: an organisation with a table. The **primary** has the labels; a **secondary** helps it.
//! - **key**: the fuzzy identifier that all parties share the kind of: coordinates, a name, an address.
//! - **record**: a row of a party's table; **features** are its columns other than the key.
//! - **link**: for one primary record the K most similar records of a secondary, its **neighbours**.
//! - **representation** [B, K, H]: what a secondary's **encoder** makes of a batch's neighbours.
//! - **dynamic mask**: a learned number for each neighbour, added to attention logits.
//! - **similarity**: how much a neighbour's key resembles the primary's, the larger the closer; it stays with the
//!   secondary unless a method or an aggregator cannot work without it.
//! - **memory** [B, K, W]: what the **aggregator** makes of the active parties' representations.
//! - **party dropout**: leaving secondaries out of a training step; those left in are **active**.
//! - **release**: one representation that left its party; the privacy mechanism accounts for each.
//! - **method**: the halves of a split model, the primary's and the secondaries', and a **plan** for the trainer.
//! - **slot**, **plug-in**, **recipe**: a trait, an implementation of it, and its settings ([`registry`]).
//! - **round**: a training step, counted over the whole run; it keys random streams ([`rng`]).
//! - **cell**: in an ablation, one variant with one seed.
//!
//! Shapes: B rows of a batch, K neighbours, H hidden width, W width of the memory, m key columns, d feature columns.

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
