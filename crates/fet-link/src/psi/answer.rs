//! The data holder's step: turns a request and a table into an answer. The data holder stores no state.

use std::path::PathBuf;

use fet_io::memory;
use fet_linkage::psi::ELEMENT;
use fet_linkage::psi::labelled::{self, TAG, identity, padded, record};

use super::files::{self, PsiResult, RequestHeader};
use super::payload;
use super::table::{KeyComparison, TableArguments, TableKeys};
use crate::link::progress::RowProgress;
use fet_io::input::input;
use fet_io::output;

/// Arguments of `fet psi answer`.
#[derive(Debug, Clone, clap::Args)]
pub struct PsiAnswerArguments {
    /// The request from `fet psi ask`.
    request: PathBuf,
    #[command(flatten)]
    named: TableArguments,
    /// Result that the querier gets; it must be the result that the request wants.
    #[arg(long, value_enum, value_name = "WHAT")]
    give: PsiResult,
    /// Columns to reveal for common rows, separated by commas. Only for `--give payload`.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    payload: Vec<String>,
    /// Refuse requests with fewer rows.
    #[arg(long, value_name = "N", default_value = "1")]
    at_least: usize,
    /// Refuse requests with more rows, which could contain a list of guessed keys [default: ten times the
    /// rows of your table, at least 10000].
    #[arg(long, value_name = "N")]
    at_most: Option<usize>,
    /// Allow the request to compare identifiers without case, accents and punctuation (`normal`).
    #[arg(long, value_enum, value_name = "HOW")]
    compare: Option<KeyComparison>,
    /// Output file for the answer, to send to the querier.
    #[arg(long)]
    out: PathBuf,
}

/// Writes the answer, and returns the summary.
pub(super) fn answer(arguments: &PsiAnswerArguments) -> anyhow::Result<String> {
    let PsiAnswerArguments { request: path, named, give, payload: columns, compare, out, .. } = arguments;
    output::check_own("--out", out, [path, &named.table])?;
    files::spare_secret("--out", out)?;
    if (*give == PsiResult::Payload) == columns.is_empty() {
        let problem =
            if columns.is_empty() { "must name the columns to reveal" } else { "is only for --give payload" };
        return Err(input(format!("--payload: {problem}")));
    }
    payload::check(columns)?;
    let (request, elements) = files::read::<RequestHeader>("", path)?;
    check(arguments, &request, &elements)?;
    let own = named.data_holder_keys(&request.compared, *compare)?;
    let told = own.describe(&named.keys);
    let rows = own.keys.len();
    check_most(arguments, request.rows, rows)?;
    let payloads = if *give == PsiResult::Cardinality { Vec::new() } else { payloads(&own, columns)? };
    let padded = match payloads.iter().map(Vec::len).max() {
        Some(longest) => padded(longest),
        None => 0,
    };
    let length = if *give == PsiResult::Cardinality { TAG } else { record(padded) };
    // Sorting the records needs two copies of them.
    memory::check(2 * rows as u128, length as u128).map_err(|error| {
        let problem =
            format!("must leave memory for {rows} records of {length} bytes, the length of the longest row");
        input(format!("{}: {problem} ({error})", named.path().display()))
    })?;
    let header = files::AnswerHeader {
        request: request.id.clone(),
        gives: *give,
        rows,
        columns: columns.clone(),
        padded,
    };
    let context = files::line(&header)?;
    let progress = RowProgress::start("answering", "answered", request.rows.saturating_add(rows));
    let done = |count| progress.add(count);
    let (context, mut rng) = (context.as_bytes(), rand::rng());
    let answer = match give {
        PsiResult::Cardinality => labelled::Answer::count(&elements, &own.keys, context, &mut rng, &done),
        PsiResult::Links | PsiResult::Payload => {
            let table = labelled::KeyedPayloads { keys: &own.keys, payloads: &payloads };
            labelled::Answer::sealed(&elements, &table, context, &mut rng, &done)
        }
    };
    drop(progress);
    let answer = answer.map_err(|error| input(format!("{}: {error}", path.display())))?;
    files::write(out, &header, &[&answer.evaluated, &answer.records])?;
    let learns = match give {
        PsiResult::Cardinality => "the number of distinct common keys".to_string(),
        PsiResult::Links => "the pairs of rows with equal keys".to_string(),
        PsiResult::Payload => {
            format!("the pairs of rows with equal keys, and {} of these rows", columns.join(", "))
        }
    };
    Ok(format!(
        "answered a request of {} rows from a table of {rows} rows\n{told}the querier learns {learns}, and that this table has {rows} \
         rows\nanswer written to {}: send it to the querier\n",
        request.rows,
        out.display()
    ))
}

/// Refuses an inconsistent request, or a request that these arguments do not allow.
fn check(arguments: &PsiAnswerArguments, request: &RequestHeader, elements: &[u8]) -> anyhow::Result<()> {
    let PsiAnswerArguments { request: path, named, give, at_least, .. } = arguments;
    let refuse = |problem: String| Err(input(format!("{}: {problem}", path.display())));
    if request.rows == 0 || elements.len() as u128 != request.rows as u128 * ELEMENT as u128 {
        return refuse(format!("declares {} rows, but has {} bytes", request.rows, elements.len()));
    }
    if request.id != fet_io::hex(&identity(elements)) {
        return refuse("has a wrong id for its elements; ask for the file again".to_string());
    }
    if request.wants != *give {
        let wants = request.wants.name();
        return refuse(format!(
            "wants {wants}, but --give is {}; give {wants}, or ask for a new request (--want {})",
            give.name(),
            give.name()
        ));
    }
    if request.compared.len() != named.keys.len() {
        return Err(input(format!(
            "--keys: must name as many columns as {} has key columns ({}); it names {}",
            path.display(),
            request.compared.len(),
            named.keys.len()
        )));
    }
    if request.rows < *at_least {
        return refuse(format!("has {} rows; --at-least refuses fewer than {at_least}", request.rows));
    }
    Ok(())
}

/// Default maximum number of rows of a request, per row of the data holder's table.
const MOST_RATIO: usize = 10;
/// Number of rows that a request may always have by default.
const MOST_ALWAYS: usize = 10_000;

/// Refuses a request with too many rows, which could enumerate all possible keys.
fn check_most(arguments: &PsiAnswerArguments, asked: usize, own: usize) -> anyhow::Result<()> {
    let most = arguments.at_most.unwrap_or_else(|| own.saturating_mul(MOST_RATIO).max(MOST_ALWAYS));
    if asked <= most {
        return Ok(());
    }
    Err(input(format!(
        "{}: asks about {asked} rows, and --at-most refuses more than {most} (this table has {own}). A list of guessed \
         keys could find all your keys. Ask the sender for the reason, and allow the request with --at-most {asked}.",
        arguments.request.display()
    )))
}

/// Returns the payload of each row: its number, and its verbatim cells in these columns.
fn payloads(own: &TableKeys, columns: &[String]) -> anyhow::Result<Vec<Vec<u8>>> {
    if columns.is_empty() {
        return Ok((0..own.keys.len()).map(|row| payload::write(row, &[])).collect());
    }
    let cells = own.cells(columns)?;
    Ok(cells.chunks(columns.len()).enumerate().map(|(row, cells)| payload::write(row, cells)).collect())
}
