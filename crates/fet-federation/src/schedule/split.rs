//! The training, validation and test rows: the primary's settings and table determine the split, and the
//! terms describe it to all parties.

use fet_core::data::Task;
use fet_core::data::{Column, DataError};
use fet_core::experiment::{SplitKind, SplitSettings};
use fet_core::message::Parts;
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_eval::split::{SplitPart, codes, folds, quantile_strata};
use fet_eval::{Fractions, SplitError, SplitStrategy};
use fet_tables::{MISSING_CODE, MISSING_DATE, Values};
use rand::seq::SliceRandom;

pub use fet_eval::Split;

/// Number of bins that stratify a numeric column.
const STRATA: usize = 10;

/// Data that a split may use.
pub struct SplitData<'a> {
    /// Kind of prediction.
    pub task: Task,
    /// One label for each record.
    pub labels: &'a [f64],
    /// Column named in the settings, or column of the split file; `None` without either.
    pub column: Option<&'a Column>,
}

/// Returns the split of `rows` records that `parts` describes.
pub fn split(parts: &Parts, rows: usize, seed: u64) -> Result<Split, DataError> {
    match parts {
        Parts::Random { validation, test } => {
            let fractions = Fractions::new(*validation, *test).map_err(|error| unusable(&error))?;
            let mut rng = stream(seed, 0, Purpose::Split, 0);
            Split::new(rows, &SplitStrategy::Random, fractions, &mut rng).map_err(|error| unusable(&error))
        }
        Parts::Given(parts) => {
            if parts.len() != rows {
                let problem =
                    format!("must name the split of each of {rows} records, but names {}", parts.len());
                return Err(DataError::new("split", problem));
            }
            let part = |part: &u8| match *part {
                Parts::TRAIN => Some(Some(SplitPart::Train)),
                Parts::VALIDATION => Some(Some(SplitPart::Validation)),
                Parts::TEST => Some(Some(SplitPart::Test)),
                Parts::ASIDE => Some(None),
                _ => None,
            };
            let parts: Option<Vec<Option<SplitPart>>> = parts.iter().map(part).collect();
            let parts =
                parts.ok_or_else(|| DataError::new("split", "must number splits by 0, 1, 2 and 3"))?;
            Split::given(&parts).map_err(|error| unusable(&error))
        }
    }
}

/// Returns the description of the settings' split that all parties receive.
pub fn parts(settings: &SplitSettings, known: &SplitData<'_>, seed: u64) -> Result<Parts, DataError> {
    let SplitSettings { kind, validation, test, training_share, folds: count, fold, tuning, .. } = *settings;
    if kind == SplitKind::Random && count == 0 && !tuning && training_share == 1.0 {
        return Ok(Parts::Random { validation, test });
    }
    let rows = known.labels.len();
    let fractions = settings.fractions().map_err(|violation| DataError::new("split", violation))?;
    let mut rng = stream(seed, 0, Purpose::Split, 0);
    let mut numbers: Vec<usize> = Vec::new();
    let (times, labels);
    let strategy = match kind {
        SplitKind::Random => SplitStrategy::Random,
        SplitKind::Stratified => {
            numbers = strata(known)?;
            SplitStrategy::Stratified(&numbers)
        }
        SplitKind::Time => {
            times = self::times(named(known)?)?;
            SplitStrategy::Time(&times)
        }
        SplitKind::Group => {
            let column = named(known)?;
            if column.values.missing() > 0 {
                let problem = format!(
                    "must have a value in every record for a split by group; {} have none and would form one group",
                    column.values.missing()
                );
                return Err(DataError::new(format!("`split.column` `{}`", column.name), problem));
            }
            numbers = groups(column)?;
            SplitStrategy::Group(&numbers)
        }
        SplitKind::Column | SplitKind::File => {
            labels = parse(named(known)?)?;
            SplitStrategy::Labels(&labels)
        }
    };
    let mut split = if count > 0 {
        let mut all = folds(rows, &strategy, count, fractions, &mut rng).map_err(|error| unusable(&error))?;
        all.swap_remove(fold)
    } else {
        Split::new(rows, &strategy, fractions, &mut rng).map_err(|error| unusable(&error))?
    };
    leave_out(&mut split, training_share, &mut rng);
    if !tuning {
        return parts_of(&split, rows);
    }
    // Stratified splits alternate the rows of each stratum. In the order of other kinds, the last rows are as
    // new to the first rows as the test rows are.
    let alternate = kind == SplitKind::Stratified;
    if alternate {
        split.validation.sort_by_key(|&row| numbers[row]);
    }
    parts_of(&split.for_tuning(alternate).map_err(|error| unusable(&error))?, rows)
}

