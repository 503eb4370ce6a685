//! What the cells of one variant gave, and how that compares.

use super::grid::Variant;
use super::results::Finished;
use super::statistics::paired::Comparison;

/// What a variant gave.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The variant.
    pub(crate) variant: &'a Variant,
    /// Its results, by seed.
    pub(crate) results: Vec<&'a Finished<'a>>,
    /// The test metric of each.
    pub(crate) tests: Vec<f64>,
    /// The row that it is compared with.
    pub(crate) base: Option<usize>,
    /// How it compares.
    pub(crate) comparison: Option<Comparison>,
    /// The outcome of the comparison.
    pub(crate) verdict: Verdict,
}

/// How a variant compares with its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is compared with nothing: the base itself, or a variant whose base has no result.
    Alone,
    /// There were too few seeds for a test.
    Untested,
    /// The test shows no difference, which does not show that there is none.
    NotShown,
    /// Better, by the test.
    Better,
    /// Worse, by the test.
    Worse,
}
