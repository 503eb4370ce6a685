//! The `Linker` slot: which records of another party belong to a primary record.
//!
//! There is no common identifier. A linker sees keys alone, never features or labels, and it is run once
//! for a whole run; the order of what it returns is the order the model sees. To add one, copy
//! `linker/nearest.rs`, or see `examples/custom-linker` for one in a crate of its own.

mod links;

use crate::data::{KeyKind, Keys, Matrix, Sealed, TextTable};
use crate::registry::{Plugin, SlotKind};

pub use links::Links;

/// Finds, for every query, the K records that most resemble it.
///
/// Laws, held by the contract suite for every plug-in: indices are valid; each row is sorted by
/// similarity, highest first, where there are similarities; K is honoured or refused; the same seed gives
/// the same links.
pub trait Linker: Send + Sync {
    /// How many neighbours each query gets, K.
    fn neighbours(&self) -> usize;

    /// Whether its links say how similar they are.
    fn gives_similarities(&self) -> bool {
        true
    }

    /// What is learned by whom while it links, similarities that a method asks for apart.
    fn reveals(&self) -> Reveals;

    /// What its user should hear of what it did; it says so once.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What keys it takes.
    fn takes(&self) -> KeyKind {
        KeyKind::Numbers
    }

    /// The similarity at or below which two records are no link, where there is such a one: K neighbours are
    /// given all the same, but nobody should take the last of them for matches.
    fn floor(&self) -> Option<f32> {
        None
    }

    /// What the primary sends instead of its keys; the keys themselves where the linker protects none.
    /// Both sides know `seed`. [`Linker::link`] takes the result for the keys.
    fn conceal(&self, queries: &Keys, _seed: u64) -> Result<Keys, LinkError> {
        Ok(queries.clone())
    }

    /// Whether it poses a challenge.
    fn asks(&self) -> bool {
        false
    }

    /// What a secondary must ask the primary before it can link; nothing for most linkers.
    fn challenge(&self, _records: &Keys) -> Result<Option<Sealed>, LinkError> {
        Ok(None)
    }

    /// The primary's answer to a secondary's challenge.
    fn answer(&self, _challenge: &Sealed) -> Result<Sealed, LinkError> {
        Err(LinkError::Message("a challenge that this linker does not pose".into()))
    }

    /// Links concealed `queries` with `records`, given the answer to the challenge of the latter.
    fn link_answered(
        &self,
        queries: &Keys,
        records: &Keys,
        _answer: &Sealed,
        seed: u64,
    ) -> Result<Links, LinkError> {
        self.link(queries, records, seed)
    }

    /// Links `queries`, in the clear or as [`Linker::conceal`] leaves them, with `records`.
    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError>;

    /// The same; `done` hears of queries as they are answered, from any thread.
    fn link_telling(
        &self,
        queries: &Keys,
        records: &Keys,
        seed: u64,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Links, LinkError> {
        let links = self.link(queries, records, seed)?;
        done(links.rows());
        Ok(links)
    }
}

/// What a linker tells whom, beyond what the links themselves tell the secondary: how many primary records there are,
/// and which of its own belong to each. All parties are taken to follow the protocol and not to collude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reveals {
    /// To the secondary, which links.
    pub secondary: &'static str,
    /// To the primary.
    pub primary: &'static str,
    /// To someone without the parties' secret who sees the messages.
    pub outsider: &'static str,
}

impl SlotKind for dyn Linker {
    const SLOT: &'static str = "linker";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Linker>);

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

/// The checks that every linker of numbers begins with: numbers, the same key columns, and enough records or
/// leave to pad.
pub fn check_numbers<'a>(
    queries: &'a Keys,
    records: &'a Keys,
    neighbours: usize,
    pad: bool,
) -> Result<(&'a Matrix<f64>, &'a Matrix<f64>), LinkError> {
    let numbers = |keys: &'a Keys| keys.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, keys));
    let (queries, records) = (numbers(queries)?, numbers(records)?);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)?;
    Ok((queries, records))
}

/// The same for linkers of text.
pub fn check_text<'a>(
    queries: &'a Keys,
    records: &'a Keys,
    neighbours: usize,
    pad: bool,
) -> Result<(&'a TextTable, &'a TextTable), LinkError> {
    let text = |keys: &'a Keys| keys.text().ok_or_else(|| LinkError::kind(KeyKind::Text, keys));
    let (queries, records) = (text(queries)?, text(records)?);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)?;
    Ok((queries, records))
}

/// The same for linkers of either: one kind on both sides. Sealed queries are of any kind.
pub fn check_either(queries: &Keys, records: &Keys, neighbours: usize, pad: bool) -> Result<(), LinkError> {
    let same = matches!(
        (queries, records),
        (Keys::Numbers(_) | Keys::Sealed(_), Keys::Numbers(_))
            | (Keys::Text(_) | Keys::Sealed(_), Keys::Text(_))
    );
    if !same {
        return Err(LinkError::Mixed { queries: queries.kind_name(), records: records.kind_name() });
    }
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)
}

/// Same key columns, and enough records or leave to pad.
pub fn check_shapes(
    queries: usize,
    records: usize,
    rows: usize,
    neighbours: usize,
    pad: bool,
) -> Result<(), LinkError> {
    if queries != records {
        return Err(LinkError::KeyMismatch { queries, records });
    }
    if rows == 0 || (rows < neighbours && !pad) {
        return Err(LinkError::TooFewRecords { neighbours, records: rows });
    }
    Ok(())
}
