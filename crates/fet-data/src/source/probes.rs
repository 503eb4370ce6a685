//! `probes`: two classes of another table with many added columns, as gisette was made from handwritten
//! digits (Guyon, Gunn, Ben-Hur, Dror 2004, "Result analysis of the NIPS 2003 feature selection challenge").
//!
//! The table keeps some columns of the other table and adds products of pairs of them. It also adds probes:
//! copies of these columns with permuted rows, which carry no information. A separate seed determines the
//! columns, so that all runs have the same table. Gisette keeps pixels of the top middle of the images; this
//! source draws the kept columns from all columns that are not constant.

use std::collections::HashSet;

use fet_core::data::{DataError, DatasetContext, Labelled, Matrix, Source, Task};
use fet_core::registry::{Plugin, Recipe, Slot, Violation, schema_of_inner};
use fet_core::rng::{Purpose, stream};
use fet_io::memory;
use rand::RngExt;
use rand::seq::SliceRandom;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Settings of `probes`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesSettings {
    /// Settings and kind of the other table.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Source>,
    /// Two classes of the other table: the first becomes 0, the second 1.
    pub classes: [u32; 2],
    /// Number of rows, half of each class, drawn by seed; 0 for all.
    #[schemars(extend("x-rule" = "0, or an even number"))]
    pub rows: usize,
    /// Total number of columns.
    #[schemars(range(min = 2))]
    pub columns: usize,
    /// Share of the other table's non-constant columns to keep.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub kept: f64,
    /// Share of the columns that are probes.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub probes: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

const KIND: &str = "probes";

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Source>("Settings and kind of the other table.", |kind| kind != KIND)
}

impl Default for ProbesSettings {
    fn default() -> Self {
        Self {
            inner: Slot::with_defaults("digits").expect("this crate registers it"),
            classes: [4, 9],
            rows: 0,
            columns: 5_000,
            kept: 0.5,
            probes: 0.5,
            seed: 0,
        }
    }
}

impl Recipe<dyn Source> for ProbesSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.classes[0] == self.classes[1] {
            return Err(Violation::new(
                "classes",
                "must be two different classes",
                format!("{:?}", self.classes),
            ));
        }
        if !self.rows.is_multiple_of(2) {
            return Err(Violation::new(
                "rows",
                "must be 0, or an even number: half of each class",
                self.rows,
            ));
        }
        if self.inner.kind() == KIND {
            return Err(Violation::new("inner.kind", "must be another kind of table", format!("\"{KIND}\"")));
        }
        Ok(())
    }

    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        Ok(Box::new(Probes { settings: self.clone(), inner: self.inner.build_inner(context)? }))
    }
}

inventory::submit! {
    Plugin::<dyn Source>::new::<ProbesSettings>(KIND, "two classes of another table, with products of its columns and with probes, as gisette")
}

struct Probes {
    settings: ProbesSettings,
    inner: Box<dyn Source>,
}

/// Construction of an informative column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum InformativeColumn {
    /// A column of the other table.
    Kept(usize),
    /// The product of two columns.
    Product(usize, usize),
}

impl InformativeColumn {
    fn value(self, row: &[f32]) -> f32 {
        match self {
            Self::Kept(column) => row[column],
            Self::Product(one, other) => row[one] * row[other],
        }
    }
}

impl Source for Probes {
    fn files(&self) -> Vec<String> {
        self.inner.files()
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let ProbesSettings { classes: [first, second], columns, seed, .. } = self.settings;
        let table = self.inner.read()?;
        if table.task == Task::Regression {
            let problem = "must be a table whose label is a class; it is a number";
            return Err(DataError::new("`data.source.inner`", problem));
        }
        let mut rng = stream(seed, 0, Purpose::Source, 0);
        let mut chosen = Vec::new();
        for class in [first, second] {
            let mut own: Vec<usize> =
                (0..table.labels.len()).filter(|&row| table.labels[row] == f64::from(class)).collect();
            own.shuffle(&mut rng);
            let wanted = if self.settings.rows == 0 { own.len() } else { self.settings.rows / 2 };
            if own.len() < wanted || wanted == 0 {
                let problem = format!(
                    "must not exceed twice the {} rows of class {class}; it is {}",
                    own.len(),
                    self.settings.rows
                );
                return Err(DataError::new("`data.source.rows`", problem));
            }
            chosen.extend(own.into_iter().take(wanted));
        }
        chosen.shuffle(&mut rng);
        memory::check(chosen.len() as u128 * columns as u128, size_of::<f32>() as u128).map_err(|error| {
            DataError::new(
                "`data.source.columns`",
                format!("{columns} columns of {} rows: {error}", chosen.len()),
            )
        })?;
        let features = table.features.select_rows(&chosen);
        let made = self.construct(&features, &mut rng)?;
        let real = made.len();
        let mut places: Vec<usize> = (0..columns).collect();
        places.shuffle(&mut rng);
        let rows = features.rows();
        let mut values = vec![0.0; rows * columns];
        let mut order: Vec<usize> = (0..rows).collect();
        for (number, &place) in places.iter().enumerate() {
            let (column, is_probe) = match made.get(number) {
                Some(column) => (*column, false),
                None => (made[rng.random_range(0..real)], true),
            };
            if is_probe {
                order.shuffle(&mut rng);
            }
            for row in 0..rows {
                let from = if is_probe { order[row] } else { row };
                values[row * columns + place] = column.value(features.row(from));
            }
        }
        let labels =
            chosen.iter().map(|&row| f64::from(u8::from(table.labels[row] == f64::from(second)))).collect();
        Ok(Labelled { task: Task::Binary, classes: 2, features: Matrix::new(columns, values), labels })
    }
}

