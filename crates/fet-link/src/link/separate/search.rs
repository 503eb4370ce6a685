//! Arguments of `fet link match`, and the search behind all its results.

use std::path::PathBuf;

use fet_core::linker::Links;
use fet_io::memory;
use fet_linkage::bits::BitTable;
use fet_linkage::blocking::{Blocking, FilterTables};
use fet_linkage::search::{Index, Measure};

use super::encodings::Encodings;
use crate::link::arguments::{Assign, Threshold};
use crate::link::progress::RowProgress;
use fet_io::input::input;

/// Arguments of `fet link match`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LinkMatchArguments {
    /// Encodings of two or more tables, the primary's first.
    #[arg(required = true, num_args = 1..)]
    pub(super) encodings: Vec<PathBuf>,
    /// Output file (CSV), compressed if its name ends in .gz. `-` writes to standard output.
    #[arg(long)]
    pub(super) out: PathBuf,
    /// K, the number of records to link with each primary row. Only for two tables.
    #[arg(long, value_name = "K", default_value = "1")]
    pub(super) neighbours: std::num::NonZeroUsize,
    /// Leave out pairs below this similarity: a number, `auto` or `none`. `auto` estimates the threshold with
    /// the best expected F1 of each row's best link, from the similarity of the primary's own rows, which
    /// takes extra time.
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBER|auto|none", default_value = "auto")]
    pub(super) threshold: Threshold,
    /// Assignment of pairs: `one-to-one` puts each row of either table into at most one pair. Only for two
    /// tables.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(super) assign: Option<Assign>,
    /// Compare all pairs, even if that takes minutes. Otherwise large tables are compared only where samples
    /// of bits agree, which finds rows of Dice similarity 0.65 with probability 0.99.
    #[arg(long)]
    pub(super) all_pairs: bool,
    /// True pairs, a CSV file with a header: the first table's row, then the second's, counted from 0. Only
    /// for two tables.
    #[arg(long)]
    pub(super) truth: Option<PathBuf>,
}

/// If not all pairs are compared, rows of this Dice similarity are compared with the probability below.
const SIMILARITY: f64 = 0.65;

const RECALL: f64 = 0.99;

/// Seed for the samples of bits.
const SEED: u64 = 0;

/// Returns the `take` rows of `records` most similar to each row of `table`.
pub(super) fn search(
    table: &Encodings,
    records: &BitTable,
    take: usize,
    all_pairs: bool,
) -> anyhow::Result<Links> {
    let queries = &table.filters;
    memory::check(queries.rows() as u128 * take as u128, 8).map_err(|error| {
        input(format!(
            "--neighbours {take}: must leave memory for the links of {} rows ({error})",
            queries.rows()
        ))
    })?;
    let progress = RowProgress::new(queries.rows());
    let measure: Measure = table.score.measure(queries.bits());
    let done = |count| progress.add(count);
    let tables = FilterTables { queries, records };
    let blocking = if all_pairs { None } else { Blocking::choose(tables, take, SIMILARITY, RECALL) };
    let found = match blocking {
        Some(blocking) => {
            fet_io::note!(
                "not all pairs of {} by {} rows are compared: pairs of Dice similarity {SIMILARITY} are compared with \
                 probability {RECALL} (use --all-pairs to compare all)",
                queries.rows(),
                records.rows()
            );
            blocking.search(tables, take, measure, SEED, &done).0
        }
        None => Index::new(records).search(queries, take, measure, &done),
    };
    Ok(Links::new(take, take, found.indices, found.scores))
}
