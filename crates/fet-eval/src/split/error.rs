//! What is wrong with a wanted split.

use super::fractions::LEAST_SHARE;

/// Why rows cannot be split. Each message gives the rule, the value and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// Too few rows.
    #[error(
        "each part needs a row, but of {rows} rows {validation} are for validation and {test} for the test; give at \
         least {least} rows or larger fractions"
    )]
    TooFewRows {
        /// The number of rows.
        rows: usize,
        /// Rows that validation would get.
        validation: usize,
        /// Rows that the test would get.
        test: usize,
        /// How many rows suffice.
        least: usize,
    },
    /// Not a share.
    #[error(
        "the fractions of validation and test lie at or above {LEAST_SHARE} each and sum to less than 1, not \
         {validation} and {test}; take 0.1 and 0.2"
    )]
    Fractions {
        /// The fraction of validation rows.
        validation: f64,
        /// The fraction of test rows.
        test: f64,
    },
    /// A column of another length.
    #[error("the strategy \"{strategy}\" needs a value for each of {rows} rows; its column has {got}")]
    Length {
        /// The strategy.
        strategy: &'static str,
        /// The number of rows.
        rows: usize,
        /// The length of the column.
        got: usize,
    },
    /// Too few groups.
    #[error(
        "{least} groups are needed, so that each part has one; there are {groups}; go by another column, or split at \
         random"
    )]
    TooFewGroups {
        /// How many are needed.
        least: usize,
        /// How many there are.
        groups: usize,
    },
    /// A part without rows.
    #[error("the strategy \"{strategy}\" leaves no row for {part} among {rows}; {}", remedy(.strategy))]
    EmptyPart {
        /// The strategy.
        strategy: &'static str,
        /// The part.
        part: &'static str,
        /// The number of rows.
        rows: usize,
    },
    /// A label that names no part.
    #[error("row {row} (from 0) is labelled \"{name}\"{hint}; a row is one of train, validation and test")]
    UnknownPart {
        /// The row, from 0.
        row: usize,
        /// Its label.
        name: String,
        /// The most similar label.
        hint: String,
    },
    /// A number of folds that cannot be.
    #[error("there are at least 2 folds and at most one per row, not {folds} of {rows} rows; take 5")]
    Folds {
        /// The number of folds.
        folds: usize,
        /// The number of rows.
        rows: usize,
    },
    /// Labels are one split.
    #[error(
        "labels of train, validation and test name one split and no folds; give a column that numbers the folds to the \
         strategy \"group\""
    )]
    LabelsHaveNoFolds,
    /// A value that has no place in an order.
    #[error(
        "row {row} (from 0) holds {value}, which is in no quantile; drop the row, or stratify by another column"
    )]
    NotFinite {
        /// The row.
        row: usize,
        /// The value.
        value: f64,
    },
}

/// What to do about an empty part.
fn remedy(strategy: &str) -> &'static str {
    match strategy {
        "time" => "too many rows share a time: use a finer one, or smaller fractions",
        "labels" => "label some rows so",
        "group" => "a group is too large: go by another column, or split at random",
        _ => "give more rows or larger fractions",
    }
}
