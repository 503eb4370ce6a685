//! Pairs that count as links, and their file.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::candidates::{Candidate, Candidates};
use fet_io::input::input;
use fet_io::output;

/// Candidates, with the rules that select the links among them.
#[derive(Clone, Copy)]
pub(super) struct LinkedPairs<'a> {
    pub(super) candidates: Candidates<'a>,
    /// Similarity at or below which a pair is never a link.
    pub(super) floor: Option<f32>,
    /// Similarity below which a pair is left out.
    pub(super) threshold: Option<f32>,
    /// Maximum number of links of a row without an assignment.
    pub(super) wanted: usize,
    /// Rank of each row's only pair, if it has a pair.
    pub(super) assigned: Option<&'a [Option<usize>]>,
}

impl<'a> LinkedPairs<'a> {
    /// Returns the links of a row with their ranks, from 0. A confirmed pair is a link for any similarity.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (usize, Candidate)> + use<'a> {
        let (floor, threshold, wanted) = (self.floor, self.threshold, self.wanted);
        let assigned = self.assigned.map(|assigned| assigned[row]);
        self.candidates.row(row).enumerate().filter(move |(rank, candidate)| {
            let chosen = assigned.map_or(*rank < wanted, |own| own == Some(*rank));
            let similar = |s: f32| floor.is_none_or(|floor| s > floor) && threshold.is_none_or(|t| s >= t);
            candidate.decided || (chosen && candidate.similarity.is_none_or(similar))
        })
    }

    /// Returns true if a pair is a link.
    pub(super) fn has(&self, row: usize, record: u32) -> bool {
        self.row(row).any(|(_, candidate)| candidate.record == record)
    }
}

/// Refuses an unwritable output before the command does any work.
pub(crate) fn check_output<'a>(
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    output::check(out, inputs)?;
    let other = ["parquet", "arrow", "feather", "tsv", "zst", "zip", "xlsx", "xls", "ods", "json"];
    if out.extension().is_some_and(|ending| other.iter().any(|other| ending.eq_ignore_ascii_case(other))) {
        let problem = "links are written as CSV; name a .csv or .csv.gz file";
        return Err(input(format!("--out {}: {problem}", out.display())));
    }
    Ok(())
}

/// Writes the links, and returns their number.
pub(super) fn write(
    out: &Path,
    pairs: &LinkedPairs<'_>,
    ids: Option<&[Vec<String>; 2]>,
) -> std::io::Result<usize> {
    write_output(out, |file| rows(file, pairs, ids))
}

/// Writes the output of `fill` atomically to a file, or to standard output. A file whose name ends in .gz is
/// compressed.
pub(crate) fn write_output<T>(
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

fn rows(
    file: &mut dyn Write,
    pairs: &LinkedPairs<'_>,
    ids: Option<&[Vec<String>; 2]>,
) -> std::io::Result<usize> {
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

/// Quotes a CSV cell if necessary.
pub(crate) fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
