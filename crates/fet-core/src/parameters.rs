//! A model's parameters as one flat host vector with named segments.
//!
//! The optimiser, positional-encoding averaging, checkpoints and golden tests all use this form, which is the
//! same on every backend. The form carries no meaning of the parameters.

#[cfg(feature = "tensor")]
mod module;

use std::fmt;
use std::ops::Range;

#[cfg(feature = "tensor")]
pub(crate) use module::gradients_of;
#[cfg(feature = "tensor")]
pub use module::host;

/// Name, shape and position of one parameter in the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Dotted path of the parameter in its module.
    pub name: String,
    /// Shape of the parameter.
    pub shape: Vec<usize>,
    /// Range of the parameter in the flat vector.
    pub range: Range<usize>,
}

/// Named values, one after another. `Debug` shows sizes only.
#[derive(Clone, PartialEq, Default)]
pub struct Parameters {
    segments: Vec<Segment>,
    values: Vec<f32>,
}

impl Parameters {
    /// Returns all values, in the order of [`Parameters::segments`].
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the segments, and all values for modification.
    pub fn split_mut(&mut self) -> (&[Segment], &mut [f32]) {
        (&self.segments, &mut self.values)
    }

    /// Returns the segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the values of the parameter `name`.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        let segment = self.segments.iter().find(|segment| segment.name == name)?;
        Some(&self.values[segment.range.clone()])
    }

    /// Returns the parameters whose names begin with `prefix`.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> Self {
        let mut chosen = Self::default();
        for segment in self.segments.iter().filter(|segment| segment.name.starts_with(prefix)) {
            chosen.push(&segment.name, &segment.shape, &self.values[segment.range.clone()]);
        }
        chosen
    }

    /// Returns the parameters whose names begin with `prefix`, with the prefix removed from their names.
    #[must_use]
    pub fn part(&self, prefix: &str) -> Self {
        let mut chosen = Self::default();
        for segment in &self.segments {
            if let Some(name) = segment.name.strip_prefix(prefix) {
                chosen.push(name, &segment.shape, &self.values[segment.range.clone()]);
            }
        }
        chosen
    }

    /// Appends a parameter.
    ///
    /// # Panics
    /// If the values do not fill the shape.
    pub fn push(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "`{name}` fills its shape");
        let start = self.values.len();
        self.values.extend_from_slice(values);
        let range = start..self.values.len();
        self.segments.push(Segment { name: name.to_string(), shape: shape.to_vec(), range });
    }

    /// Overwrites the parameters that `other` contains. Reports a parameter that is missing here or has
    /// another shape.
    pub fn overwrite(&mut self, other: &Self) -> Result<(), ParameterError> {
        for segment in &other.segments {
            let own = self.segments.iter().find(|own| own.name == segment.name);
            let own = own.ok_or_else(|| ParameterError::Unknown { name: segment.name.clone() })?;
            if own.shape != segment.shape {
                let (expected, found) = (own.shape.clone(), segment.shape.clone());
                return Err(ParameterError::Shape { name: segment.name.clone(), expected, found });
            }
            self.values[own.range.clone()].copy_from_slice(&other.values[segment.range.clone()]);
        }
        Ok(())
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameters[{} in {} segments]", self.values.len(), self.segments.len())
    }
}

/// Error: parameters that do not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The model has no such parameter.
    #[error("the model lacks the parameter `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The given parameters lack one of the model's parameters.
    #[error("parameter `{name}` of the model is missing")]
    Missing {
        /// The name.
        name: String,
    },
    /// The parameter has another shape.
    #[error("parameter `{name}` has the shape {expected:?}, not {found:?}")]
    Shape {
        /// The name.
        name: String,
        /// The model's shape.
        expected: Vec<usize>,
        /// The given shape.
        found: Vec<usize>,
    },
}

/// The gradients of a module: flat values, and a flag for each parameter that has a gradient.
#[derive(Clone, Default, PartialEq)]
pub struct FlatGradient {
    /// Values in the order of the parameters; 0 for a parameter without a gradient.
    pub values: Vec<f32>,
    /// For each segment, true if it has a gradient.
    pub present: Vec<bool>,
}

impl fmt::Debug for FlatGradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlatGradient[{}]", self.values.len())
    }
}
