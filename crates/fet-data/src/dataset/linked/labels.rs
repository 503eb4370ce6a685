//! Labels: a column of numbers or of class names.

use fet_core::data::{DataError, Task};
use fet_tables::{MISSING_CODE, Values};

use crate::read::table::FileTable;

/// Largest number that can be predicted: the square of an error must be finite.
pub const LARGEST_LABEL: f64 = 1e100;
/// Maximum number of classes.
const MOST_CLASSES: usize = 10_000;

/// Removes the label column from the table. Returns one label per record, and the names of classes if they
/// have names.
pub(super) fn labels(
    table: &mut FileTable,
    label: &str,
    task: Task,
) -> Result<(Vec<f64>, Vec<String>), DataError> {
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
            "must have a label; it is missing (leave out records without a label; if a mark such as NA is a value of this column, declare the \
             column in `columns` as \"category\", or set other marks in `missing`)",
        ))
    };
    match column.values {
        Values::Number(values) => match values.iter().position(|value| value.is_nan()) {
            Some(row) => missing(row),
            None if task == Task::Regression => {
                let beyond = |value: &f64| value.abs() > LARGEST_LABEL;
                match values.iter().position(beyond) {
                    Some(row) => {
                        let problem = format!("must be within ±{LARGEST_LABEL:e}; it is {:e}", values[row]);
                        Err(DataError::new(table.place(row, label), problem))
                    }
                    None => Ok((values, Vec::new())),
                }
            }
            None => classes_of_numbers(table, label, task, values),
        },
        Values::Category { codes, names } if task != Task::Regression => {
            if let Some(row) = codes.iter().position(|code| *code == MISSING_CODE) {
                return missing(row);
            }
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
            Ok((codes.into_iter().map(f64::from).collect(), names))
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

/// Converts numbers to classes. The numbers 0, 1, 2, ... without a gap are class indices. Other numbers are
/// class names in ascending order.
fn classes_of_numbers(
    table: &FileTable,
    label: &str,
    task: Task,
    values: Vec<f64>,
) -> Result<(Vec<f64>, Vec<String>), DataError> {
    let mut known: Vec<f64> = values.clone();
    known.sort_unstable_by(f64::total_cmp);
    known.dedup();
    let wanted = if task == Task::Binary { "2 classes" } else { "at most 10000 classes" };
    let fits = if task == Task::Binary { known.len() == 2 } else { known.len() <= MOST_CLASSES };
    // A binary label with the single value 0 is accepted as class 0. The check below refuses other single values.
    let plain = known.iter().enumerate().all(|(place, value)| *value == place as f64);
    if plain && known.len() <= MOST_CLASSES && (known.len() <= 2 || task == Task::Multiclass) {
        return Ok((values, Vec::new()));
    }
    if !fits {
        let shown: Vec<String> = known.iter().take(5).map(f64::to_string).collect();
        let problem = format!(
            "column `{label}` must have {wanted} for this task; it has {} values: {}{}",
            known.len(),
            shown.join(", "),
            if known.len() > shown.len() { ", ..." } else { "" }
        );
        return Err(table.error(problem));
    }
    let place = |value: f64| known.partition_point(|known| *known < value) as f64;
    let codes = values.into_iter().map(place).collect();
    Ok((codes, known.iter().map(f64::to_string).collect()))
}