impl Probes {
    /// Returns the informative columns: kept columns first, then products.
    fn construct(
        &self,
        features: &Matrix<f32>,
        rng: &mut fet_core::rng::ChaCha8Rng,
    ) -> Result<Vec<InformativeColumn>, DataError> {
        let ProbesSettings { columns, kept, probes, .. } = self.settings;
        let varies = |column: InformativeColumn| {
            let first = column.value(features.row(0));
            (1..features.rows()).any(|row| column.value(features.row(row)) != first)
        };
        let mut usable: Vec<usize> =
            (0..features.columns()).filter(|&column| varies(InformativeColumn::Kept(column))).collect();
        usable.shuffle(rng);
        usable.truncate((kept * usable.len() as f64).ceil() as usize);
        let real = columns - (probes * columns as f64).floor() as usize;
        let mut made: Vec<InformativeColumn> =
            usable.iter().copied().map(InformativeColumn::Kept).take(real).collect();
        let pairs = usable.len() * usable.len().saturating_sub(1) / 2;
        let short = |found: usize| {
            let problem = format!(
                "must leave enough columns: {real} kept columns and products are needed, but {} kept columns give only {found}",
                usable.len()
            );
            DataError::new("`data.source.kept`", problem)
        };
        if made.len() + pairs < real {
            return Err(short(made.len() + pairs));
        }
        let mut drawn = HashSet::new();
        while made.len() < real {
            if drawn.len() == pairs {
                return Err(short(made.len()));
            }
            let (one, other) = (rng.random_range(0..usable.len()), rng.random_range(0..usable.len()));
            let product = InformativeColumn::Product(usable[one.min(other)], usable[one.max(other)]);
            if one != other && drawn.insert(product) && varies(product) {
                made.push(product);
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::Folders;

    fn read(change: impl Fn(&mut ProbesSettings)) -> Result<Labelled, String> {
        let mut settings = ProbesSettings { rows: 200, columns: 300, ..ProbesSettings::default() };
        change(&mut settings);
        settings.check().map_err(|violation| violation.to_string())?;
        let folders = Folders::default();
        let context = DatasetContext { folders: &folders, seed: 0, metadata: &[] };
        settings.build(&context).map_err(|error| error.to_string())?.read().map_err(|error| error.to_string())
    }

    fn column(data: &Labelled, column: usize) -> Vec<f32> {
        (0..data.features.rows()).map(|row| data.features.row(row)[column]).collect()
    }

    /// The digits have 181 rows of class 4 and 180 of class 9.
    #[test]
    fn a_wide_table_has_both_classes_and_is_the_same_for_every_run() {
        let data = read(|_| {}).expect("right");
        assert_eq!((data.features.rows(), data.features.columns(), data.classes), (200, 300, 2));
        assert_eq!(data.labels.iter().sum::<f64>(), 100.0);
        assert_eq!(read(|_| {}).expect("right").features.values(), data.features.values());
        assert_ne!(
            read(|settings| settings.seed = 1).expect("right").features.values(),
            data.features.values()
        );
        assert_eq!(read(|settings| settings.rows = 0).expect("right").features.rows(), 361);
    }

    #[test]
    fn every_column_is_a_pixel_a_product_or_the_values_of_one_of_them_in_another_order() {
        let share = |probes: f64| {
            let data = read(|settings| settings.probes = probes).expect("right");
            let sorted = |mut values: Vec<f32>| {
                values.sort_by(f32::total_cmp);
                values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
            };
            let all: Vec<Vec<f32>> = (0..300).map(|place| column(&data, place)).collect();
            let tells = |values: &[f32]| {
                let mean = |class: f64| {
                    let own: Vec<f32> = values
                        .iter()
                        .zip(&data.labels)
                        .filter(|(_, label)| **label == class)
                        .map(|(value, _)| *value)
                        .collect();
                    own.iter().sum::<f32>() / own.len() as f32
                };
                let spread = {
                    let mean = values.iter().sum::<f32>() / 200.0;
                    (values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 200.0).sqrt()
                };
                // For an uninformative column, the means of 100 rows each differ by about spread * sqrt(2 /
                // 100).
                (mean(0.0) - mean(1.0)).abs() / (spread * 0.02f32.sqrt())
            };
            let mut seen = HashSet::new();
            let repeated = all.iter().filter(|values| !seen.insert(sorted((*values).clone()))).count();
            (all.iter().filter(|values| tells(values) > 4.0).count(), repeated)
        };
        let (telling, repeated) = share(0.0);
        assert!(telling > 100, "{telling} of 300 columns separate the classes");
        assert!(repeated < 30, "{repeated}");
        // With probability 0.02, one of 285 probes is beyond four deviations.
        let (telling, repeated) = share(0.95);
        assert!(telling <= 17, "{telling} informative columns, but only 15 are not probes");
        assert!(repeated >= 270, "{repeated}");
    }

    #[test]
    fn a_table_that_cannot_be_made_is_refused() {
        let check = |change: fn(&mut ProbesSettings), part: &str| {
            let error = read(change).expect_err("refused");
            assert!(error.contains(part), "{part} in {error}");
        };
        check(|settings| settings.classes = [4, 4], "two different classes");
        check(|settings| settings.rows = 3, "even number");
        check(|settings| settings.rows = 362, "twice the 180 rows of class 9; it is 362");
        check(|settings| settings.classes = [4, 10], "0 rows of class 10");
        check(|settings| settings.columns = 4_000_000, "columns");
        check(|settings| settings.kept = 0.01, "enough columns");
        check(
            |settings| settings.inner = Slot::with_defaults("probes").expect("registered"),
            "another kind of table",
        );
    }
}
