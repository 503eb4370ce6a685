//! One reader for tables as they are: CSV and TSV (plain, gzip, zstd), Parquet and Arrow IPC become a [`Table`] of typed
//! columns; [`summary`] describes one to the person who holds it, [`write()`] writes one.
//!
//! What a column is (number, category, date, text) is inferred by rules that never guess between two readings of a cell,
//! and can be set by [`Options::kinds`]. What was decided stands in [`Table::notes`]. Messages, notes and summaries show
//! cells: they are for the holder of the table and are never sent to anyone. This crate knows nothing of parties, keys or
//! labels, and scales nothing.
//!
//! Parquet and Arrow need the feature `columnar`; without it such a file is refused with a message that says so.

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
pub use write::{check_name, write, write_csv};
pub use written::{DateOrder, Decided, Decimal, unit};
