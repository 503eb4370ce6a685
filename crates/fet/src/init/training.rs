//! Choice of the task, the metric, the split and the length of training.

use std::collections::{BTreeMap, HashSet};

use fet_data::LARGEST_LABEL;
use fet_eval::{Fractions, Split, SplitStrategy};
use fet_io::input::input;
use fet_tables::{ColumnSummary, MISSING_DATE, Values};

use super::keys::KeyChoice;
use super::tables::{PartyFile, words};

/// Share of a class below which accuracy says little.
const RARE: f64 = 0.3;
/// Maximum number of classes.
const MOST_CLASSES: usize = 100;
/// Minimum number of optimiser steps.
const STEPS: usize = 1_000;
/// Number of steps of an epoch that the batch size aims at.
const STEPS_PER_EPOCH: usize = 32;
const BATCHES: [usize; 5] = [16, 32, 64, 128, 256];
const EPOCHS: usize = 20;
/// Maximum number of epochs: a network has learned a few dozen rows by heart long before.
const MOST_EPOCHS: usize = 350;
/// Number of test rows of the rare class below which an interval is wide.
const FEW_POSITIVES: f64 = 30.0;

/// Kind of prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Regression,
    Binary,
    Multiclass,
}

impl Task {
    /// Returns the name in settings.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Binary => "binary",
            Self::Multiclass => "multiclass",
        }
    }
}

/// Label of an experiment.
pub(super) struct Label {
    pub(super) task: Task,
    /// Class of each row; empty for a regression.
    classes: Vec<String>,
    /// Rows of each class, the smallest first.
    counts: Vec<(String, usize)>,
}

impl Label {
    /// Finds the task of a label.
    pub(super) fn new(name: &str, primary: &PartyFile) -> anyhow::Result<Self> {
        let label = primary.find(name, "--label")?;
        let rows = primary.rows();
        let refuse = |problem: String| Err(input(format!("--label {name}: {problem}")));
        if label.missing > 0 {
            let missing = label.missing;
            return refuse(format!(
                "is missing in {missing} of {rows} rows; leave out the records without a label"
            ));
        }
        if let Some(Values::Number(numbers)) = primary.values(name)
            && let Some(row) = numbers.iter().position(|number| number.abs() > LARGEST_LABEL)
        {
            return refuse(format!(
                "is {:e} in row {row} (from 0); a label must be within ±{LARGEST_LABEL:e}",
                numbers[row]
            ));
        }
        let task = match (label.kind.as_str(), label.distinct) {
            (_, ..2) => return refuse("has the same value in every row".into()),
            (_, 2) => Task::Binary,
            ("number", _) => Task::Regression,
            ("date", _) => return refuse("is a date; name a number or a category".into()),
            (_, classes @ 3..=MOST_CLASSES) if 2 * classes <= rows => Task::Multiclass,
            _ => {
                let values = label.distinct;
                return refuse(format!(
                    "has {values} values in {rows} rows, too many for classes; name a number or a category"
                ));
            }
        };
        let classes = match (task, primary.values(name)) {
            (Task::Regression, _) | (_, None) => Vec::new(),
            (_, Some(values)) => values.texts(),
        };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for class in &classes {
            *counts.entry(class).or_insert(0) += 1;
        }
        let mut counts: Vec<(String, usize)> =
            counts.into_iter().map(|(class, count)| (class.to_string(), count)).collect();
        counts.sort_by_key(|(_, count)| *count);
        Ok(Self { task, classes, counts })
    }

    /// Returns true if every class is in the training rows, and two classes in every part.
    fn suits(&self, split: &Split) -> bool {
        let classes =
            |rows: &[usize]| rows.iter().map(|&row| &self.classes[row]).collect::<HashSet<_>>().len();
        self.task == Task::Regression
            || (classes(&split.train) == self.counts.len()
                && [&split.validation, &split.test].iter().all(|rows| classes(rows) >= 2))
    }
}

/// Metric of an experiment.
pub(super) struct MetricChoice {
    /// Name in settings.
    pub(super) metric: &'static str,
    /// True if all classes need the same total weight in the loss.
    pub(super) balanced: bool,
    pub(super) reason: String,
    pub(super) warnings: Vec<String>,
}

