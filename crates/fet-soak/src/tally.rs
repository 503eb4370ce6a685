//! Counts cases and faults by area, and lays them out as a table.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::ASCII_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::case::{End, Kind, Verdict};

/// Counts of one area.
#[derive(Debug, Clone, Default)]
struct Row {
    cases: usize,
    equal: usize,
    refused: usize,
    faults: BTreeMap<Kind, usize>,
}

impl Row {
    fn add(&mut self, verdict: &Verdict) {
        self.cases += 1;
        if verdict.faults.is_empty() {
            match verdict.end {
                End::Equal => self.equal += 1,
                End::Refused => self.refused += 1,
            }
        }
        // A kind of fault is counted once for a case.
        let kinds: BTreeSet<Kind> = verdict.faults.iter().map(|fault| fault.kind).collect();
        for kind in kinds {
            *self.faults.entry(kind).or_default() += 1;
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let counts = [self.cases, self.equal, self.refused];
        let faults = Kind::ALL.map(|kind| self.faults.get(&kind).copied().unwrap_or(0));
        let figures = counts.into_iter().chain(faults).map(|count| count.to_string());
        std::iter::once(name.to_string()).chain(figures).collect()
    }
}

/// Counts by area, in the order in which areas came.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    areas: Vec<(&'static str, Row)>,
    total: Row,
}

impl Tally {
    /// Adds a case.
    pub(crate) fn add(&mut self, area: &'static str, verdict: &Verdict) {
        self.total.add(verdict);
        match self.areas.iter_mut().find(|(name, _)| *name == area) {
            Some((_, row)) => row.add(verdict),
            None => {
                let mut row = Row::default();
                row.add(verdict);
                self.areas.push((area, row));
            }
        }
    }

    /// How many cases there were.
    pub fn cases(&self) -> usize {
        self.total.cases
    }

    /// How many of them were without a fault.
    pub fn good(&self) -> usize {
        self.total.equal + self.total.refused
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        let names = ["area", "cases", "equal", "refused as\nis right"].map(str::to_string);
        table.set_header(names.into_iter().chain(Kind::ALL.map(|kind| kind.name().replace(' ', "\n"))));
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
