//! Compares links with the true pairs: precision, recall and F1 of each row's best link, over thresholds.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use fet_data::{read_names, read_texts};
use fet_linkage::quality::{Quality, best, curve};

use super::pairs::Pairs;
use crate::input::input;

/// Pairs of rows that belong together.
pub(super) type Truth = HashSet<(u32, u32)>;

/// Reads the first two columns of a file: ids where `ids` are given, else row numbers from 0.
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
    let cells = read_texts(path, &[first.clone(), second.clone()]).map_err(input)?;
    let tables = ids.as_ref().map(|ids| ids.each_ref().map(|ids| places(ids)));
    let once = |rows: &Vec<u32>, name: &str, id: &str| match rows.as_slice() {
        [first, second, ..] => Err(input(format!(
            "{}: the id \"{id}\" stands in data rows {} and {} of the {name} table; name a column whose ids occur once (--id)",
            path.display(),
            first + 1,
            second + 1
        ))),
        _ => Ok(()),
    };
    let mut truth = Truth::new();
    for (pair, row_number) in cells.as_chunks::<2>().0.iter().zip(1..) {
        let mut rows: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        for (side, cell) in pair.iter().enumerate() {
            let (name, count) = [("primary", primary), ("secondary", secondary)][side];
            rows[side] = match &tables {
                Some(tables) => {
                    let found = tables[side].get(cell.as_str()).ok_or_else(|| {
                        input(format!(
                            "{} data row {row_number}: no row of the {name} table has the id \"{cell}\"",
                            path.display()
                        ))
                    })?;
                    once(found, name, cell)?;
                    found.clone()
                }
                None => {
                    let row =
                        cell.parse::<u32>().ok().filter(|&row| (row as usize) < count).ok_or_else(|| {
                            let rule = format!("must be a row of the {name} table, 0 to {}", count - 1);
                            input(format!(
                                "{} data row {row_number}: {rule}; it is \"{cell}\" (name the column of ids with --id)",
                                path.display()
                            ))
                        })?;
                    vec![row]
                }
            };
        }
        truth.extend(rows[0].iter().flat_map(|&a| rows[1].iter().map(move |&b| (a, b))));
    }
    Ok(truth)
}

fn places(ids: &[String]) -> HashMap<&str, Vec<u32>> {
    let mut places: HashMap<&str, Vec<u32>> = HashMap::new();
    for (row, id) in ids.iter().enumerate() {
        places.entry(id).or_default().push(row as u32);
    }
    places
}

/// The quality of what is written, in a line.
pub(super) fn written(pairs: &Pairs<'_>, truth: &Truth) -> String {
    let (mut links, mut correct) = (0, 0);
    for row in 0..pairs.links.rows() {
        for (_, record, _) in pairs.row(row) {
            links += 1;
            correct += usize::from(truth.contains(&(row as u32, record)));
        }
    }
    let quality = Quality {
        threshold: pairs.threshold.unwrap_or(f32::NEG_INFINITY),
        links,
        correct,
        truth: truth.len(),
    };
    format!(
        "written at threshold {:.4}: precision {:.4}, recall {:.4}, F1 {:.4}\n",
        quality.threshold,
        quality.precision(),
        quality.recall(),
        quality.f1()
    )
}

/// Lines for people.
pub(super) fn text(pairs: &Pairs<'_>, truth: &Truth) -> String {
    let mut out = String::new();
    let rows = 0..pairs.links.rows();
    let tops: Vec<(u32, u32, f32)> = rows
        .clone()
        .filter_map(|row| pairs.row(row).next().map(|(_, record, s)| (row as u32, record, s.unwrap_or(0.0))))
        .collect();
    let found = rows
        .flat_map(|row| pairs.row(row).map(move |(_, record, _)| (row as u32, record)))
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
    // Ten points, evenly over the thresholds that occur.
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
        pairs.links.available(),
        truth.len()
    );
    out
}
