//! Which rows are trained on, which select the epoch, and which the reported metrics are of.
//!
//! A split follows from the number of rows, a [`Strategy`] and a stream of random numbers alone, so that every method
//! that is compared gets the same rows. It reads no table: the caller hands in the column that a strategy goes by.

mod apportion;
mod error;
mod folds;
mod fractions;
mod group;
mod order;
mod strata;
mod time;

pub use error::SplitError;
pub use folds::folds;
pub use fractions::Fractions;
pub use strata::{codes, quantile_strata};

use fet_io::did_you_mean;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Row indices of the three parts, and of what is in none. No row is in two of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Rows that are trained on.
    pub train: Vec<usize>,
    /// Rows that select the epoch and drive the schedule of the learning rate.
    pub validation: Vec<usize>,
    /// Rows on which the reported metrics are computed.
    pub test: Vec<usize>,
    /// Rows that are in no part: nothing is trained, selected or computed on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<usize>,
}

/// A part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Trained on.
    Train,
    /// Selects the epoch.
    Validation,
    /// Reported on.
    Test,
}

/// How rows are put into parts. Columns hold one value for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy<'a> {
    /// By a shuffle alone.
    Random,
    /// Each stratum in the same proportions, within one row in each part. A stratum is a class, or a bin of
    /// [`quantile_strata`].
    Stratified(&'a [usize]),
    /// By time: no training row is as late as a validation row, no validation row as late as a test row. Rows of one
    /// time are never parted: they all go to the later part, so that validation and test have at least their share.
    /// Nothing is drawn.
    Time(&'a [i64]),
    /// No group in two parts. Sizes are approximate: groups go, largest first and shuffled among equals, to the part
    /// that lacks most rows; a part without any gets one while groups last.
    Group(&'a [usize]),
    /// As a column says. Fractions and random numbers are not used.
    Labels(&'a [Part]),
}

impl Strategy<'_> {
    /// Its name in settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Stratified(_) => "stratified",
            Self::Time(_) => "time",
            Self::Group(_) => "group",
            Self::Labels(_) => "labels",
        }
    }

    /// Refuses a column that has not a value for each row.
    fn check(&self, rows: usize) -> Result<(), SplitError> {
        let got = match self {
            Self::Random => rows,
            Self::Stratified(strata) => strata.len(),
            Self::Time(times) => times.len(),
            Self::Group(groups) => groups.len(),
            Self::Labels(parts) => parts.len(),
        };
        if got == rows { Ok(()) } else { Err(SplitError::Length { strategy: self.name(), rows, got }) }
    }
}

impl Split {
    /// Splits `rows` rows.
    ///
    /// Random: the rows are shuffled; the last `validation` of them are for validation, the last `test` of the others
    /// for the test. The fractions' default and the stream of purpose `Split` give the rows that `fet` always had.
    pub fn new(
        rows: usize,
        strategy: &Strategy<'_>,
        fractions: Fractions,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, SplitError> {
        strategy.check(rows)?;
        let split = match strategy {
            Strategy::Random => order::random(rows, fractions.sizes(rows)?, rng),
            Strategy::Stratified(strata) => order::stratified(strata, fractions.sizes(rows)?, rng),
            Strategy::Time(times) => time::split(times, fractions.sizes(rows)?),
            Strategy::Group(groups) => group::split(groups, fractions.sizes(rows)?, rng)?,
            Strategy::Labels(parts) => labelled(parts),
        };
        split.checked(strategy.name())
    }

    /// The rows of a part.
    pub fn part(&self, part: Part) -> &[usize] {
        match part {
            Part::Train => &self.train,
            Part::Validation => &self.validation,
            Part::Test => &self.test,
        }
    }

    /// The split that tells each row's part; a row without one is set aside.
    pub fn given(parts: &[Option<Part>]) -> Result<Self, SplitError> {
        let of = |wanted| (0..parts.len()).filter(|row| parts[*row] == wanted).collect();
        let split = Self {
            train: of(Some(Part::Train)),
            validation: of(Some(Part::Validation)),
            test: of(Some(Part::Test)),
            aside: of(None),
        };
        split.checked("given")
    }

    /// The split of a search over settings, which must not see the test rows: they are set aside. Half of the validation rows
    /// select the epoch and the others are tested: every other one where `alternate`, else the last ones.
    pub fn for_tuning(self, alternate: bool) -> Result<Self, SplitError> {
        let half = self.validation.len().div_ceil(2);
        let selects = |place: usize| if alternate { place.is_multiple_of(2) } else { place < half };
        let (validation, test): (Vec<_>, Vec<_>) =
            self.validation.into_iter().enumerate().partition(|(place, _)| selects(*place));
        let rows = |placed: Vec<(usize, usize)>| placed.into_iter().map(|(_, row)| row).collect();
        let aside = [self.aside, self.test].concat();
        Self { train: self.train, validation: rows(validation), test: rows(test), aside }.checked("tuning")
    }

    /// The number of rows, in a part or in none.
    pub fn rows(&self) -> usize {
        self.train.len() + self.validation.len() + self.test.len() + self.aside.len()
    }

    /// Refuses a split with an empty part.
    fn checked(self, strategy: &'static str) -> Result<Self, SplitError> {
        match Part::ALL.into_iter().find(|part| self.part(*part).is_empty()) {
            Some(part) => Err(SplitError::EmptyPart { strategy, part: part.name(), rows: self.rows() }),
            None => Ok(self),
        }
    }
}

impl Part {
    /// Training, validation, test.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// Its name in a column of labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    /// The parts that a column of names gives.
    pub fn parse_column<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, SplitError> {
        let parse = |(row, name): (usize, &str)| {
            Self::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| SplitError::UnknownPart {
                row,
                name: name.into(),
                hint: did_you_mean(name, Self::ALL.map(Self::name)),
            })
        };
        names.into_iter().enumerate().map(parse).collect()
    }
}

/// The split that a column of parts gives, each part in the order of the rows.
fn labelled(parts: &[Part]) -> Split {
    let of = |wanted| (0..parts.len()).filter(|row| parts[*row] == wanted).collect();
    Split { train: of(Part::Train), validation: of(Part::Validation), test: of(Part::Test), aside: vec![] }
}
