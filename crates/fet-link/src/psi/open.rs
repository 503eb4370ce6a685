//! The querier's last step: turns an answer and the secret of its request into a count, links, or links with
//! columns.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fet_linkage::psi::labelled::{self, Opened, Querier, TAG, record};
use fet_linkage::psi::{ELEMENT, PsiError};

use super::files::{self, AnswerHeader, PsiResult, SecretHeader};
use super::payload;
use crate::link::pairs;
use crate::link::progress::RowProgress;
use fet_io::input::input;
use fet_io::output;

/// Arguments of `fet psi open`.
#[derive(Debug, Clone, clap::Args)]
pub struct PsiOpenArguments {
    /// The answer from `fet psi answer`.
    answer: PathBuf,
    /// The secret from `fet psi ask`. It opens one answer and is then erased from its file.
    #[arg(long, value_name = "STATE")]
    secret: PathBuf,
    /// Output file (CSV) for links and payload, compressed if its name ends in .gz. `-` writes the links to
    /// standard output and the summary to standard error.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl PsiOpenArguments {
    /// Returns true if the results go to standard output.
    pub(super) fn writes_to_standard(&self) -> bool {
        self.out.as_deref() == Some(Path::new(output::STANDARD))
    }
}

/// Opens an answer, writes its content, erases the secret, and returns the summary.
pub(super) fn open(arguments: &PsiOpenArguments) -> anyhow::Result<String> {
    let PsiOpenArguments { answer: path, secret, out } = arguments;
    if let Some(out) = out {
        pairs::check_output(out, [path, secret])?;
        files::spare_secret("--out", out)?;
    }
    let (state, bytes) = files::read::<SecretHeader>("--secret ", secret)?;
    if state.used {
        let problem = "has already opened an answer; create a new request";
        return Err(input(format!("--secret {}: {problem}", secret.display())));
    }
    let querier = Querier::from_bytes(&bytes)
        .filter(|querier| querier.rows() == state.rows && fet_io::hex(&querier.request()) == state.request)
        .ok_or_else(|| {
            input(format!(
                "--secret {}: does not have the content that its header declares",
                secret.display()
            ))
        })?;
    let (header, bytes) = files::read::<AnswerHeader>("", path)?;
    let answer = parted(arguments, &state, &header, bytes)?;
    let out = match (out, state.wants) {
        (Some(_), PsiResult::Cardinality) => {
            return Err(input("--out: is only for links and payload; a cardinality is printed"));
        }
        (None, PsiResult::Links | PsiResult::Payload) => {
            return Err(input(format!("--out: must name the file for the {}", state.wants.name())));
        }
        (out, _) => out,
    };
    let rows = header.rows;
    let progress = RowProgress::start("opening", "opened", state.rows);
    let done = |count| progress.add(count);
    let context = files::line(&header)?;
    let wrong = |error| {
        // A complaint would tell the author of the record that the row's key is in both tables.
        let more = if matches!(error, PsiError::Sealed(_)) {
            "; do not tell its author the number of the row"
        } else {
            ""
        };
        input(format!("{}: {error}{more}", path.display()))
    };
    let distinct = querier.distinct();
    let told = match out {
        None => {
            let count = querier.count(&answer, context.as_bytes(), &done).map_err(wrong)?;
            // Print the count before the secret is erased, because there is no other copy of the secret.
            fet_io::answer(&format!(
                "{count} distinct keys are in both tables; this table has {distinct} distinct keys, the other table \
                 {rows} rows\n"
            ))
            .context("cannot write to standard output; the secret can still open the answer")?;
            String::new()
        }
        Some(out) => {
            let opened = querier.open(&answer, header.padded, context.as_bytes(), &done).map_err(wrong)?;
            links(path, &opened, &header, out)?
        }
    };
    drop(progress);
    files::write(secret, &SecretHeader { used: true, ..state }, &[])?;
    Ok(told)
}