/// Chooses the metric by the balance of the classes.
pub(super) fn metric(label: &Label) -> MetricChoice {
    let rows = label.classes.len().max(1) as f64;
    let choice =
        |metric, balanced, reason: String| MetricChoice { metric, balanced, reason, warnings: Vec::new() };
    let (Some((rare, fewest)), Some((frequent, most))) = (label.counts.first(), label.counts.last()) else {
        return choice(
            "rmse",
            false,
            "Root of the mean squared error, in the label's unit; \"mae\" weighs outliers less".into(),
        );
    };
    let (fewest, most) = (*fewest as f64, *most as f64);
    let share = |count: f64| format!("{:.1} %", 100.0 * count / rows);
    // Without a row of the rare class among the validation rows, no area and no balanced accuracy is defined.
    let in_validation = fewest * Fractions::default().validation();
    let mut found = match label.task {
        _ if in_validation < 1.0 => choice(
            "log-loss",
            false,
            format!(
                "`{rare}` has too few rows for the validation rows to contain one, so only a loss over all rows is defined"
            ),
        ),
        Task::Binary if fewest < RARE * rows => choice(
            "auc-roc",
            false,
            format!(
                "`{rare}` has {} of the rows, so always predicting `{frequent}` has an accuracy of {}. The area under the ROC curve \
                 counts both classes; \"auc-pr\" looks at `{rare}` alone. It orders rows by probability, so class weights are not needed",
                share(fewest),
                share(most)
            ),
        ),
        Task::Multiclass if most > 0.5 * rows || fewest * (label.counts.len() as f64) < RARE * rows => {
            choice(
                "balanced-accuracy",
                true,
                format!(
                    "Classes have {} (`{rare}`) to {} (`{frequent}`) of the rows. Balanced accuracy counts every class equally",
                    share(fewest),
                    share(most)
                ),
            )
        }
        _ => choice(
            "accuracy",
            false,
            format!(
                "Classes have {} to {} of the rows, so accuracy is not misleading",
                share(fewest),
                share(most)
            ),
        ),
    };
    let in_test = fewest * Fractions::default().test();
    if in_test < FEW_POSITIVES {
        let in_test = in_test.round();
        let rows = if in_test == 1.0 { "row" } else { "rows" };
        found.warnings.push(format!(
            "the test will have about {in_test} {rows} of `{rare}`, so its scores are uncertain: compare methods over several seeds, or \
             set `split.folds`"
        ));
    }
    found
}

