//! A linkage schema, checked: what is read is complete, and nothing in it is passed over.

use serde_json::Value;

use super::feature::Feature;
use super::hash::{Hash, Kdf};
use super::json::Node;

/// Most bits of a filter before it is folded, and most that one token or value sets.
pub(super) const MOST_BITS: usize = 1 << 20;

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is no JSON.
    #[error("the schema is not JSON: {0}")]
    Json(String),
    /// It is of an earlier version.
    #[error(
        "the schema is of version {0}; version 3 is read: convert it with clkhash's function \
         clkhash.schema.convert_to_latest_version, which keeps what is encoded"
    )]
    Old(u8),
    /// A property is missing.
    #[error("{path}: the property {property} is missing")]
    Missing {
        /// Where it should be, from the root `$`.
        path: String,
        /// Its name.
        property: String,
    },
    /// A value is not as a rule says.
    #[error("{path}: {rule}; it is {value}")]
    Rule {
        /// Where the value stands, from the root `$`.
        path: String,
        /// What holds of every value there.
        rule: String,
        /// The value.
        value: String,
    },
}

/// How the records of a table are encoded; both sides need the same.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Length of the filter after folding.
    bits: usize,
    folds: u32,
    pub(super) kdf: Kdf,
    pub(super) features: Vec<Feature>,
}

/// A feature's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identifier<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether the feature's values are neither checked nor encoded.
    pub ignored: bool,
}

impl Schema {
    /// Reads a schema of version 3.
    ///
    /// # Errors
    /// Where it is no such schema, or has what is not read here.
    pub fn parse(json: &str) -> Result<Self, SchemaError> {
        let value: Value =
            serde_json::from_str(json).map_err(|error| SchemaError::Json(error.to_string()))?;
        let root = Node::root(&value);
        let version = root.property("version")?;
        match version.number()? {
            3.0 => {}
            1.0 => return Err(SchemaError::Old(1)),
            2.0 => return Err(SchemaError::Old(2)),
            _ => return Err(version.refuse("must be 3")),
        }
        let root = root.object(&["version", "clkConfig", "features"])?;
        let config = root.need("clkConfig")?;
        // None folded is what the schema says without it.
        let ignored = config.property("xorFolds").ok().filter(|folds| folds.number() != Ok(0.0));
        if ignored.is_some() {
            return Err(config.refuse("must fold by xor_folds; clkhash does not read xorFolds"));
        }
        let config = config.object(&["l", "xor_folds", "xorFolds", "kdf"])?;
        let list = root.need("features")?;
        let features = list.items()?.iter().map(Feature::parse).collect::<Result<Vec<_>, _>>()?;
        if features.is_empty() {
            return Err(list.refuse("must have a feature"));
        }
        let blake =
            features.iter().flat_map(|feature| &feature.hashing).any(|hashing| hashing.hash == Hash::Blake);
        let folds = config.get("xor_folds").map_or(Ok(0), |node| node.count(0..=14))? as u32;
        let length = config.need("l")?;
        let bits = length.count(1..=MOST_BITS >> folds)?;
        if !bits.is_multiple_of(64) {
            return Err(length.refuse("must be a multiple of 64"));
        }
        if blake && !bits.is_power_of_two() {
            return Err(length.refuse("must be a power of two where a feature has blakeHash"));
        }
        let kdf = Kdf::parse(&config.need("kdf")?, features.len(), blake)?;
        Ok(Self { bits, folds, kdf, features })
    }

    /// The names of the features, in the order of the table's columns.
    pub fn identifiers(&self) -> impl ExactSizeIterator<Item = Identifier<'_>> {
        self.features
            .iter()
            .map(|feature| Identifier { name: &feature.identifier, ignored: feature.hashing.is_none() })
    }

    /// The length of a record's filter, after folding.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The length of a record's filter before folding.
    pub(super) fn unfolded(&self) -> usize {
        self.bits << self.folds
    }
}
