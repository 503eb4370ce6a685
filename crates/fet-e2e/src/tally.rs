//! Table of cases, ends and faults by area.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::ASCII_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::case::{CaseEnd, FaultKind};

/// Counts of one area.
#[derive(Debug, Clone, Default)]
struct Row {
    cases: u64,
    good: u64,
    /// Counts by column title.
    counts: BTreeMap<&'static str, u64>,
}

/// Counts by area, in the order of their addition.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultTally {
    areas: Vec<(&'static str, Row)>,
    total: Row,
}

impl FaultTally {
    /// Adds `cases` cases with the kinds of their faults, each counted once. Cases without faults count under
    /// their end.
    pub(crate) fn add(
        &mut self,
        area: &'static str,
        cases: u64,
        end: Option<CaseEnd>,
        faults: impl IntoIterator<Item = FaultKind>,
    ) {
        let faults: BTreeSet<FaultKind> = faults.into_iter().collect();
        let place = self.areas.iter().position(|(name, _)| *name == area).unwrap_or_else(|| {
            self.areas.push((area, Row::default()));
            self.areas.len() - 1
        });
        for row in [&mut self.areas[place].1, &mut self.total] {
            row.cases += cases;
            row.good += if faults.is_empty() { cases } else { 0 };
            let end = end.filter(|_| faults.is_empty()).map(CaseEnd::name);
            for title in faults.iter().map(|kind| kind.name()).chain(end) {
                *row.counts.entry(title).or_default() += cases;
            }
        }
    }

    /// Returns the number of cases.
    pub(crate) fn cases(&self) -> u64 {
        self.total.cases
    }

    /// Returns the number of cases without a fault.
    pub(crate) fn good(&self) -> u64 {
        self.total.good
    }

    /// Formats the table. `area` is the title of the first column. Columns without a count are left out.
    pub(crate) fn table(&self, area: &str) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        let titles = CaseEnd::ALL.map(CaseEnd::name).into_iter().chain(FaultKind::ALL.map(FaultKind::name));
        let titles: Vec<_> =
            titles.filter(|title| self.total.counts.get(title).is_some_and(|&count| count > 0)).collect();
        // A title with line breaks stays unchanged.
        let lines =
            |title: &&str| if title.contains('\n') { (*title).into() } else { title.replace(' ', "\n") };
        table.set_header([area.into(), "cases".into()].into_iter().chain(titles.iter().map(lines)));
        for (name, row) in self.areas.iter().map(|(name, row)| (*name, row)).chain([("all", &self.total)]) {
            let counts = titles.iter().map(|title| row.counts.get(title).copied().unwrap_or(0));
            let figures = [row.cases].into_iter().chain(counts).map(|count| count.to_string());
            table.add_row([name.to_string()].into_iter().chain(figures));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_kind_of_fault_once_per_case_and_an_end_only_without_faults() {
        let mut tally = FaultTally::default();
        tally.add("one", 1, Some(CaseEnd::Equal), []);
        tally.add("two", 1, Some(CaseEnd::Equal), [FaultKind::Panic, FaultKind::Panic]);
        tally.add("one", 1, None, [FaultKind::Panic, FaultKind::WrongCode]);
        assert_eq!((tally.cases(), tally.good()), (3, 1));
        let table = tally.table("area");
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        for row in [["one", "2", "1", "1", "1"], ["two", "1", "0", "1", "0"], ["all", "3", "1", "2", "1"]] {
            assert!(rows.contains(&row.to_vec()), "{row:?}: {table}");
        }
    }
}
