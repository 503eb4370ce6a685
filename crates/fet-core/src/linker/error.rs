//! Why two tables cannot be linked: the errors of every linker. The message says what to do.

use crate::data::{KeyKind, Keys};

/// Why two tables cannot be linked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// K exceeds the other party's records.
    #[error(
        "`linker.neighbours` must not exceed the {records} records of the party; it is {neighbours} \
         (or set `linker.pad = true` to repeat neighbours and mask the repeats)"
    )]
    TooFewRecords {
        /// K.
        neighbours: usize,
        /// The party's number of records.
        records: usize,
    },
    /// The two parties' keys are not of the same kind.
    #[error("keys must have the same columns on both sides; they have {queries} and {records}")]
    KeyMismatch {
        /// Key columns of the primary.
        queries: usize,
        /// Key columns of the party.
        records: usize,
    },
    /// A table that is to be aligned with the primary's rows has another length.
    #[error(
        "the party must have {neighbours} records for each of the {queries} primary records in the same order, {} records in \
         all; it has {records}. Remove or add records in the table that differs, or choose a linker that compares keys",
        neighbours.saturating_mul(*queries)
    )]
    Unaligned {
        /// K.
        neighbours: usize,
        /// The primary's number of records.
        queries: usize,
        /// The party's number of records.
        records: usize,
    },
    /// Text where numbers are needed, or the reverse.
    #[error("`linker.kind` needs keys that are {wanted}; they are {found} ({advice})")]
    KeyKind {
        /// What the linker accepts.
        wanted: &'static str,
        /// What it got.
        found: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A key has a value that the linker cannot use.
    #[error("key {row} (from 0): {problem}")]
    Value {
        /// The row, from 0.
        row: usize,
        /// The rule, the value and what to do.
        problem: String,
    },
    /// The same for a key of the owner's table, of which the other party must not hear.
    #[error("key {row} (from 0) of this party's own table: {problem}")]
    Own {
        /// The row, from 0.
        row: usize,
        /// The rule, the value and what to do.
        problem: String,
    },
    /// The other party's message is not one of this linker's.
    #[error("the other party's message cannot be read: {0}")]
    Message(String),
    /// No noise achieves the requested bound.
    #[error(
        "`linker.leak` must be above {least:.4} for similarities of standard deviation {spread:.4}; it is {leak} (encode \
         with more bits, or ask for less)"
    )]
    Leak {
        /// The requested bound.
        leak: f64,
        /// The spread of the similarities.
        spread: f64,
        /// The lowest bound that any noise achieves.
        least: f64,
    },
    /// A setting names a key column that is not there.
    #[error("`linker.{setting}` must be at most {fields}, the number of key columns; it is {column}")]
    Column {
        /// The setting.
        setting: &'static str,
        /// The column that it names, from 1.
        column: usize,
        /// The number of key columns.
        fields: usize,
    },
    /// A setting does not have one value per key column.
    #[error(
        "`linker.{setting}` must have one value for each of the {fields} key columns, or none; it has {length}"
    )]
    Length {
        /// Its name.
        setting: &'static str,
        /// The number of values it has.
        length: usize,
        /// The number it needs.
        fields: usize,
    },
    /// The two sides have different kinds of keys.
    #[error("keys must be of one kind on both sides; they are {queries} and {records}")]
    Mixed {
        /// The primary's.
        queries: &'static str,
        /// The party's.
        records: &'static str,
    },
    /// A setting that is not for this way of linking.
    #[error("{0}")]
    Setting(String),
    /// A setting that the linker reads from outside is missing.
    #[error("{0}")]
    Secret(String),
    /// The search library refused the keys.
    #[error("the keys cannot be indexed: {0}")]
    Index(String),
}

impl LinkError {
    /// An error about a key, where the key is of the owner's table.
    pub fn of_own_table(self) -> Self {
        match self {
            Self::Value { row, problem } => Self::Own { row, problem },
            other => other,
        }
    }

    /// Keys that are not of the `wanted` kind.
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
