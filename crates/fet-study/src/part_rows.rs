//! Rows of one part of a run in its `predictions.csv`: numbers, labels and predictions.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};

/// Name of the file with a run's predictions.
pub(crate) const PREDICTIONS: &str = "predictions.csv";
/// Beginning of the name of a column with a class's probability.
const PROBABILITY: &str = "probability of ";
/// Largest excess over a bound, and distance of the sum of probabilities from 1, for programs that round.
pub(crate) const ROUNDING: f64 = 1e-3;

/// Rows of one part of a run's predictions.
///
/// # Shapes
/// - rows, truth: N
/// - output: [N, classes], or N for a regression
#[derive(Debug, Default)]
pub(crate) struct PartRows {
    /// Names of the classes; empty for a regression.
    pub(crate) classes: Vec<String>,
    /// Row numbers.
    pub(crate) rows: Vec<u64>,
    /// Labels: a number, or the index of a class.
    pub(crate) truth: Vec<f64>,
    /// Predicted numbers, or the probability of each class.
    pub(crate) output: Vec<f64>,
}

impl PartRows {
    /// Reads the rows of the part `wanted` ("test" or "validation") from the text of a file of predictions.
    pub(crate) fn parse(text: &str, wanted: &str) -> Result<Self> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().context("the header is not readable")?.clone();
        let place = |name: &str| {
            header
                .iter()
                .position(|own| own == name)
                .with_context(|| format!("the column `{name}` is missing"))
        };
        let [row, part, label] = ["row", "part", "label"].map(place);
        let (row, part, label) = (row?, part?, label?);
        let classes: Vec<(usize, &str)> = header
            .iter()
            .enumerate()
            .filter_map(|(place, name)| Some((place, name.strip_prefix(PROBABILITY)?)))
            .collect();
        let outputs: Vec<usize> = match classes.is_empty() {
            true => vec![place("prediction")?],
            false => classes.iter().map(|(place, _)| *place).collect(),
        };
        let names = classes.iter().map(|(_, name)| (*name).to_string()).collect();
        let mut found = Self { classes: names, ..Self::default() };
        for record in reader.records() {
            let record = record.context("a line is not readable")?;
            let field = |place: usize| record.get(place).unwrap_or_default();
            if field(part) != wanted {
                continue;
            }
            let number = |place: usize| {
                field(place).parse::<f64>().ok().with_context(|| {
                    format!(
                        "row {}, column `{}`: {:?} is not a number",
                        field(row),
                        &header[place],
                        field(place)
                    )
                })
            };
            found.rows.push(
                field(row)
                    .parse()
                    .with_context(|| format!("column `row`: {:?} is not a row number", field(row)))?,
            );
            found.truth.push(if classes.is_empty() {
                number(label)?
            } else {
                let class = classes.iter().position(|(_, name)| *name == field(label));
                class.with_context(|| {
                    format!("row {}: the report lacks the class {:?}", field(row), field(label))
                })? as f64
            });
            for &place in &outputs {
                found.output.push(number(place)?);
            }
        }
        Ok(found)
    }

    /// Returns the label of each row: the name of its class, or its number.
    pub(crate) fn labels(&self) -> Vec<String> {
        let name = |truth: &f64| match self.classes.is_empty() {
            true => truth.to_string(),
            false => self.classes[*truth as usize].clone(),
        };
        self.truth.iter().map(name).collect()
    }

    /// Refuses repeated rows, and outputs that are not probabilities. `fet` writes neither.
    pub(crate) fn check(&self) -> Result<()> {
        let mut seen = HashSet::new();
        let repeated = self.rows.iter().find(|row| !seen.insert(**row));
        ensure!(repeated.is_none(), "row {} has several lines; each row needs one", repeated.unwrap_or(&0));
        if self.classes.is_empty() {
            return Ok(());
        }
        for (row, probabilities) in self.rows.iter().zip(self.output.chunks(self.classes.len())) {
            let is_share = probabilities.iter().all(|share| (0.0..=1.0).contains(share));
            let sum: f64 = probabilities.iter().sum();
            ensure!(
                is_share && (sum - 1.0).abs() <= ROUNDING,
                "row {row}: the probabilities must be from 0 to 1 and have the sum 1; they are {probabilities:?}"
            );
        }
        Ok(())
    }

    /// Returns the probability of the second of two classes, for each row.
    pub(crate) fn second(&self) -> Vec<f64> {
        self.output.iter().skip(1).step_by(2).copied().collect()
    }
}

/// Returns true if both values are equal except for rounding.
pub(crate) fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}
