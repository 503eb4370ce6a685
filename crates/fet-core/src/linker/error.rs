//! The errors of every linker: reasons why two tables cannot be linked. The message names the remedy.

use crate::data::{KeyKind, Keys};

/// The reason why two tables cannot be linked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// K exceeds the number of the other party's records.
    #[error(
        "`linker.neighbours` must not exceed the {records} records of the party; it is {neighbours} \
         (or set `linker.pad = true` to repeat neighbours and mask the repeats)"
    )]
    TooFewRecords {
        /// K, the number of neighbours.
        neighbours: usize,
        /// Number of the party's records.
        records: usize,
    },
    /// The two parties have different numbers of key columns.
    #[error("keys must have the same number of columns on both sides; they have {queries} and {records}")]
    KeyMismatch {
        /// Number of the primary's key columns.
        queries: usize,
        /// Number of the party's key columns.
        records: usize,
    },
    /// A table that must be aligned with the primary's rows has another length.
    #[error(
        "the party must have {neighbours} records for each of the {queries} primary records in the same order, {} records in \
         all; it has {records}. Remove or add records in the table that differs, or choose a linker that compares keys",
        neighbours.saturating_mul(*queries)
    )]
    Unaligned {
        /// K, the number of neighbours.
        neighbours: usize,
        /// Number of the primary's records.
        queries: usize,
        /// Number of the party's records.
        records: usize,
    },
    /// The keys are text but must be numbers, or the reverse.
    #[error("`linker.kind` needs keys that are {wanted}; they are {found} ({advice})")]
    KeyKind {
        /// Kind that the linker accepts.
        wanted: &'static str,
        /// Kind of the keys.
        found: &'static str,
        /// The remedy.
        advice: &'static str,
    },
    /// A key has a value that the linker cannot use.
    #[error("key {row} (from 0): {problem}")]
    Value {
        /// The row, from 0.
        row: usize,
        /// The rule, the value and the remedy.
        problem: String,
    },
    /// A key of the data holder's table has a value that the linker cannot use. The other party must not
    /// learn this message.
    #[error("key {row} (from 0) of this party's own table: {problem}")]
    Own {
        /// The row, from 0.
        row: usize,
        /// The rule, the value and the remedy.
        problem: String,
    },
    /// The other party's message does not belong to this linker's protocol.
    #[error("the other party's message cannot be read: {0}")]
    Message(String),
    /// No noise achieves the requested bound.
    #[error(
        "`linker.leak` must be above {least:.4} for similarities of standard deviation {spread:.4}; it is {leak} (encode \
         with more bits, or choose a higher value)"
    )]
    Leak {
        /// The requested bound.
        leak: f64,
        /// The spread of the similarities.
        spread: f64,
        /// The lowest bound that any noise achieves.
        least: f64,
    },
    /// A setting names a key column that does not exist.
    #[error("`linker.{setting}` must be at most {fields}, the number of key columns; it is {column}")]
    Column {
        /// Name of the setting.
        setting: &'static str,
        /// Column that the setting names, from 1.
        column: usize,
        /// Number of key columns.
        fields: usize,
    },
    /// A setting does not have one value per key column.
    #[error(
        "`linker.{setting}` must have one value for each of the {fields} key columns, or none; it has {length}"
    )]
    Length {
        /// Name of the setting.
        setting: &'static str,
        /// Number of values in the setting.
        length: usize,
        /// Required number of values.
        fields: usize,
    },
    /// The two sides have different kinds of keys.
    #[error("keys must be of one kind on both sides; they are {queries} and {records}")]
    Mixed {
        /// Kind of the primary's keys.
        queries: &'static str,
        /// Kind of the party's keys.
        records: &'static str,
    },
    /// A setting does not apply to this way of linking.
    #[error("{0}")]
    Setting(String),
    /// A setting that the linker reads from the environment is missing.
    #[error("{0}")]
    Secret(String),
    /// Code of the party's user failed. Its message may contain keys, so the other party must not learn it.
    #[error("{0}")]
    Code(String),
    /// The search library refused the keys.
    #[error("the keys cannot be indexed: {0}")]
    Index(String),
}

impl LinkError {
    /// Converts an error about a key into an error about the data holder's own table.
    pub fn of_own_table(self) -> Self {
        match self {
            Self::Value { row, problem } => Self::Own { row, problem },
            other => other,
        }
    }

    /// Creates the error for keys that are not of the `wanted` kind.
    pub fn kind(wanted: KeyKind, found: &Keys) -> Self {
        let advice = match wanted {
            KeyKind::Text => {
                "set `data.key_kind = \"text\"`, or choose a linker for numbers such as \"nearest\""
            }
            _ => "choose a linker for text such as \"clk\", or key columns of numbers",
        };
        Self::KeyKind { wanted: wanted.name(), found: found.kind_name(), advice }
    }
}
