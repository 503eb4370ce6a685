//! Predictions as a table: the predicted value or class of each row, its probabilities and its bounds.

use std::path::Path;

use anyhow::Context;
use fet_core::data::{Column, Task};
use fet_core::objective::Objective;
use fet_eval::conformal::Conformal;
use fet_federation::trainer::Trainer;
use fet_tables::{Table, Values};

/// Column with the row number in the input file, counted from 0 without the header, as links count rows.
pub(crate) const ROW: &str = "row";

/// Mark of the predicted class in place of an empty set: no class is as probable as it usually is for rows of
/// that class.
pub(crate) const ATYPICAL: &str = " (atypical)";

/// Sign between the classes of a set.
const SEPARATOR: &str = " | ";

/// Returns the name of a class as a member of a set. A name that could be read as several, or as [`ATYPICAL`], is in
/// double quotes, and quotation marks in it are doubled.
pub(crate) fn member(name: &str) -> String {
    let is_ambiguous = name.contains('|') || name.starts_with('"') || name.ends_with(ATYPICAL);
    if is_ambiguous { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}

/// Returns the names of a set in one cell.
pub(crate) fn set<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(|name| member(name)).collect::<Vec<_>>().join(SEPARATOR)
}

/// Model outputs for some rows.
pub(crate) struct Predicted<'a> {
    pub(crate) objective: Objective,
    /// Names of the classes; empty if classes are numbers.
    pub(crate) class_names: &'a [String],
    pub(crate) conformal: Option<&'a Conformal>,
    /// [`fet_core::objective::LabelScale::predictions`] for the rows, one row after another.
    pub(crate) values: &'a [f64],
}

impl Predicted<'_> {
    /// Returns the columns of the predictions.
    ///
    /// Regression: `prediction`, `lower` and `upper`. Classification: `prediction`, one `probability of ..`
    /// per class, and `likely`, the [`set`] of classes that contains the true class with the chosen coverage. In
    /// place of an empty set it has the predicted class and [`ATYPICAL`].
    pub(crate) fn columns(&self) -> Vec<Column> {
        match self.objective.task {
            Task::Regression => self.numbers(),
            Task::Binary | Task::Multiclass => self.classes(),
        }
    }

    fn numbers(&self) -> Vec<Column> {
        let mut columns = vec![number("prediction", self.values.to_vec())];
        if let Some(conformal) = self.conformal.filter(|conformal| conformal.is_bounded()) {
            let ends = self.values.iter().map(|&value| conformal.interval(value));
            columns.push(number("lower", ends.clone().map(|[lower, _]| lower).collect()));
            columns.push(number("upper", ends.map(|[_, upper]| upper).collect()));
        }
        columns
    }

    fn classes(&self) -> Vec<Column> {
        let binary = self.objective.task == Task::Binary;
        let classes = if binary { 2 } else { self.objective.outputs };
        let name = |class: usize| self.class_names.get(class).cloned().unwrap_or_else(|| class.to_string());
        let rows: Vec<Vec<f64>> = self
            .values
            .chunks_exact(self.objective.outputs)
            .map(|row| if binary { vec![1.0 - row[0], row[0]] } else { row.to_vec() })
            .collect();
        // Metrics use the same rule: class 1 of two from 0.5 on, else the first of the most probable classes.
        let predicted = |row: &Vec<f64>| match binary {
            true => usize::from(row[1] >= 0.5),
            false => (0..classes).fold(0, |best, class| if row[class] > row[best] { class } else { best }),
        };
        let mut columns = vec![text("prediction", rows.iter().map(|row| name(predicted(row))))];
        for class in 0..classes {
            let values = rows.iter().map(|row| row[class]).collect();
            columns.push(number(&format!("probability of {}", name(class)), values));
        }
        if let Some(conformal) = self.conformal.filter(|conformal| conformal.is_bounded()) {
            let likely = |row: &Vec<f64>| match conformal.classes(row) {
                none if none.is_empty() => format!("{}{ATYPICAL}", member(&name(predicted(row)))),
                classes => set(&classes.into_iter().map(name).collect::<Vec<_>>()),
            };
            columns.push(text("likely", rows.iter().map(likely)));
        }
        columns
    }
}