/// Leaves out all training rows except a share. The rows of one share are among those of every larger share,
/// and at least one row remains.
fn leave_out(split: &mut Split, share: f64, rng: &mut ChaCha8Rng) {
    if share == 1.0 {
        return;
    }
    split.train.shuffle(rng);
    let kept = (share * split.train.len() as f64).round().max(1.0) as usize;
    split.aside.extend(split.train.drain(kept.min(split.train.len())..));
    split.train.sort_unstable();
}

/// Returns each record's split. In a cross-validation by time, the records after the test rows would belong
/// to no split: such a cross-validation is not available.
fn parts_of(split: &Split, rows: usize) -> Result<Parts, DataError> {
    let mut parts = vec![None; rows];
    for (part, rows) in [
        (Parts::TRAIN, &split.train),
        (Parts::VALIDATION, &split.validation),
        (Parts::TEST, &split.test),
        (Parts::ASIDE, &split.aside),
    ] {
        rows.iter().for_each(|&row| parts[row] = Some(part));
    }
    let parts: Option<Vec<u8>> = parts.into_iter().collect();
    parts.map(Parts::Given).ok_or_else(|| {
        let problem = "leaves records out of every split: a cross-validation by time is not available. \
            Use `split.kind = \"time\"` with other shares, or folds by group";
        DataError::new("split", problem)
    })
}

fn named<'a>(known: &SplitData<'a>) -> Result<&'a Column, DataError> {
    known.column.ok_or_else(|| DataError::new("split", "must name a column that the table has"))
}

fn strata(known: &SplitData<'_>) -> Result<Vec<usize>, DataError> {
    let bins = |numbers: &[f64]| quantile_strata(numbers, STRATA).map_err(|error| unusable(&error));
    match known.column {
        None if known.task == Task::Regression => bins(known.labels),
        None => Ok(known.labels.iter().map(|&label| label as usize).collect()),
        Some(Column { values: Values::Number(numbers), .. }) => bins(numbers),
        Some(column) => groups(column),
    }
}

/// Returns a number for each distinct value; missing values form a separate group.
fn groups(column: &Column) -> Result<Vec<usize>, DataError> {
    Ok(match &column.values {
        Values::Number(numbers) => {
            // Equal numbers have equal bits, except for the sign of zero.
            codes(&numbers.iter().map(|number| (number + 0.0).to_bits()).collect::<Vec<_>>())
        }
        Values::Category { codes: values, .. } => codes(values),
        Values::Date(dates) => codes(dates),
        Values::Text(texts) => codes(&texts.iter().collect::<Vec<_>>()),
    })
}

fn times(column: &Column) -> Result<Vec<i64>, DataError> {
    let refuse = |problem: &str| DataError::new(format!("`split.column` `{}`", column.name), problem);
    let all = match &column.values {
        Values::Date(dates) => dates.iter().map(|&date| (date != MISSING_DATE).then_some(date)).collect(),
        // Maps the numbers to 64-bit integers in the same order.
        Values::Number(numbers) => numbers
            .iter()
            .map(|&number| {
                let bits = (number + 0.0).to_bits() as i64;
                (!number.is_nan()).then_some(bits ^ (((bits >> 63) as u64) >> 1) as i64)
            })
            .collect::<Option<Vec<i64>>>(),
        _ => return Err(refuse("must hold dates or numbers for a split by time")),
    };
    all.ok_or_else(|| refuse("must have a value in every record for a split by time"))
}

