//! The pairs that are counted as links, and their file.

use std::io::Write;
use std::path::Path;

use fet_core::linker::Links;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::output;

/// The links, and which of them are counted.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a> {
    pub(super) links: &'a Links,
    /// At or below it a pair is not a link.
    pub(super) floor: Option<f32>,
    /// Below it a pair is left out.
    pub(super) threshold: Option<f32>,
    /// Candidates beyond so many are left out, where none are assigned.
    pub(super) wanted: usize,
    /// The rank of each row's only pair, if it has one.
    pub(super) assigned: Option<&'a [Option<usize>]>,
}

impl Pairs<'_> {
    /// Rank (from 0), record and similarity of the counted links of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (usize, u32, Option<f32>)> {
        let similarities = self.links.similarities(row);
        let pairs = self.links.row(row)[..self.links.available()].iter().enumerate();
        let all = pairs.map(move |(rank, &record)| (rank, record, similarities.map(|all| all[rank])));
        let (floor, threshold, wanted) = (self.floor, self.threshold, self.wanted);
        let assigned = self.assigned.map(|assigned| assigned[row]);
        all.filter(move |&(rank, _, similarity)| {
            let chosen = assigned.map_or(rank < wanted, |own| own == Some(rank));
            chosen
                && similarity
                    .is_none_or(|s| floor.is_none_or(|floor| s > floor) && threshold.is_none_or(|t| s >= t))
        })
    }
}

/// Writes the counted pairs, and returns their number.
pub(super) fn write(out: &Path, pairs: &Pairs<'_>, ids: Option<&[Vec<String>; 2]>) -> std::io::Result<usize> {
    place(out, |file| rows(file, pairs, ids))
}

/// Writes what `fill` gives: whole or not at all, compressed where the name ends in .gz, or to standard output.
pub(super) fn place<T>(
    out: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<T>,
) -> std::io::Result<T> {
    if out == Path::new(output::STANDARD) {
        let mut text = Vec::new();
        let filled = fill(&mut text)?;
        fet_files::answer(&String::from_utf8_lossy(&text))?;
        return Ok(filled);
    }
    fet_files::write_with(out, |file| {
        if out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
            let mut encoder = GzEncoder::new(file, Compression::default());
            let filled = fill(&mut encoder)?;
            encoder.finish()?;
            return Ok(filled);
        }
        fill(file)
    })
}

fn rows(file: &mut dyn Write, pairs: &Pairs<'_>, ids: Option<&[Vec<String>; 2]>) -> std::io::Result<usize> {
    write!(file, "primary_row,secondary_row,rank,similarity")?;
    writeln!(file, "{}", if ids.is_some() { ",primary_id,secondary_id" } else { "" })?;
    let mut written = 0;
    for row in 0..pairs.links.rows() {
        for (rank, record, similarity) in pairs.row(row) {
            write!(file, "{row},{record},{}", rank + 1)?;
            match similarity {
                Some(similarity) => write!(file, ",{similarity}")?,
                None => write!(file, ",")?,
            }
            if let Some([primary, secondary]) = ids {
                write!(file, ",{},{}", quoted(&primary[row]), quoted(&secondary[record as usize]))?;
            }
            writeln!(file)?;
            written += 1;
        }
    }
    Ok(written)
}

/// A cell of CSV.
pub(super) fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