pub(crate) fn number(name: &str, values: Vec<f64>) -> Column {
    Column { name: name.to_string(), values: Values::Number(values) }
}

pub(crate) fn text(name: &str, values: impl Iterator<Item = String>) -> Column {
    let all: Vec<String> = values.collect();
    Column {
        name: name.to_string(),
        values: Values::Text(all.iter().map(|text| Some(text.as_str())).collect()),
    }
}

/// Writes the best model's predictions for the validation and test rows.
pub(crate) fn write(trainer: &Trainer, conformal: Option<&Conformal>, path: &Path) -> anyhow::Result<()> {
    let parts = trainer.evaluated().context("no epoch had a finite metric")?;
    let class_names = trainer.class_names();
    let values: Vec<f64> = parts.iter().flat_map(|part| part.values.iter().copied()).collect();
    let truth: Vec<f64> = parts.iter().flat_map(|part| part.truth.iter().copied()).collect();
    let rows = parts.iter().flat_map(|part| &part.rows);
    let names = ["validation", "test"].into_iter().zip(&parts);
    let names = names.flat_map(|(name, part)| std::iter::repeat_n(name.to_string(), part.rows.len()));
    let mut columns =
        vec![number(ROW, rows.map(|&row| trainer.file_row(row) as f64).collect()), text("part", names)];
    columns.push(if trainer.objective().task == Task::Regression {
        number("label", truth)
    } else {
        let name = |class: &f64| {
            class_names.get(*class as usize).cloned().unwrap_or_else(|| (*class as usize).to_string())
        };
        text("label", truth.iter().map(name))
    });
    let predicted = Predicted { objective: trainer.objective(), class_names, conformal, values: &values };
    columns.extend(predicted.columns());
    Ok(fet_tables::write(path, &table(columns)?)?)
}

/// Writes a table of predictions to a file, or as CSV to standard output.
pub(crate) fn write_to(out: &Path, table: &Table) -> anyhow::Result<()> {
    if out != Path::new("-") {
        return Ok(fet_tables::write(out, table)?);
    }
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, table)?;
    Ok(fet_io::answer(&String::from_utf8_lossy(&bytes))?)
}

/// Returns a table with these columns.
pub(crate) fn table(columns: Vec<Column>) -> Result<Table, fet_tables::TableError> {
    Table::new(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a cell into names, as a reader does: a name in double quotes ends at a quotation mark without a second one.
    fn members(cell: &str) -> Vec<String> {
        let (mut names, mut rest) = (Vec::new(), cell);
        loop {
            let end = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let mut marks = quoted.char_indices().filter(|(_, sign)| *sign == '"').map(|(at, _)| at);
                    let mut end = marks.next().expect("an end");
                    while quoted[end + 1..].starts_with('"') {
                        marks.next();
                        end = marks.next().expect("an end");
                    }
                    end + 2
                }
                None => rest.find(SEPARATOR).unwrap_or(rest.len()),
            };
            let name = &rest[..end];
            let unquoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            names.push(unquoted.map_or_else(|| name.to_string(), |name| name.replace("\"\"", "\"")));
            match rest[end..].strip_prefix(SEPARATOR) {
                Some(more) => rest = more,
                None => return names,
            }
        }
    }

    #[test]
    fn a_set_of_classes_has_one_reading() {
        let names =
            ["a", "b", "a | b", "a |", "|", "5\" pipe", "\"a\" | \"b\"", "\"", "x (atypical)", "no. 1"];
        for first in names {
            for second in names {
                let both = [first.to_string(), second.to_string()];
                assert_eq!(members(&set(&both)), both, "{}", set(&both));
            }
        }
        assert_eq!(set(&["a".to_string(), "5\" pipe".to_string()]), "a | 5\" pipe", "plain names stay plain");
        assert_eq!(set(&["a | b".to_string(), "c".to_string()]), "\"a | b\" | c");
        assert_eq!(member("x (atypical)"), "\"x (atypical)\"");
    }
}