/// Split of an experiment.
pub(super) struct SplitChoice {
    /// Kind in settings.
    pub(super) kind: &'static str,
    /// Column of a split by time.
    pub(super) column: Option<String>,
    /// Number of training rows.
    pub(super) train: usize,
    pub(super) reasons: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Chooses the split: by time if the primary's table says when its records were made.
pub(super) fn split(label: &Label, primary: &PartyFile, keys: &KeyChoice) -> SplitChoice {
    let rows = primary.rows();
    let fractions = Fractions::default();
    let mut reasons = Vec::new();
    for column in times_of_records(primary) {
        // The split cannot use a key as a date if the key is compared as text.
        if keys.are_texts && keys.names.contains(&column.name) {
            continue;
        }
        let Some(times) = times(primary, &column.name) else { continue };
        let mut rng = fet_core::rng::stream(0, 0, fet_core::rng::Purpose::Split, 0);
        let name = &column.name;
        match Split::new(rows, &SplitStrategy::Time(&times), fractions, &mut rng) {
            Ok(split) if 2 * split.train.len() >= rows && label.suits(&split) => {
                let shares = format!(
                    "{} training, {} validation and {} test rows",
                    split.train.len(),
                    split.validation.len(),
                    split.test.len()
                );
                return SplitChoice {
                    kind: "time",
                    column: Some(name.clone()),
                    train: split.train.len(),
                    reasons: vec![
                        format!(
                            "The latest records by `{name}` are the test, because the model will predict later records than it \
                             learned from: {shares}"
                        ),
                        "If it will predict records of the same time, \"random\" (or \"stratified\") without `column` is right, \
                         and its scores are usually better"
                            .into(),
                    ],
                    warnings: Vec::new(),
                };
            }
            _ => reasons.push(format!(
                "Not by time: the latest records by `{name}` leave less than half of the rows, or not all classes, for training"
            )),
        }
    }
    let kind = if label.task == Task::Regression { "random" } else { "stratified" };
    reasons.push(if kind == "random" {
        "At random, since no column says when a record was made; also \"time\", \"group\", or your own column or file".into()
    } else {
        "Every class in the same proportion in all parts; also \"time\", \"group\", or your own column or file".into()
    });
    let mut warnings = Vec::new();
    for column in primary.repeated_identifiers() {
        let (name, distinct) = (&column.name, column.distinct);
        reasons.push(format!(
            "`{name}` repeats: {distinct} values in {rows} rows. For predictions about new values of `{name}`, set kind = \"group\" \
             and column = \"{name}\""
        ));
        warnings.push(format!(
            "`{name}` repeats ({distinct} values in {rows} rows): rows of one value may be in training and test; for predictions about \
             new values set `split.kind = \"group\"` and `split.column = \"{name}\"`"
        ));
    }
    let train = Split::new(
        rows,
        &SplitStrategy::Random,
        fractions,
        &mut fet_core::rng::stream(0, 0, fet_core::rng::Purpose::Split, 0),
    )
    .map_or(rows, |split| split.train.len());
    SplitChoice { kind, column: None, train, reasons, warnings }
}

/// Returns the columns that may contain the time of a record: dates first, then years.
fn times_of_records(primary: &PartyFile) -> Vec<&ColumnSummary> {
    const OTHER: [&str; 12] = [
        "birth",
        "birthday",
        "birthdate",
        "born",
        "dob",
        "built",
        "build",
        "founded",
        "opened",
        "remod",
        "renovated",
        "expires",
    ];
    const EVENTS: [&str; 6] = ["sold", "sale", "order", "ordered", "observed", "event"];
    let is_of_record = |column: &&ColumnSummary| {
        column.missing == 0 && !words(&column.name).iter().any(|word| OTHER.contains(&word.as_str()))
    };
    let is_year = |column: &&ColumnSummary| {
        let words = words(&column.name);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let in_range = |year: &f64| year.fract() == 0.0 && (1800.0..=2200.0).contains(year);
        has(&["year", "yr"])
            && (words.len() == 1 || has(&EVENTS))
            && column.kind == "number"
            && primary.numbers(&column.name).is_some_and(|numbers| numbers.iter().all(in_range))
    };
    let columns = || primary.summary.columns.iter().filter(is_of_record);
    columns().filter(|column| column.kind == "date").chain(columns().filter(is_year)).collect()
}

/// Returns a whole number for each row, in the order of time.
fn times(primary: &PartyFile, column: &str) -> Option<Vec<i64>> {
    match primary.values(column)? {
        Values::Date(dates) => dates.iter().all(|at| *at != MISSING_DATE).then(|| dates.clone()),
        Values::Number(years) => Some(years.iter().map(|year| *year as i64).collect()),
        _ => None,
    }
}

/// Length of training.
pub(super) struct Training {
    pub(super) batch_size: usize,
    pub(super) epochs: usize,
    pub(super) early_stopping: usize,
    pub(super) reason: String,
}

/// Chooses batch size and epochs by the number of training rows.
pub(super) fn training(rows: usize) -> Training {
    let batch_size =
        BATCHES.into_iter().rev().find(|size| size * STEPS_PER_EPOCH <= rows).unwrap_or(BATCHES[0]);
    let steps = rows.div_ceil(batch_size).max(1);
    let epochs = STEPS.div_ceil(steps).next_multiple_of(10).clamp(EPOCHS, MOST_EPOCHS);
    let early_stopping = (epochs / 3).max(5);
    let all = steps * epochs;
    let aim = match all >= STEPS {
        true => format!("at least {STEPS}"),
        false => format!("at most {MOST_EPOCHS} epochs, because a model soon memorises a few rows"),
    };
    let reason = format!(
        "{rows} training rows are {steps} {} an epoch, so {epochs} epochs are {all} steps ({aim}), unless {early_stopping} epochs \
         without a better one end them",
        if steps == 1 { "step" } else { "steps" }
    );
    Training { batch_size, epochs, early_stopping, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_for_a_thousand_steps() {
        for (rows, batch_size, epochs) in
            [(42, 16, 340), (350, 16, 50), (1_400, 32, 30), (4_200, 128, 40), (64_568, 256, 20)]
        {
            let found = training(rows);
            assert_eq!((found.batch_size, found.epochs), (batch_size, epochs), "{rows}");
            assert!(found.epochs * rows.div_ceil(found.batch_size) >= STEPS);
        }
    }

    #[test]
    fn limits_the_epochs_of_a_few_rows() {
        for rows in [1, 7, 16, 17, 32] {
            let found = training(rows);
            assert_eq!((found.epochs, found.early_stopping), (MOST_EPOCHS, MOST_EPOCHS / 3), "{rows}");
            assert!(found.reason.contains("at most 350 epochs"), "{}", found.reason);
        }
        assert!(training(7).reason.starts_with("7 training rows are 1 step an epoch"));
    }
}
