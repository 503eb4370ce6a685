//! Counts cases and faults by area, and lays them out as a table.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::ASCII_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::judge::{Fault, Kind};

/// Counts of one area.
#[derive(Debug, Clone, Default)]
struct Row {
    cases: usize,
    good: usize,
    faults: BTreeMap<Kind, usize>,
}

impl Row {
    fn add(&mut self, kinds: &BTreeSet<Kind>) {
        self.cases += 1;
        self.good += usize::from(kinds.is_empty());
        for kind in kinds {
            *self.faults.entry(*kind).or_default() += 1;
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let counts = Kind::ALL.map(|kind| self.faults.get(&kind).copied().unwrap_or(0).to_string());
        [name.to_string(), self.cases.to_string()].into_iter().chain(counts).collect()
    }
}

/// Counts by area, in the order in which areas came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    areas: Vec<(&'static str, Row)>,
    total: Row,
}

impl Tally {
    /// Adds a case; a kind of fault is counted once for it.
    pub(crate) fn add(&mut self, area: &'static str, faults: &[Fault]) {
        let kinds: BTreeSet<Kind> = faults.iter().map(|fault| fault.kind).collect();
        self.total.add(&kinds);
        match self.areas.iter_mut().find(|(name, _)| *name == area) {
            Some((_, row)) => row.add(&kinds),
            None => {
                let mut row = Row::default();
                row.add(&kinds);
                self.areas.push((area, row));
            }
        }
    }

    pub(crate) fn cases(&self) -> usize {
        self.total.cases
    }

    pub(crate) fn good(&self) -> usize {
        self.total.good
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        let names = Kind::ALL.map(|kind| kind.name().replace(' ', "\n"));
        table.set_header(["area".to_string(), "cases".to_string()].into_iter().chain(names));
        for (name, row) in &self.areas {
            table.add_row(row.cells(name));
        }
        table.add_row(self.total.cells("all"));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}
