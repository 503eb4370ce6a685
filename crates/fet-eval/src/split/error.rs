//! Errors of splits.

/// Minimum fraction of a part.
pub(super) const LEAST_SHARE: f64 = 1e-6;

/// Error of a split. Each message states the rule, the value and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// Too few rows.
    #[error(
        "each part needs a row, but {rows} rows give {validation} for validation and {test} for the test; use at least \
         {least} rows or larger fractions"
    )]
    TooFewRows {
        /// Number of rows.
        rows: usize,
        /// Number of validation rows.
        validation: usize,
        /// Number of test rows.
        test: usize,
        /// Minimum number of rows.
        least: usize,
    },
    /// Invalid fractions.
    #[error(
        "the fractions of validation and test must be at least {LEAST_SHARE} each and sum to less than 1, not \
         {validation} and {test}; use 0.1 and 0.2"
    )]
    Fractions {
        /// Fraction of validation rows.
        validation: f64,
        /// Fraction of test rows.
        test: f64,
    },
    /// Column of the wrong length.
    #[error("the strategy \"{strategy}\" needs a value for each of {rows} rows; the column has {got}")]
    Length {
        /// Name of the strategy.
        strategy: &'static str,
        /// Number of rows.
        rows: usize,
        /// Length of the column.
        got: usize,
    },
    /// Too few groups.
    #[error(
        "each part needs a group: {least} groups are needed, but the column has {groups}; use another column or a random \
         split"
    )]
    TooFewGroups {
        /// Minimum number of groups.
        least: usize,
        /// Number of groups.
        groups: usize,
    },
    /// Part without rows.
    #[error("the strategy \"{strategy}\" leaves no row for {part} among {rows}; {}", remedy(.strategy))]
    EmptyPart {
        /// Name of the strategy.
        strategy: &'static str,
        /// Empty part.
        part: &'static str,
        /// Number of rows.
        rows: usize,
    },
    /// Label that is not the name of a part.
    #[error("row {row} (from 0) has the label \"{name}\"{hint}; labels are train, validation and test")]
    UnknownPart {
        /// Row index, from 0.
        row: usize,
        /// Label of the row.
        name: String,
        /// Suggestion of the most similar label.
        hint: String,
    },
    /// Invalid number of folds.
    #[error(
        "the number of folds must be at least 2 and at most the number of rows, not {folds} for {rows} rows; use 5"
    )]
    Folds {
        /// Number of folds.
        folds: usize,
        /// Number of rows.
        rows: usize,
    },
    /// Folds were requested of labels, which define a single split.
    #[error(
        "labels of train, validation and test define a single split without folds; use the strategy \"group\" with a \
         column that numbers the folds"
    )]
    LabelsHaveNoFolds,
    /// Value without a place in an order.
    #[error(
        "row {row} (from 0) contains {value}, which cannot be ranked; drop the row or stratify by another column"
    )]
    NotFinite {
        /// Row index, from 0.
        row: usize,
        /// Rejected value.
        value: f64,
    },
}

/// Returns the remedy for an empty part.
fn remedy(strategy: &str) -> &'static str {
    match strategy {
        "time" => "too many rows share a time: use a finer time or smaller fractions",
        "labels" => "label some rows for this part",
        "group" => "a group is too large: use another column or a random split",
        _ => "use more rows or larger fractions",
    }
}
