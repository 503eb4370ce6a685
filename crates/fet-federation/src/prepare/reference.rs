//! Summary of the primary's training rows, stored with its model, to recognise new rows of another kind.

use fet_core::data::{Column, Columns, Features, Keys, Matrix, PartyTable, Task, TextTable};
use fet_core::objective::Objective;
use fet_eval::drift::{Cells, Shift, Summary};
use fet_tables::{MISSING_CODE, MISSING_DATE, Values};
use serde::{Deserialize, Serialize};

use super::scaler::Value;

/// Maximum number of rows that a summary of columns uses: the margin of a distance is then about 0.014.
const MOST_ROWS: usize = 10_000;

/// Summary of the primary's training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Number of training rows.
    pub rows: usize,
    /// Period of the training rows; `None` without dates.
    pub period: Option<Period>,
    columns: Vec<Reduced>,
    /// Predictions for the validation and test rows.
    predictions: Option<Summary>,
}

/// Summary of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reduced {
    name: String,
    is_date: bool,
    summary: Summary,
}

/// Period of some rows by a column of dates or numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// Name of the column.
    pub column: String,
    /// Earliest value.
    pub from: String,
    /// Latest value.
    pub to: String,
}

/// Comparison of a column or of the predictions with the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Name in a warning: "column `size`", "key column 1", "the predictions".
    pub name: String,
    /// Distance of the new values.
    pub shift: Shift,
    /// Medians in the reference and in the new rows, as text; `None` for categories, or without values.
    pub medians: Option<[String; 2]>,
}

impl Period {
    /// Returns the period of these rows, or `None` if the column has no date or number in them.
    pub fn new(name: &str, values: &Values, rows: &[usize]) -> Option<Self> {
        let kept: Vec<usize> = match values {
            Values::Number(all) => rows.iter().copied().filter(|&row| !all[row].is_nan()).collect(),
            Values::Date(all) => rows.iter().copied().filter(|&row| all[row] != MISSING_DATE).collect(),
            Values::Category { .. } | Values::Text(_) => Vec::new(),
        };
        let before = |a: usize, b: usize| match values {
            Values::Number(all) => all[a] < all[b],
            Values::Date(all) => all[a] < all[b],
            Values::Category { .. } | Values::Text(_) => false,
        };
        let first = kept.iter().copied().reduce(|a, b| if before(b, a) { b } else { a })?;
        let last = kept.iter().copied().reduce(|a, b| if before(a, b) { b } else { a })?;
        let ends = values.select(&[first, last]).texts();
        Some(Self { column: name.to_string(), from: ends.first()?.clone(), to: ends.get(1)?.clone() })
    }
}

impl Reference {
    /// Summarises the features of these rows, and the keys if models see them. The period is that of the first
    /// feature with dates. The summary of columns uses at most 10,000 rows at equal distances.
    pub fn new(table: &PartyTable, rows: &[usize], key_inputs: bool) -> Self {
        let mut columns = Vec::new();
        let sampled: Vec<usize> = match rows.len() {
            few if few <= MOST_ROWS => rows.to_vec(),
            many => (0..MOST_ROWS).map(|at| rows[at * many / MOST_ROWS]).collect(),
        };
        let mut summarise = |name, is_date, cells: Cells<'_>| {
            columns.push(Reduced { name, is_date, summary: Summary::new(&cells) });
        };
        if key_inputs {
            each_key(table, &sampled, &mut summarise);
        }
        each_feature(table, &sampled, &mut summarise);
        let dates =
            typed(table).into_iter().flatten().find(|column| matches!(column.values, Values::Date(_)));
        let period = dates.and_then(|column| Period::new(&column.name, &column.values, rows));
        Self { rows: rows.len(), period, columns, predictions: None }
    }

    /// Returns the summary with the period of the split by time, if there is one.
    #[must_use]
    pub fn with_period(mut self, period: Option<Period>) -> Self {
        self.period = period.or(self.period);
        self
    }

    /// Returns the summary with these predictions, as [`Objective::predictions`] gives them.
    #[must_use]
    pub fn with_predictions(mut self, objective: Objective, values: &[f64]) -> Self {
        self.predictions =
            (!values.is_empty()).then(|| Summary::new(&predicted(objective, values).borrowed()));
        self
    }

    /// Compares the features of new rows, and their keys if models see them.
    pub fn compare(&self, table: &PartyTable, key_inputs: bool) -> Vec<Compared> {
        let rows: Vec<usize> = (0..table.rows()).collect();
        let mut found = Vec::new();
        let mut compare = |name: String, _: bool, cells: Cells<'_>| {
            let Some(reduced) = self.columns.iter().find(|reduced| reduced.name == name) else { return };
            if let Some(shift) = reduced.summary.compare(&cells) {
                let text = |value: f64| shown(value, reduced.is_date);
                found.push(Compared { name, shift, medians: shift.medians.map(|both| both.map(text)) });
            }
        };
        if key_inputs {
            each_key(table, &rows, &mut compare);
        }
        each_feature(table, &rows, &mut compare);
        found
    }

    /// Compares new predictions.
    pub fn compare_predictions(&self, objective: Objective, values: &[f64]) -> Option<Compared> {
        let shift = self.predictions.as_ref()?.compare(&predicted(objective, values).borrowed())?;
        let medians = shift.medians.map(|both| both.map(|value| shown(value, false)));
        Some(Compared { name: "the predictions".to_string(), shift, medians })
    }
}

