//! Rules for preparing columns.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules for preparing columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Scaling of numbers.
    pub scaling: Scaling,
    /// Columns of numbers or dates to clip as [`Scaling::Robust`] does, while other columns are not clipped.
    pub clip: Vec<String>,
    /// Maximum number of values of a category that gets a column for each value.
    pub one_hot: usize,
    /// Number of columns into which larger categories and texts are hashed.
    pub buckets: usize,
    /// Declarations of the owner by column name. With [`Rules::only_declared`], every column that is not
    /// hashed needs one.
    pub declared: BTreeMap<String, Declared>,
    /// True if the preparation must not depend on the records.
    pub only_declared: bool,
}

/// Scaling of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// To mean 0 and standard deviation 1.
    #[default]
    Standard,
    /// To mean 0 and standard deviation 1, after clipping to the quantiles of 1 % and 99 %, so that an
    /// outlier does not compress all other values.
    Robust,
    /// No scaling.
    None,
}

/// Declaration of a column by its owner, from public knowledge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Declared {
    /// Range of numbers. Values are clipped to the range, and scaled to mean 0 and standard deviation 1 as if
    /// they were uniform in it.
    Range([f64; 2]),
    /// Range of dates, ISO 8601.
    Dates([String; 2]),
    /// Values of a category.
    Categories(Vec<String>),
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            scaling: Scaling::Standard,
            clip: Vec::new(),
            one_hot: 32,
            buckets: 32,
            declared: BTreeMap::new(),
            only_declared: false,
        }
    }
}
