//! Parameters inside a message: names and shapes, then all values at once.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::array;
use crate::parameters::Parameters;

/// Maximum number of named parameters. No model has more; a message with more is refused before it is
/// decoded.
const MOST_SEGMENTS: usize = 1 << 16;

#[derive(Serialize)]
struct View<'a> {
    /// One name per line.
    names: String,
    /// Number of dimensions of each parameter.
    #[serde(with = "array")]
    ranks: Vec<u32>,
    /// All dimensions, one shape after another.
    #[serde(with = "array")]
    dimensions: Vec<u64>,
    #[serde(with = "array")]
    values: &'a [f32],
}

#[derive(Deserialize)]
struct Parts {
    names: String,
    #[serde(with = "array")]
    ranks: Vec<u32>,
    #[serde(with = "array")]
    dimensions: Vec<u64>,
    #[serde(with = "array")]
    values: Vec<f32>,
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let segments = self.segments();
        View {
            names: segments.iter().map(|segment| segment.name.as_str()).collect::<Vec<_>>().join("\n"),
            ranks: segments.iter().map(|segment| segment.shape.len() as u32).collect(),
            dimensions: segments.iter().flat_map(|segment| &segment.shape).map(|&d| d as u64).collect(),
            values: self.values(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Parts { names, ranks, dimensions, values } = Parts::deserialize(deserializer)?;
        let count = if ranks.is_empty() { 0 } else { names.split('\n').take(MOST_SEGMENTS + 1).count() };
        if count != ranks.len() || (count == 0 && !names.is_empty()) {
            let problem =
                format!("{} names for {} parameters, of at most {MOST_SEGMENTS}", count, ranks.len());
            return Err(D::Error::custom(problem));
        }
        let mut parameters = Self::default();
        let (mut dimensions, mut values) = (dimensions.as_slice(), values.as_slice());
        for (name, rank) in names.split('\n').zip(ranks) {
            let bad = || D::Error::custom(format!("the shape of `{name}` does not fit its values"));
            let (own, rest) = dimensions.split_at_checked(rank as usize).ok_or_else(bad)?;
            dimensions = rest;
            let shape = own.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
            let shape = shape.map_err(|_| bad())?;
            let length = shape.iter().try_fold(1usize, |length, &d| length.checked_mul(d)).ok_or_else(bad)?;
            let (own, rest) = values.split_at_checked(length).ok_or_else(bad)?;
            values = rest;
            parameters.push(name, &shape, own);
        }
        if !dimensions.is_empty() || !values.is_empty() {
            return Err(D::Error::custom("shapes or values are left over after the last parameter"));
        }
        Ok(parameters)
    }
}
