//! Table of cases and faults by area. The caller defines faults.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::ASCII_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

/// Counts of one area.
#[derive(Debug, Clone, Default)]
struct Row {
    cases: usize,
    good: usize,
    /// Counts by column title.
    counts: BTreeMap<&'static str, usize>,
}

impl Row {
    fn add(&mut self, end: Option<&'static str>, faults: &BTreeSet<&'static str>) {
        self.cases += 1;
        self.good += usize::from(faults.is_empty());
        for title in faults.iter().copied().chain(end.filter(|_| faults.is_empty())) {
            *self.counts.entry(title).or_default() += 1;
        }
    }
}

/// Counts by area, in the order in which areas were added.
#[derive(Debug, Clone)]
pub struct Tally {
    titles: Vec<&'static str>,
    areas: Vec<(&'static str, Row)>,
    total: Row,
}

impl Tally {
    /// Creates an empty tally with a column for each title, and a column for all cases.
    pub fn new(titles: impl IntoIterator<Item = &'static str>) -> Self {
        Self { titles: titles.into_iter().collect(), areas: Vec::new(), total: Row::default() }
    }

    /// Adds a case with the titles of its faults, each counted once. A case without faults counts under the
    /// title `end`.
    pub fn add(
        &mut self,
        area: &'static str,
        end: Option<&'static str>,
        faults: impl IntoIterator<Item = &'static str>,
    ) {
        let faults = faults.into_iter().collect();
        self.total.add(end, &faults);
        let place = self.areas.iter().position(|(name, _)| *name == area).unwrap_or_else(|| {
            self.areas.push((area, Row::default()));
            self.areas.len() - 1
        });
        self.areas[place].1.add(end, &faults);
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.total.cases
    }

    /// Returns the number of cases without a fault.
    pub fn good(&self) -> usize {
        self.total.good
    }

    /// Formats the table.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        // A title with line breaks stays unchanged.
        let lines =
            |title: &&str| if title.contains('\n') { (*title).into() } else { title.replace(' ', "\n") };
        table.set_header(["area".into(), "cases".into()].into_iter().chain(self.titles.iter().map(lines)));
        for (name, row) in self.areas.iter().map(|(name, row)| (*name, row)).chain([("all", &self.total)]) {
            let counts = self.titles.iter().map(|title| row.counts.get(title).copied().unwrap_or(0));
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
    fn a_kind_of_fault_counts_once_in_a_case_and_an_end_only_without_faults() {
        let mut tally = Tally::new(["equal", "panic", "wrong exit code"]);
        tally.add("one", Some("equal"), []);
        tally.add("two", Some("equal"), ["panic", "panic"]);
        tally.add("one", None, ["panic", "wrong exit code"]);
        assert_eq!((tally.cases(), tally.good()), (3, 1));
        let table = tally.table();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        for row in [["one", "2", "1", "1", "1"], ["two", "1", "0", "1", "0"], ["all", "3", "1", "2", "1"]] {
            assert!(rows.contains(&row.to_vec()), "{row:?}: {table}");
        }
    }
}
