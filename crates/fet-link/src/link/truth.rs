//! Compares links with the true pairs: precision, recall and F1 of each row's best link, for a range of
//! thresholds.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use fet_data::{read_names, read_texts};
use fet_linkage::quality::{Quality, best, curve};

use super::named::{RowInFile, Side};
use super::pairs::LinkedPairs;
use fet_io::input::input;

/// Pairs of matching rows.
pub(super) type Truth = HashSet<(u32, u32)>;

/// Reads the first two columns of a file: ids if `ids` is given, else row numbers from 0.
pub(super) fn read(
    path: &Path,
    ids: &Option<[Vec<String>; 2]>,
    primary: usize,
    secondary: usize,
) -> anyhow::Result<Truth> {
    let header = read_names(path).map_err(input)?;
    let [first, second, ..] = header.as_slice() else {
        let found = header.len();
        return Err(input(format!(
            "{}: must have two columns, the primary's and the secondary's rows or ids; it has {found}",
            path.display()
        )));
    };
    if ids.is_none() && [first, second].iter().all(|name| name.parse::<u32>().is_ok()) {
        return Err(input(format!(
            "{}: must begin with a header, as primary_row,secondary_row; its first line has the numbers {first} and {second}",
            path.display()
        )));
    }
    let cells = read_texts(path, &[first.clone(), second.clone()]).map_err(input)?;
    let sides = Side::both(ids.as_ref(), [primary, secondary]);
    let mut truth = Truth::new();
    for (pair, row_number) in cells.as_chunks::<2>().0.iter().zip(0..) {
        let place = RowInFile { file: path, row: row_number };
        let row = |side: usize| match ids {
            Some(_) => sides[side].by_id(place, &pair[side], None),
            None => sides[side].by_number(place, &pair[side]),
        };
        truth.insert((row(0)?, row(1)?));
    }
    Ok(truth)
}

/// Returns a line about the quality of the written links.
pub(super) fn written(pairs: &LinkedPairs<'_>, truth: &Truth) -> String {
    let (mut links, mut correct) = (0, 0);
    for row in 0..pairs.candidates.rows() {
        for (_, candidate) in pairs.row(row) {
            links += 1;
            correct += usize::from(truth.contains(&(row as u32, candidate.record)));
        }
    }
    let quality = Quality {
        threshold: pairs.threshold.unwrap_or(f32::NEG_INFINITY),
        links,
        correct,
        truth: truth.len(),
    };
    let at = pairs.threshold.map(|threshold| format!(" at threshold {threshold:.4}")).unwrap_or_default();
    format!(
        "written{at}: precision {:.4}, recall {:.4}, F1 {:.4}\n",
        quality.precision(),
        quality.recall(),
        quality.f1()
    )
}

/// Returns lines for people about the quality of the best links by threshold.
pub(super) fn text(pairs: &LinkedPairs<'_>, truth: &Truth) -> String {
    let mut out = String::new();
    let rows = 0..pairs.candidates.rows();
    let tops: Vec<(u32, u32, f32)> = rows
        .clone()
        .filter_map(|row| pairs.row(row).next().map(|(_, best)| (row as u32, best.record, best.order())))
        .collect();
    let found = rows
        .flat_map(|row| pairs.row(row).map(move |(_, candidate)| (row as u32, candidate.record)))
        .filter(|pair| truth.contains(pair))
        .count();
    let curve = curve(&tops, truth);
    let _ = writeln!(out, "truth: {} pairs; best link of each row, by threshold:", truth.len());
    let _ = writeln!(out, "  {:>10}  {:>9}  {:>9}  {:>9}", "threshold", "precision", "recall", "F1");
    let line = |name: &str, q: &Quality| {
        format!(
            "  {:>10.4}  {:>9.4}  {:>9.4}  {:>9.4}{name}\n",
            q.threshold,
            q.precision(),
            q.recall(),
            q.f1()
        )
    };
    // Show ten points, evenly spaced over the occurring thresholds.
    let step = curve.len().div_ceil(10).max(1);
    for quality in curve.iter().skip(step - 1).step_by(step) {
        out += &line("", quality);
    }
    if let Some(best) = best(&curve) {
        out += &line("  best F1", &best);
    }
    let share = found as f64 / truth.len().max(1) as f64;
    let _ = writeln!(
        out,
        "true pairs among the {} neighbours: {found} of {} ({share:.4})",
        pairs.candidates.searched(),
        truth.len()
    );
    out
}
