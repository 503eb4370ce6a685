//! The settings of numbers and dates: what they mean, and which of them are refused.

use fet_core::data::TextTable;
use fet_core::linker::LinkError;
use fet_core::registry::Violation;
use fet_linkage::clk::Near;
use fet_linkage::text::normalise;

use super::{ClkSettings, Weighting};

/// How each column is compared, by these settings.
pub(super) fn of(near: &[f64], dates: &[usize]) -> Vec<Option<Near>> {
    let of_column =
        |(at, &reach): (usize, &f64)| (reach > 0.0).then(|| Near { reach, dates: dates.contains(&(at + 1)) });
    near.iter().enumerate().map(of_column).collect()
}

/// Refuses distances and dates of columns that have none.
pub(super) fn check(settings: &ClkSettings) -> Result<(), Violation> {
    let ClkSettings { near, dates, groups, weighting, .. } = settings;
    if let Some(wrong) = near.iter().find(|reach| !(reach.is_finite() && **reach >= 0.0)) {
        return Err(Violation::new("near", "must have finite numbers of at least 0", wrong));
    }
    if *weighting != Weighting::Rarity && near.iter().any(|reach| *reach > 0.0) {
        let rule = "must be empty unless `weighting` is \"rarity\"";
        return Err(Violation::new("near", rule, format!("{near:?}")));
    }
    let reach = |column: usize| column.checked_sub(1).and_then(|at| near.get(at)).copied().unwrap_or(0.0);
    if let Some(wrong) = dates.iter().find(|&&column| reach(column) == 0.0) {
        let rule = "must name columns (the first is 1) for which `near` says how many days count as near";
        return Err(Violation::new("dates", rule, wrong));
    }
    for (group, one) in groups.iter().zip(1..) {
        let of_group = groups.iter().zip(1..).filter(|(other, _)| *other == group);
        for (_, other) in of_group {
            let rule = format!("must be the same for columns {one} and {other}, which are of one group");
            if reach(one).to_bits() != reach(other).to_bits() {
                return Err(Violation::new("near", rule, format!("{near:?}")));
            }
            if dates.contains(&one) != dates.contains(&other) {
                return Err(Violation::new("dates", rule, format!("{dates:?}")));
            }
        }
    }
    Ok(())
}

/// What an owner should know of columns whose distances tell little.
pub(super) fn warnings(settings: &ClkSettings, records: &TextTable) -> Vec<String> {
    let mut warnings = Vec::new();
    let columns = of(&settings.near, &settings.dates).into_iter().enumerate();
    for (column, near) in columns.filter_map(|(column, near)| Some((column, near?))) {
        let cells = records.cells().into_iter().skip(column).step_by(records.columns());
        let filled: Vec<&str> = cells.filter(|cell| !normalise(cell).is_empty()).collect();
        let read: Vec<(f64, i64)> = filled.iter().filter_map(|cell| near.read(cell)).collect();
        let (kind, number) = (if near.dates { "dates" } else { "numbers" }, column + 1);
        if 2 * read.len() < filled.len() {
            warnings.push(format!(
                "{} of {} cells of key column {number} are no {kind} (or none that `linker.near` can tell apart) and are compared by their \
                 letters",
                filled.len() - read.len(),
                filled.len()
            ));
        }
        let differ = read.windows(2).any(|two| two[0].0.to_bits() != two[1].0.to_bits());
        if differ && read.windows(2).all(|two| two[0].1 == two[1].1) {
            warnings.push(format!(
                "all {kind} of key column {number} are the same for `linker.near`, which is {}: it is too large",
                near.reach
            ));
        }
    }
    warnings
}

/// Refuses distances of another number than the columns.
pub(super) fn fits(near: &[f64], fields: usize) -> Result<(), LinkError> {
    if !near.is_empty() && near.len() != fields {
        return Err(crate::wrong_length("near", near.len(), fields));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
