//! Match weights: the evidence of each field's similarity for or against a match (Fellegi and Sunter 1969).
//!
//! Each similarity of a pair falls into a level. A level with share m among matches and share u among
//! non-matches has the weight ln(m/u). The weight of a pair is the sum over its fields, and a missing value
//! contributes nothing. Equality of rare values is stronger evidence, so the u of an equal pair is the share
//! of its value among the records (Winkler 2000). [`learn`] estimates m and u from [`Evidence`] without any
//! truth, and [`rank`] applies them to filters of fields. Each row has at most one match among the records,
//! so the weights of its candidates determine each candidate's probability. The model assumes that fields are
//! independent given whether a pair matches. If they are not, probabilities are too close to 0 and 1.

mod learn;
mod model;
mod rank;

pub use learn::{Evidence, learn};
pub use model::{LEVELS, MISSING, Pairs, Weights, level};
pub use rank::{Fields, Ranked, candidates, rank};