/// Parses the message in an answer, and refuses an answer to another request.
fn parted(
    arguments: &PsiOpenArguments,
    state: &SecretHeader,
    header: &AnswerHeader,
    mut bytes: Vec<u8>,
) -> anyhow::Result<labelled::Answer> {
    let PsiOpenArguments { answer: path, secret, .. } = arguments;
    let refuse = |problem: String| Err(input(format!("{}: {problem}", path.display())));
    if header.request != state.request {
        return refuse(format!("answers another request than the one of {}", secret.display()));
    }
    if header.gives != state.wants {
        return refuse(format!("gives {}; the request wants {}", header.gives.name(), state.wants.name()));
    }
    if (header.gives == PsiResult::Payload) == header.columns.is_empty()
        || payload::check(&header.columns).is_err()
    {
        return refuse(format!(
            "gives {}, but names columns that do not fit such an answer",
            header.gives.name()
        ));
    }
    let length = match header.gives {
        PsiResult::Cardinality => TAG as u128,
        PsiResult::Links | PsiResult::Payload => header.padded as u128 + record(0) as u128,
    };
    let elements = state.rows as u128 * ELEMENT as u128;
    if header.rows == 0 || bytes.len() as u128 != elements + header.rows as u128 * length {
        return refuse(format!(
            "declares {} records for {} rows, but has {} bytes",
            header.rows,
            state.rows,
            bytes.len()
        ));
    }
    let records = bytes.split_off(state.rows * ELEMENT);
    Ok(labelled::Answer { evaluated: bytes, records })
}

/// Writes the links, with the data holder's columns if there are any, and returns the summary.
fn links(path: &Path, opened: &Opened, header: &AnswerHeader, out: &Path) -> anyhow::Result<String> {
    if let Some(Pair { primary, .. }) = pairs_of(opened, header).find(|pair| pair.secondary.is_none()) {
        let problem = format!("a record for row {primary} (from 0) contains no row of the other table");
        return Err(input(format!("{}: {problem}", path.display())));
    }
    let linked = (0..opened.rows()).filter(|&row| !opened.row(row).is_empty()).count();
    let written = pairs::write_output(out, |file| write(file, opened, header))
        .with_context(|| format!("cannot write {}", out.display()))?;
    Ok(format!(
        "{linked} of {} rows have a key in the other table, which has {} rows\n{written} pairs written to {}\n",
        opened.rows(),
        header.rows,
        out.display()
    ))
}

/// One of the querier's rows, the rank of a record with the same key (from 1), and the content of that
/// record: a row of the data holder with its cells, if the record is valid.
struct Pair<'a> {
    primary: usize,
    rank: usize,
    secondary: Option<(u32, Vec<&'a str>)>,
}

/// Returns the pairs of an answer, by the querier's rows and then the data holder's. The iterator is lazy,
/// because there may be many more pairs than records.
fn pairs_of<'a>(opened: &'a Opened, header: &'a AnswerHeader) -> impl Iterator<Item = Pair<'a>> {
    (0..opened.rows()).flat_map(move |primary| {
        (1..).zip(opened.row(primary)).map(move |(rank, bytes)| {
            let secondary = payload::read(bytes, header.rows, header.columns.len());
            Pair { primary, rank, secondary }
        })
    })
}

/// Writes the pairs, and returns their number.
fn write(file: &mut dyn Write, opened: &Opened, header: &AnswerHeader) -> io::Result<usize> {
    write!(file, "{}", payload::COLUMNS.join(","))?;
    header.columns.iter().try_for_each(|column| write!(file, ",{}", pairs::quoted(column)))?;
    writeln!(file)?;
    let mut written = 0;
    for Pair { primary, rank, secondary } in pairs_of(opened, header) {
        let (secondary, cells) = secondary.ok_or(io::ErrorKind::InvalidData)?;
        write!(file, "{primary},{secondary},{rank},1")?;
        cells.iter().try_for_each(|cell| write!(file, ",{}", pairs::quoted(cell)))?;
        writeln!(file)?;
        written += 1;
    }
    Ok(written)
}
