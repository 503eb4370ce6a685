//! Why two tables cannot be linked: the errors of every linker. What a user should do stands in the message.

use crate::data::{KeyKind, Keys};

/// Why two tables cannot be linked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// K is larger than the other party.
    #[error(
        "`linker.neighbours` must not exceed the {records} records of the party; it is {neighbours} \
         (or set `linker.pad = true` to repeat neighbours and mask the repeats)"
    )]
    TooFewRecords {
        /// K.
        neighbours: usize,
        /// What the party has.
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
    /// Text where numbers are needed, or the reverse.
    #[error("`linker.kind` needs keys that are {wanted}; they are {found} ({advice})")]
    KeyKind {
        /// What the linker takes.
        wanted: &'static str,
        /// What it was given.
        found: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A key has a value that the linker cannot use.
    #[error("key {row} (counted from 1): {problem}")]
    Value {
        /// The row, from 1.
        row: usize,
        /// The rule, the value and what to do.
        problem: String,
    },
    /// What the other party sent is not what this linker sends.
    #[error("the other party's message cannot be read: {0}")]
    Message(String),
    /// No noise bounds the leak as asked.
    #[error(
        "`linker.leak` must be above {least:.4} for similarities of standard deviation {spread:.4}; it is {leak} (encode \
         with more bits, or ask for less)"
    )]
    Leak {
        /// What was asked for.
        leak: f64,
        /// The spread of the similarities.
        spread: f64,
        /// What any noise reaches at least.
        least: f64,
    },
    /// A setting has not one value for each key column.
    #[error(
        "`linker.{setting}` must have one value for each of the {fields} key columns, or none; it has {length}"
    )]
    Length {
        /// Which.
        setting: &'static str,
        /// How many values it has.
        length: usize,
        /// How many it needs.
        fields: usize,
    },
    /// The two sides have different kinds of keys.
    #[error("keys must be of one kind on both sides; they are {queries} and {records}")]
    Mixed {
        /// Of the primary.
        queries: &'static str,
        /// Of the party.
        records: &'static str,
    },
    /// A setting that the linker reads from outside is missing.
    #[error("{0}")]
    Secret(String),
    /// The library that searches refused the keys.
    #[error("the keys cannot be indexed: {0}")]
    Index(String),
}

impl LinkError {
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
