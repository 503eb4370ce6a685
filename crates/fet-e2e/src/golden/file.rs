//! Reads a golden file: named tensors, with a configuration in the metadata.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::de::DeserializeOwned;

/// Methods that golden files may contain.
const COVERED: [&str; 2] = ["fet", "fedsim"];

/// Error of a golden file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause of the error.
        source: std::io::Error,
    },
    /// The file is not a golden file in a known format, or its content is inconsistent.
    #[error("{}: {message}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        message: String,
    },
    /// The file contains a method that this program lacks.
    #[error("{}: not covered: there is no golden check for the method \"{method}\"", path.display())]
    NotCovered {
        /// The file.
        path: PathBuf,
        /// The method.
        method: String,
    },
}

/// Golden file in memory.
#[derive(Debug)]
pub struct GoldenFile {
    path: PathBuf,
    settings: HashMap<String, String>,
    tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
}

impl GoldenFile {
    /// Reads a file; refuses unsupported methods.
    pub fn read(path: &Path) -> Result<Self, GoldenError> {
        let bad = |message: String| GoldenError::Bad { path: path.to_path_buf(), message };
        let bytes =
            fet_io::read(path).map_err(|source| GoldenError::Io { path: path.to_path_buf(), source })?;
        let not_one = |error| bad(format!("is not a safetensors file: {error}"));
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(not_one)?;
        let settings = metadata.metadata().clone().ok_or_else(|| bad("has no metadata".into()))?;
        if let Some(method) = settings.get("method").map(|method| method.trim_matches('"'))
            && !COVERED.contains(&method)
        {
            return Err(GoldenError::NotCovered { path: path.to_path_buf(), method: method.to_string() });
        }
        let mut tensors = HashMap::new();
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(not_one)?.iter() {
            let values = match view.dtype() {
                Dtype::F32 => view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
                Dtype::I64 => {
                    view.data().as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b) as f32).collect()
                }
                other => return Err(bad(format!("`{name}` has the type {other:?}; F32 or I64 is expected"))),
            };
            tensors.insert(name.to_string(), (view.shape().to_vec(), values));
        }
        Ok(Self { path: path.to_path_buf(), settings, tensors })
    }

    /// Returns the method of the file.
    pub(super) fn method(&self) -> &str {
        self.settings.get("method").map_or("fet", |method| method.trim_matches('"'))
    }

    /// Returns an error about this file.
    pub(super) fn bad(&self, message: &str) -> GoldenError {
        GoldenError::Bad { path: self.path.clone(), message: message.to_string() }
    }

    /// Returns a setting from the metadata, whose values are JSON.
    pub(super) fn setting<T: DeserializeOwned>(&self, name: &str) -> Result<T, GoldenError> {
        let text =
            self.settings.get(name).ok_or_else(|| self.bad(&format!("the metadata lacks `{name}`")))?;
        serde_json::from_str(text)
            .map_err(|error| self.bad(&format!("the metadata's `{name}` is {text}: {error}")))
    }

    /// Returns a numeric setting.
    pub(super) fn number(&self, name: &str) -> Result<f64, GoldenError> {
        self.setting(name)
    }

    /// Returns a tensor with its shape.
    pub(super) fn tensor(&self, name: &str) -> Result<&(Vec<usize>, Vec<f32>), GoldenError> {
        self.tensors.get(name).ok_or_else(|| self.bad(&format!("it lacks the tensor `{name}`")))
    }

    /// Returns the values of a tensor.
    pub(super) fn floats(&self, name: &str) -> Result<Vec<f32>, GoldenError> {
        self.tensor(name).map(|(_, values)| values.clone())
    }

    /// Returns the names of all tensors that begin with `prefix`, with the prefix removed.
    pub(super) fn names(&self, prefix: &str) -> Vec<&str> {
        self.tensors.keys().filter_map(|name| name.strip_prefix(prefix)).collect()
    }

    /// Returns the losses of a training run; `None` if the file contains a single pass.
    pub(super) fn losses(&self) -> Result<Option<Vec<f32>>, GoldenError> {
        if self.tensors.contains_key("losses") { self.floats("losses").map(Some) } else { Ok(None) }
    }
}
