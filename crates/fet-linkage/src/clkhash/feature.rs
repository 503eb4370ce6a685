//! One feature of a schema: a column and the encoding of its values.

use std::borrow::Cow;

use super::compare::Comparison;
use super::format::{Encoding, Format, described};
use super::hash::{Hash, MOST_BITS};
use super::json::{Node, SchemaError};

/// A column of the table.
#[derive(Debug, Clone)]
pub(super) struct Feature {
    pub(super) identifier: String,
    /// `None` if the column is ignored.
    pub(super) hashing: Option<Hashing>,
}

/// Encoding of the values of a column.
#[derive(Debug, Clone)]
pub(super) struct Hashing {
    format: Format,
    pub(super) encoding: Encoding,
    pub(super) comparison: Comparison,
    pub(super) strategy: Strategy,
    pub(super) hash: Hash,
    missing: Option<Missing>,
}

/// Number of bits that a token sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The same number for every token.
    PerToken(usize),
    /// An equal share of the value's bits; the first tokens take the remainder.
    PerFeature(usize),
}

/// Marker of a missing value, and the text that is hashed instead.
#[derive(Debug, Clone)]
struct Missing {
    sentinel: String,
    replacement: String,
}

impl Feature {
    pub(super) fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        let object = node.object(&["identifier", "description", "ignored", "format", "hashing"])?;
        described(&object)?;
        let identifier = object.need("identifier")?.text()?.to_string();
        let ignored = object.get("ignored").map_or(Ok(false), |node| node.truth())?;
        if ignored && object.get("format").is_none() && object.get("hashing").is_none() {
            return Ok(Self { identifier, hashing: None });
        }
        let (format, hashing) = (object.need("format")?, object.need("hashing")?);
        // An ignored feature may have a format or hashing that would be refused otherwise.
        let hashing = if ignored { None } else { Some(Hashing::parse(&format, &hashing)?) };
        Ok(Self { identifier, hashing })
    }
}

impl Hashing {
    fn parse(format: &Node<'_>, node: &Node<'_>) -> Result<Self, SchemaError> {
        let (format, encoding) = Format::parse(format)?;
        let object = node.object(&["comparison", "strategy", "hash", "missingValue"])?;
        Ok(Self {
            format,
            encoding,
            comparison: Comparison::parse(&object.need("comparison")?)?,
            strategy: Strategy::parse(&object.need("strategy")?)?,
            hash: object.get("hash").map_or(Ok(Hash::Blake), |node| Hash::parse(&node))?,
            missing: object.get("missingValue").map(|node| Missing::parse(&node)).transpose()?,
        })
    }

    /// Returns the form of a value that is hashed. Fails with the rule that the value breaks.
    pub(super) fn normal<'a>(&'a self, value: &'a str) -> Result<Cow<'a, str>, String> {
        match &self.missing {
            Some(missing) if missing.sentinel == value => match self.encoding.writes(&missing.replacement) {
                true => Ok(Cow::Borrowed(&missing.replacement)),
                false => Err("must not be missing, because its replacement is not ASCII".into()),
            },
            _ => self.format.normal(value, self.encoding),
        }
    }
}

impl Strategy {
    fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        if node.property("bitsPerFeature").is_ok() {
            let object = node.object(&["bitsPerFeature"])?;
            return Ok(Self::PerFeature(object.need("bitsPerFeature")?.count(1..=MOST_BITS)?));
        }
        Ok(Self::PerToken(node.object(&["bitsPerToken"])?.need("bitsPerToken")?.count(1..=MOST_BITS)?))
    }

    /// Returns the number of bits that token `place` of `tokens` sets.
    pub(super) fn bits(self, place: usize, tokens: usize) -> usize {
        match self {
            Self::PerToken(bits) => bits,
            Self::PerFeature(bits) => bits / tokens + usize::from(place < bits % tokens),
        }
    }
}

impl Missing {
    fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        let object = node.object(&["sentinel", "replaceWith"])?;
        let sentinel = object.need("sentinel")?.text()?.to_string();
        let replacement = object.get("replaceWith").map(|node| node.text().map(String::from)).transpose()?;
        Ok(Self { replacement: replacement.unwrap_or_else(|| sentinel.clone()), sentinel })
    }
}