fn parse(column: &Column) -> Result<Vec<SplitPart>, DataError> {
    let refuse = |problem: String| DataError::new(format!("column `{}`", column.name), problem);
    let Values::Category { codes, names } = &column.values else {
        let kind = column.values.kind();
        return Err(refuse(format!("must hold \"train\", \"validation\" and \"test\"; it is a {kind}")));
    };
    if let Some(row) = codes.iter().position(|code| *code == MISSING_CODE) {
        return Err(refuse(format!(
            "must name a split in every record; it is missing in row {row} (from 0)"
        )));
    }
    SplitPart::parse_column(codes.iter().map(|&code| names[code as usize].as_str()))
        .map_err(|error| refuse(error.to_string()))
}

fn unusable(error: &SplitError) -> DataError {
    DataError::new("split", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_by(settings: &str, column: Option<Values>) -> Result<Split, DataError> {
        let settings: SplitSettings = toml::from_str(settings).expect("settings");
        let column = column.map(|values| Column { name: "c".into(), values });
        let labels: Vec<f64> = (0..1_000).map(|row| (row % 4 == 0) as u8 as f64).collect();
        let known = SplitData { task: Task::Binary, labels: &labels, column: column.as_ref() };
        split(&parts(&settings, &known, 7)?, 1_000, 7)
    }

    #[test]
    fn the_usual_split_is_a_partition_and_follows_the_seed() {
        let usual = split_by("", None).expect("enough rows");
        assert_eq!((usual.train.len(), usual.validation.len(), usual.test.len()), (700, 100, 200));
        let mut all = [usual.train.clone(), usual.validation.clone(), usual.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
        assert_ne!(usual, split(&Parts::default(), 1_000, 8).expect("enough rows"));
        assert!(split(&Parts::default(), 9, 0).expect_err("too few").problem.contains("9 rows"));
    }

    #[test]
    fn a_split_goes_by_what_its_settings_name() {
        let stratified = split_by("kind = 'stratified'", None).expect("classes");
        let positive = |rows: &[usize]| rows.iter().filter(|row| *row % 4 == 0).count();
        assert_eq!(
            [&stratified.train, &stratified.validation, &stratified.test].map(|r| positive(r)),
            [175, 25, 50]
        );

        let late = (0..1_000).map(|row| f64::from(500 - row)).collect();
        let time = split_by("kind = 'time'\ncolumn = 'c'", Some(Values::Number(late))).expect("numbers");
        assert_eq!(
            (time.test.first(), time.test.last()),
            (Some(&0), Some(&199)),
            "the largest numbers are last"
        );
        assert_eq!((time.validation[0], time.validation[99]), (200, 299));

        let groups = (0..1_000).map(|row| f64::from(row / 20)).collect();
        let group = split_by("kind = 'group'\ncolumn = 'c'", Some(Values::Number(groups))).expect("groups");
        let of_rows =
            |rows: &[usize]| rows.iter().map(|row| row / 20).collect::<std::collections::BTreeSet<_>>();
        assert!(of_rows(&group.train).is_disjoint(&of_rows(&group.test)));
        assert!(of_rows(&group.train).is_disjoint(&of_rows(&group.validation)));

        let tested: Vec<usize> = (0..4)
            .flat_map(|fold| split_by(&format!("folds = 4\nfold = {fold}"), None).expect("folds").test)
            .collect();
        assert_eq!(tested.len(), 1_000, "every record is tested once");

        let names: Vec<String> = ["test", "train", "validation"].map(String::from).to_vec();
        let codes = (0..1_000).map(|row| [1, 1, 2, 0][row % 4]).collect();
        let given = split_by("kind = 'column'\ncolumn = 'c'", Some(Values::Category { codes, names }))
            .expect("parts");
        assert_eq!((given.test[0], given.validation[0], given.train.len()), (3, 2, 500));
    }

    #[test]
    fn a_search_over_settings_has_the_same_training_rows_and_none_of_the_test() {
        let folds = "folds = 4\nfold = 1";
        for settings in ["", "kind = 'stratified'", folds] {
            let (whole, tuning) = (
                split_by(settings, None).expect("rows"),
                split_by(&format!("tuning = true\n{settings}"), None).expect("rows"),
            );
            let sorted = |rows: &[&Vec<usize>]| {
                let mut all: Vec<usize> = rows.iter().copied().flatten().copied().collect();
                all.sort_unstable();
                all
            };
            assert_eq!(sorted(&[&tuning.train]), sorted(&[&whole.train]), "{settings}");
            assert_eq!(sorted(&[&tuning.aside]), sorted(&[&whole.test]), "{settings}");
            assert_eq!(
                sorted(&[&tuning.validation, &tuning.test]),
                sorted(&[&whole.validation]),
                "{settings}"
            );
            assert!(tuning.validation.len().abs_diff(tuning.test.len()) <= 1, "{settings}");
        }
        let halves = split_by("kind = 'stratified'\ntuning = true", None).expect("rows");
        let positive = |rows: &[usize]| rows.iter().filter(|row| *row % 4 == 0).count();
        assert!(positive(&halves.test).abs_diff(positive(&halves.validation)) <= 1);
    }

    #[test]
    fn smaller_training_shares_are_parts_of_larger_ones() {
        for settings in ["", "kind = 'stratified'", "folds = 4\nfold = 1"] {
            let of_share = |share: &str| {
                split_by(&format!("training_share = {share}\n{settings}"), None).expect("enough rows")
            };
            let (whole, half, quarter) = (of_share("1.0"), of_share("0.5"), of_share("0.25"));
            assert_eq!(whole, split_by(settings, None).expect("enough rows"), "{settings}");
            for (share, larger, part) in [(&half, &whole, 2), (&quarter, &half, 4)] {
                assert!(share.train.len().abs_diff(whole.train.len() / part) <= 1, "{settings}");
                assert!(share.train.iter().all(|row| larger.train.contains(row)), "{settings}");
                // Rows that are given one by one are in ascending order.
                let sorted = |rows: &[usize]| rows.iter().copied().collect::<std::collections::BTreeSet<_>>();
                assert_eq!(sorted(&share.validation), sorted(&whole.validation), "{settings}");
                assert_eq!(sorted(&share.test), sorted(&whole.test), "{settings}");
                assert_eq!(share.rows(), 1_000, "{settings}");
            }
            assert!(
                half.train.iter().any(|&row| row > whole.train.len()),
                "{settings}: drawn, not the first"
            );
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let refused = |parts: Vec<u8>, rows: usize, part: &str| {
            let error = split(&Parts::Given(parts), rows, 0).expect_err("refused").to_string();
            assert!(error.contains(part), "{part} in {error}");
        };
        refused(vec![0, 1, 2, 4], 4, "0, 1, 2 and 3");
        refused(vec![0, 1, 2], 4, "each of 4 records, but names 3");
        refused(vec![0, 1, 3, 3], 4, "test");
    }

    #[test]
    fn a_column_that_tells_no_part_is_refused() {
        let refused = |settings: &str, column, part: &str| {
            let error = split_by(settings, column).expect_err("refused").to_string();
            assert!(error.contains(part), "{part} in {error}");
        };
        let holes = Values::Number(vec![f64::NAN; 1_000]);
        refused("kind = 'time'\ncolumn = 'c'", Some(holes.clone()), "value in every record");
        refused("kind = 'column'\ncolumn = 'c'", Some(holes), "it is a number");
        let names = vec!["tset".to_string()];
        let wrong = Values::Category { codes: vec![0; 1_000], names };
        refused("kind = 'column'\ncolumn = 'c'", Some(wrong), "did you mean \"test\"");
        let one = Values::Number(vec![1.0; 1_000]);
        refused("kind = 'group'\ncolumn = 'c'", Some(one), "groups");
    }
}
