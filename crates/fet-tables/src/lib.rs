//! Reader for tables of many formats. CSV and TSV (plain, gzip, zstd), Parquet and Arrow IPC become a
//! [`Table`] of typed columns. [`summary`] describes a table to its holder, and [`write()`] writes a table.
//!
//! Rules infer the kind of each column (number, category, date, text). The rules never guess between two
//! readings of a cell, and [`Options::kinds`] overrides them. [`Table::notes`] lists the decisions. Messages,
//! notes and summaries quote cells: they are for the holder of the table, and the program never sends them.
//! This crate does not know parties, keys or labels, and does not scale values outside [`prepare`].
//!
//! Parquet and Arrow need the feature `columnar`. Without it, the reader refuses such files with an
//! explanation.

#[cfg(feature = "columnar")]
mod arrow;
#[cfg(not(feature = "columnar"))]
#[path = "absent.rs"]
mod arrow;
mod date;
mod delimited;
mod error;
mod fill;
mod format;
mod number;
mod options;
pub mod prepare;
mod read;
mod select;
mod summary;
mod table;
mod texts;
mod write;
mod written;

pub use error::{BadCell, Place, TableError, shortened};
pub use format::Format;
pub use options::{Kind, MARKS, Options, UnknownKind, delimiter};
pub use read::{read, read_bytes, read_from};
pub use summary::{ColumnSummary, Figures, Summary, summary};
pub use table::{Column, MISSING_CODE, MISSING_DATE, Table, Values};
pub use texts::Texts;
pub use write::{arrow_bytes, check_name, write, write_csv};
pub use written::{DateOrder, Decided, Decimal, unit};

/// The example of the README, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
