//! Summary of links: similarities by rank, records that are never or very often chosen, empty and repeated
//! keys.

use std::collections::HashMap;
use std::fmt::Write;

use fet_core::data::{Comparison, Keys};
use fet_linkage::text::normalise;
use fet_linkers::contents;

use super::pairs::LinkedPairs;

/// Returns lines for people about the keys. A linker of equal keys gives in `compared` the comparison of each
/// column, and in `missing` the cells that count as empty.
pub(super) fn keys(
    primary: &Keys,
    secondary: &Keys,
    names: &[String],
    compared: Option<&[Comparison]>,
    missing: &[String],
) -> String {
    let mut out = String::new();
    let have = if compared.is_some() { "an empty key cell" } else { "empty keys" };
    for (name, comparison) in names.iter().zip(compared.unwrap_or_default()) {
        let _ = writeln!(out, "key `{name}` is compared {}", comparison.description());
    }
    for (name, keys) in [("primary", primary), ("secondary", secondary)] {
        let (empty, repeated) = oddities(keys, compared, missing);
        if empty > 0 {
            let _ = writeln!(out, "{name}: {empty} rows have {have} and get no links");
        }
        if repeated > 0 {
            let _ = writeln!(
                out,
                "{name}: {repeated} rows share their key with another row; each row is linked separately"
            );
        }
    }
    out
}

/// Returns lines for people about the links with `records` records.
pub(super) fn text(pairs: &LinkedPairs<'_>, records: usize) -> String {
    let mut out = String::new();
    let candidates = pairs.candidates;
    let mut ranks = vec![1, 10, candidates.searched()];
    ranks.retain(|&rank| rank <= candidates.searched());
    ranks.dedup();
    for rank in ranks {
        let mut all: Vec<f32> = (0..candidates.rows())
            .filter_map(|row| candidates.similarities(row).map(|all| all[rank - 1]))
            .collect();
        if all.is_empty() {
            continue;
        }
        all.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        let _ = writeln!(
            out,
            "similarity at rank {rank:>3}: median {:.4}, 5 % below {:.4}, 5 % above {:.4}",
            at(0.5),
            at(0.05),
            at(0.95)
        );
    }
    let mut chosen = vec![0usize; records];
    let mut linked = 0;
    for row in 0..candidates.rows() {
        let mut any = 0;
        for (_, candidate) in pairs.row(row) {
            chosen[candidate.record as usize] += 1;
            any = 1;
        }
        linked += any;
    }
    let never = chosen.iter().filter(|&&times| times == 0).count();
    let mean = chosen.iter().sum::<usize>() as f64 / chosen.len().max(1) as f64;
    let often = chosen.iter().filter(|&&times| times as f64 > 10.0 * mean && times > 1).count();
    let most = chosen.iter().max().copied().unwrap_or(0);
    let _ = writeln!(out, "primary rows with a link: {linked} of {}", candidates.rows());
    let _ = writeln!(
        out,
        "secondary rows: {never} of {} never chosen, {often} more than ten times as often as the mean ({mean:.2}), the \
         most frequent {most} times",
        chosen.len()
    );
    out
}

/// The number of keys that are linked with nothing, and of rows that share a key with another.
fn oddities(keys: &Keys, compared: Option<&[Comparison]>, missing: &[String]) -> (usize, usize) {
    let forms = match (compared, keys) {
        (None, Keys::Text(table)) => (0..table.rows()).map(|row| weighed(table.row(row))).collect(),
        _ => contents(keys, missing, compared.unwrap_or_default()),
    };
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    forms.iter().flatten().for_each(|key| *counts.entry(key).or_default() += 1);
    let empty = forms.iter().filter(|key| key.is_none()).count();
    (empty, counts.values().filter(|&&count| count > 1).sum())
}

/// Returns the key of a row for a linker that weighs cells; `None` if all cells are empty.
fn weighed<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Vec<u8>> {
    let cells: Vec<String> = cells.map(normalise).collect();
    cells.iter().any(|cell| !cell.is_empty()).then(|| cells.join("\n").into_bytes())
}
