//! Labels: a column of numbers, or of the names of classes.

use fet_core::data::{DataError, Task};
use fet_tables::{MISSING_CODE, Values};

use crate::read::table::FileTable;

/// Takes the label's column out of the table: one label for each record, and the names of classes where they have names.
pub(super) fn labels(
    table: &mut FileTable,
    label: &str,
    task: Task,
) -> Result<(Vec<f32>, Vec<String>), DataError> {
    if label.is_empty() {
        return Err(DataError::new(
            "`data.label`",
            "must name the primary's column with the label; it is \"\"",
        ));
    }
    let column = table.take(label)?;
    let missing = |row: usize| {
        Err(DataError::new(
            table.place(row, label),
            "must have a label; it is missing (leave out records without one)",
        ))
    };
    match column.values {
        Values::Number(values) => match values.iter().position(|value| value.is_nan()) {
            Some(row) => missing(row),
            None => Ok((values.into_iter().map(|value| value as f32).collect(), Vec::new())),
        },
        Values::Category { codes, names } if task != Task::Regression => {
            if task == Task::Binary && names.len() != 2 {
                let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
                let problem = format!(
                    "column `{label}` must have 2 classes for this task; it has {}: {}{}",
                    names.len(),
                    shown.join(", "),
                    if names.len() > shown.len() { ", ..." } else { "" }
                );
                return Err(table.error(problem));
            }
            match codes.iter().position(|code| *code == MISSING_CODE) {
                Some(row) => missing(row),
                None => Ok((codes.into_iter().map(|code| code as f32).collect(), names)),
            }
        }
        values => {
            let wanted = match task {
                Task::Regression => "numbers",
                Task::Binary => "0 and 1, or the names of two classes",
                Task::Multiclass => "class numbers, or the names of classes",
            };
            let problem =
                format!("column `{label}` must hold {wanted} for this task; it is a {}", values.kind());
            Err(table.error(problem))
        }
    }
}
