//! Units of the amounts of a column.

use std::collections::BTreeMap;

/// Number of amounts with each unit, "" for none.
#[derive(Clone, Debug, Default)]
pub(super) struct Units(BTreeMap<String, u64>);

impl Units {
    pub(super) fn look(&mut self, unit: &str) {
        match self.0.get_mut(unit) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(unit.to_string(), 1)),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (unit, count) in &other.0 {
            *self.0.entry(unit.clone()).or_default() += count;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if there are several units.
    pub(super) fn differ(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the only unit.
    pub(super) fn only(&self) -> Option<&str> {
        self.0.keys().next().filter(|_| !self.differ()).map(String::as_str)
    }

    /// Units by name: "with no unit", "with the unit %".
    pub(super) fn named(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |unit: &str| {
            if unit.is_empty() { NO_UNIT.to_string() } else { format!("with the unit {unit}") }
        };
        self.0.iter().map(move |(unit, count)| (name(unit), *count))
    }

    pub(super) fn notes(&self, note: &mut impl FnMut(&str)) {
        if self.differ() {
            let counted: Vec<String> = self.named().map(|(name, count)| format!("{count} {name}")).collect();
            note(&format!(
                "amounts with different units ({}) are read as if they had the same unit; write them in one unit",
                counted.join(", ")
            ));
        }
    }
}

/// Style of an amount without a unit.
pub(crate) const NO_UNIT: &str = "with no unit";
