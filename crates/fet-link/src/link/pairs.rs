//! The pairs that are counted as links, and their file.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::candidates::{Candidate, Candidates};
use fet_io::output;

/// The candidates, and which of them are counted as links.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a> {
    pub(super) candidates: Candidates<'a>,
    /// At or below it a pair is not a link.
    pub(super) floor: Option<f32>,
    /// Below it a pair is left out.
    pub(super) threshold: Option<f32>,
    /// Candidates beyond so many are left out, where none are assigned.
    pub(super) wanted: usize,
    /// The rank of each row's only pair, if it has one.
    pub(super) assigned: Option<&'a [Option<usize>]>,
}

impl<'a> Pairs<'a> {
    /// The counted links of a row, with their ranks from 0. What a person decided for is one whatever its similarity.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (usize, Candidate)> + use<'a> {
        let (floor, threshold, wanted) = (self.floor, self.threshold, self.wanted);
        let assigned = self.assigned.map(|assigned| assigned[row]);
        self.candidates.row(row).enumerate().filter(move |(rank, candidate)| {
            let chosen = assigned.map_or(*rank < wanted, |own| own == Some(*rank));
            let similar = |s: f32| floor.is_none_or(|floor| s > floor) && threshold.is_none_or(|t| s >= t);
            candidate.decided || (chosen && candidate.similarity.is_none_or(similar))
        })
    }

    /// Whether a pair is a link.
    pub(super) fn has(&self, row: usize, record: u32) -> bool {
        self.row(row).any(|(_, candidate)| candidate.record == record)
    }
}

/// Writes the counted pairs, and returns their number.
pub(super) fn write(out: &Path, pairs: &Pairs<'_>, ids: Option<&[Vec<String>; 2]>) -> std::io::Result<usize> {
    place(out, |file| rows(file, pairs, ids))
}

/// Writes what `fill` gives: whole or not at all, compressed where the name ends in .gz, or to standard output.
pub(crate) fn place<T>(
    out: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<T>,
) -> std::io::Result<T> {
    if out == Path::new(output::STANDARD) {
        let mut text = Vec::new();
        let filled = fill(&mut text)?;
        fet_io::answer(&String::from_utf8_lossy(&text))?;
        return Ok(filled);
    }
    fet_io::write_with(out, |file| {
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
    for row in 0..pairs.candidates.rows() {
        for (rank, Candidate { record, similarity, .. }) in pairs.row(row) {
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
pub(crate) fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
