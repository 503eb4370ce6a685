//! The asker's last step: an answer and the secret of its request become a count, links, or links with columns.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fet_linkage::psi::ELEMENT;
use fet_linkage::psi::labelled::{self, Asker, TAG, record};

use super::files::{self, Answer, State};
use super::{Form, payload};
use crate::input::input;
use crate::link::progress::Progress;
use crate::link::{self, pairs};
use crate::output;

/// The arguments of `fet psi open`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The answer, as `fet psi answer` writes it.
    answer: PathBuf,
    /// The secret that `fet psi ask` wrote. It opens one answer, and is then taken out of its file.
    #[arg(long, value_name = "STATE")]
    secret: PathBuf,
    /// The output of links and payload, a CSV file, compressed if its name ends in .gz; `-` is standard output, and what else is told goes
    /// to standard error.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Arguments {
    /// Whether its results go there.
    pub(super) fn writes_to_standard(&self) -> bool {
        self.out.as_deref() == Some(Path::new(output::STANDARD))
    }
}

/// Opens an answer, writes what is in it, uses the secret up, and returns what to say.
pub(super) fn open(arguments: &Arguments) -> anyhow::Result<String> {
    let Arguments { answer: path, secret, out } = arguments;
    if let Some(out) = out {
        link::check_output(out, [path, secret])?;
    }
    let (state, bytes) = files::read::<State>("--secret ", secret)?;
    if state.used {
        let problem = "has opened an answer already, and opens no other; ask again";
        return Err(input(format!("--secret {}: {problem}", secret.display())));
    }
    let asker = Asker::from_bytes(&bytes)
        .filter(|asker| asker.rows() == state.rows && fet_files::hex(&asker.request()) == state.request)
        .ok_or_else(|| input(format!("--secret {}: does not hold what its header says", secret.display())))?;
    let (header, bytes) = files::read::<Answer>("", path)?;
    let answer = parted(arguments, &state, &header, bytes)?;
    let out = match (out, state.wants) {
        (Some(_), Form::Cardinality) => {
            return Err(input("--out: is for links and payload; a cardinality is printed"));
        }
        (None, Form::Links | Form::Payload) => {
            return Err(input(format!("--out: must name the file for the {}", state.wants.name())));
        }
        (out, _) => out,
    };
    let rows = header.rows;
    let progress = Progress::of("opening", "opened", state.rows);
    let done = |count| progress.add(count);
    let context = files::line(&header)?;
    let wrong = |error| input(format!("{}: {error}", path.display()));
    let distinct = asker.distinct();
    let told = match out {
        None => {
            let count = asker.count(&answer, context.as_bytes(), &done).map_err(wrong)?;
            format!(
                "{count} distinct keys are in both tables: of {distinct} in this one, and {rows} rows of the other\n"
            )
        }
        Some(out) => {
            let opened = asker.open(&answer, header.padded, context.as_bytes(), &done).map_err(wrong)?;
            let pairs = pairs_of(&opened, &header).map_err(|row| wrong_record(path, row))?;
            let linked = (0..opened.rows()).filter(|&row| !opened.row(row).is_empty()).count();
            let written = pairs::place(out, |file| write(file, &pairs, &header.columns));
            written.with_context(|| format!("cannot write {}", out.display()))?;
            format!(
                "{linked} of {} rows have a key of the other table, which has {rows} rows\n{} pairs written to {}\n",
                opened.rows(),
                pairs.len(),
                out.display()
            )
        }
    };
    drop(progress);
    files::write(secret, &State { used: true, ..state }, &[])?;
    Ok(told)
}

/// The message in the bytes of an answer, if it is one to this secret's request.
fn parted(
    arguments: &Arguments,
    state: &State,
    header: &Answer,
    mut bytes: Vec<u8>,
) -> anyhow::Result<labelled::Answer> {
    let Arguments { answer: path, secret, .. } = arguments;
    let refuse = |problem: String| Err(input(format!("{}: {problem}", path.display())));
    if header.request != state.request {
        return refuse(format!("answers another request than that of {}", secret.display()));
    }
    if header.gives != state.wants {
        return refuse(format!(
            "gives {}, and the request wants {}",
            header.gives.name(),
            state.wants.name()
        ));
    }
    let length = match header.gives {
        Form::Cardinality => TAG as u128,
        Form::Links | Form::Payload => header.padded as u128 + record(0) as u128,
    };
    let elements = state.rows as u128 * ELEMENT as u128;
    if header.rows == 0 || bytes.len() as u128 != elements + header.rows as u128 * length {
        return refuse(format!(
            "says {} records for {} rows, but has {} bytes of them",
            header.rows,
            state.rows,
            bytes.len()
        ));
    }
    let records = bytes.split_off(state.rows * ELEMENT);
    Ok(labelled::Answer { evaluated: bytes, records })
}

/// A pair of rows, its rank from 1, and the owner's cells.
struct Pair<'a> {
    primary: usize,
    secondary: u32,
    rank: usize,
    cells: Vec<&'a str>,
}

/// The pairs of an answer, by the asker's rows and then the owner's; or the row whose record is no row of the owner's.
fn pairs_of<'a>(opened: &'a labelled::Opened, header: &Answer) -> Result<Vec<Pair<'a>>, usize> {
    let mut pairs = Vec::new();
    for primary in 0..opened.rows() {
        for (rank, bytes) in (1..).zip(opened.row(primary)) {
            let (secondary, cells) =
                payload::read(bytes, header.rows, header.columns.len()).ok_or(primary)?;
            pairs.push(Pair { primary, secondary, rank, cells });
        }
    }
    Ok(pairs)
}

fn wrong_record(path: &Path, row: usize) -> anyhow::Error {
    input(format!(
        "{}: a record that belongs to row {row} (from 0) holds no row of the other table",
        path.display()
    ))
}

fn write(file: &mut dyn Write, pairs: &[Pair<'_>], columns: &[String]) -> std::io::Result<()> {
    write!(file, "{}", payload::COLUMNS.join(","))?;
    columns.iter().try_for_each(|column| write!(file, ",{}", pairs::quoted(column)))?;
    writeln!(file)?;
    for Pair { primary, secondary, rank, cells } in pairs {
        write!(file, "{primary},{secondary},{rank},1")?;
        cells.iter().try_for_each(|cell| write!(file, ",{}", pairs::quoted(cell)))?;
        writeln!(file)?;
    }
    Ok(())
}
