//! Record linkage: which rows of two tables belong together, by keys that are text, numbers or secrets.
//!
//! - [`text`]: normal forms and q-grams; [`edit`]: comparison of texts in the clear.
//! - [`clk`]: cryptographic long-term keys; [`bits`], [`search`]: bit vectors and the K most similar of them.
//! It knows no party, no message and no plug-in, and links no tensor library: `fet-linkers` makes linkers of it.

pub mod bits;
pub mod neighbours;
pub mod search;
pub mod text;
pub mod top;
pub mod clk;
pub mod edit;
