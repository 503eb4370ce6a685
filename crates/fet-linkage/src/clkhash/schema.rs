//! A checked linkage schema. The parser reads every property and ignores none.

use serde_json::Value;

use super::feature::Feature;
use super::hash::{Hash, Kdf, MOST_BITS};
use super::json::{Node, SchemaError};

/// Encoding of the records of a table. Both sides must use equal schemas.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Length of the filter after folding.
    bits: usize,
    folds: u32,
    pub(super) kdf: Kdf,
    pub(super) features: Vec<Feature>,
}

/// Name of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identifier<'a> {
    /// The name.
    pub name: &'a str,
    /// True if the feature's values are neither checked nor encoded.
    pub ignored: bool,
}

impl Schema {
    /// Parses a schema of version 3.
    ///
    /// # Errors
    /// If the text is not such a schema, or contains something that this module does not support.
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
        // A schema with `xorFolds` = 0 has the same meaning without this property.
        let ignored = config.property("xorFolds").ok().filter(|folds| folds.number() != Ok(0.0));
        if ignored.is_some() {
            return Err(config.refuse("must use xor_folds for folding, since clkhash ignores xorFolds"));
        }
        let config = config.object(&["l", "xor_folds", "xorFolds", "kdf"])?;
        let list = root.need("features")?;
        let features = list.items()?.iter().map(Feature::parse).collect::<Result<Vec<_>, _>>()?;
        if features.is_empty() {
            return Err(list.refuse("must have at least one feature"));
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
            return Err(length.refuse("must be a power of two if a feature uses blakeHash"));
        }
        let kdf = Kdf::parse(&config.need("kdf")?, features.len(), blake)?;
        Ok(Self { bits, folds, kdf, features })
    }

    /// Returns the names of the features, in the order of the table's columns.
    pub fn identifiers(&self) -> impl ExactSizeIterator<Item = Identifier<'_>> {
        self.features
            .iter()
            .map(|feature| Identifier { name: &feature.identifier, ignored: feature.hashing.is_none() })
    }

    /// Returns the length of a record's filter after folding.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Returns the length of a record's filter before folding.
    pub(super) fn unfolded(&self) -> usize {
        self.bits << self.folds
    }
}