/// Predictions to compare.
enum Predicted {
    Numbers(Vec<f64>),
    Classes(Vec<String>),
}

impl Predicted {
    fn borrowed(&self) -> Cells<'_> {
        match self {
            Self::Numbers(values) => Cells::Numbers(values.clone()),
            Self::Classes(names) => Cells::Categories(names.iter().map(String::as_str).collect()),
        }
    }
}

/// Returns numbers, probabilities of class 1, or the most probable of several classes.
fn predicted(objective: Objective, values: &[f64]) -> Predicted {
    match objective.task {
        Task::Regression | Task::Binary => Predicted::Numbers(values.to_vec()),
        Task::Multiclass => {
            let best =
                |row: &[f64]| (0..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best });
            let rows = values.chunks_exact(objective.outputs);
            Predicted::Classes(rows.map(|row| best(row).to_string()).collect())
        }
    }
}

fn typed(table: &PartyTable) -> Option<&[Column]> {
    match &table.features {
        Features::Columns(Columns { table, .. }) => Some(&table.columns),
        Features::Numbers(_) => None,
    }
}

/// Visits every key column with its name, false because it holds no dates, and the cells of these rows. A text
/// counts by its length in characters.
fn each_key(table: &PartyTable, rows: &[usize], visit: &mut dyn FnMut(String, bool, Cells<'_>)) {
    match &table.keys {
        Keys::Numbers(keys) => {
            numbers(keys, rows, &mut |at, cells| visit(format!("key column {at}"), false, cells))
        }
        Keys::Text(keys) => text_keys(keys, rows, visit),
        Keys::Sealed(_) => {}
    }
}

/// Visits every feature column with its name, true for dates, and the cells of these rows. A text counts by its
/// length in characters.
fn each_feature(table: &PartyTable, rows: &[usize], visit: &mut dyn FnMut(String, bool, Cells<'_>)) {
    match &table.features {
        Features::Numbers(all) => {
            numbers(all, rows, &mut |at, cells| visit(format!("column {at}"), false, cells));
        }
        Features::Columns(columns) => {
            for column in &columns.table.columns {
                let (of, is_date, cells) = typed_cells(column, rows);
                visit(format!("{of}column `{}`", column.name), is_date, cells);
            }
        }
    }
}

fn numbers<T: Value>(table: &Matrix<T>, rows: &[usize], visit: &mut dyn FnMut(usize, Cells<'_>)) {
    for column in 0..table.columns() {
        let values = rows.iter().map(|&row| table.row(row)[column].into()).collect();
        visit(column + 1, Cells::Numbers(values));
    }
}

fn text_keys(keys: &TextTable, rows: &[usize], visit: &mut dyn FnMut(String, bool, Cells<'_>)) {
    let (cells, columns) = (keys.cells(), keys.columns());
    for column in 0..columns {
        let length = |&row: &usize| {
            let text = cells[row * columns + column];
            if text.is_empty() { f64::NAN } else { text.chars().count() as f64 }
        };
        let name = format!("length of key column {}", column + 1);
        visit(name, false, Cells::Numbers(rows.iter().map(length).collect()));
    }
}

/// Returns a prefix of the column's name, true for dates, and the cells.
fn typed_cells<'a>(column: &'a Column, rows: &[usize]) -> (&'static str, bool, Cells<'a>) {
    match &column.values {
        Values::Number(values) => ("", false, Cells::Numbers(rows.iter().map(|&row| values[row]).collect())),
        Values::Date(values) => {
            let date = |&row: &usize| if values[row] == MISSING_DATE { f64::NAN } else { values[row] as f64 };
            ("", true, Cells::Numbers(rows.iter().map(date).collect()))
        }
        Values::Category { codes, names } => {
            let name = |&row: &usize| match codes[row] {
                MISSING_CODE => "",
                code => names.get(code as usize).map_or("", String::as_str),
            };
            ("", false, Cells::Categories(rows.iter().map(name).collect()))
        }
        Values::Text(texts) => {
            let length = |&row: &usize| texts.get(row).map_or(f64::NAN, |text| text.chars().count() as f64);
            ("length of ", false, Cells::Numbers(rows.iter().map(length).collect()))
        }
    }
}

/// Returns a date as text, or a number with four digits unless it is whole.
fn shown(value: f64, is_date: bool) -> String {
    let value = match value.fract() == 0.0 {
        true => value,
        false => format!("{value:.3e}").parse().unwrap_or(value),
    };
    let values = if is_date { Values::Date(vec![value as i64]) } else { Values::Number(vec![value]) };
    values.texts().swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_eval::drift::moved;
    use fet_tables::Table;
    use fet_tables::prepare::Rules;

    const DAY: i64 = 86_400_000_000;

    fn table(rows: usize, later: i64, raised: f64) -> PartyTable {
        let values = |value: &dyn Fn(usize) -> f64| (0..rows).map(value).collect::<Vec<f64>>();
        let column = |name: &str, values| Column { name: name.into(), values };
        let carriers: Vec<u32> = (0..rows).map(|row| (row % 2) as u32).collect();
        let columns = vec![
            column("size", Values::Number(values(&|row| raised + (row % 10) as f64))),
            column("day", Values::Date((0..rows).map(|row| (later + (row % 100) as i64) * DAY).collect())),
            column("carrier", Values::Category { codes: carriers, names: vec!["a".into(), "b".into()] }),
        ];
        PartyTable {
            name: "primary".into(),
            keys: Keys::Numbers(Matrix::new(1, values(&|row| (row % 7) as f64))),
            features: Features::Columns(Columns {
                table: Table::new(columns).expect("columns"),
                rules: Rules::default(),
            }),
            bounds: None,
        }
    }

    #[test]
    fn names_the_columns_that_moved_and_the_period() {
        let training: Vec<usize> = (0..500).collect();
        let reference = Reference::new(&table(600, 0, 0.0), &training, true);
        let period = reference.period.as_ref().expect("dates");
        assert_eq!((period.column.as_str(), period.from.as_str()), ("day", "1970-01-01"));
        assert_eq!(period.to, "1970-04-10");
        let names = |table: &PartyTable| -> Vec<String> {
            let found = reference.compare(table, true);
            assert_eq!(found.len(), 4);
            let shifts: Vec<Shift> = found.iter().map(|one| one.shift).collect();
            moved(&shifts)
                .into_iter()
                .map(|place| format!("{} {:?}", found[place].name, found[place].medians))
                .collect()
        };
        assert!(names(&table(300, 0, 0.0)).is_empty());
        assert_eq!(
            names(&table(300, 80, 3.0)),
            ["column `day` Some([\"1970-02-19\", \"1970-05-11\"])", "column `size` Some([\"4\", \"8\"])",]
        );
        let unseen = reference.compare(&table(300, 0, 0.0), false);
        assert!(unseen.len() == 3 && unseen.iter().all(|one| !one.name.contains("key")), "{unseen:?}");
        assert_eq!(Reference::new(&table(600, 0, 0.0), &training, false).columns.len(), 3);
        let bytes = serde_json::to_string(&reference).expect("plain data");
        assert_eq!(serde_json::from_str::<Reference>(&bytes).expect("a summary"), reference);
    }
}
