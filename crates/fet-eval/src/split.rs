//! Splits of rows into training, validation and test.
//!
//! A split depends only on the number of rows, a [`SplitStrategy`] and a stream of random numbers, so all
//! compared methods use the same rows. The module reads no table: the caller passes the column that a
//! strategy needs.

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

/// Row indices of the three parts and of rows outside all parts. Each row appears once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Training rows.
    pub train: Vec<usize>,
    /// Rows that select the epoch and drive the learning-rate schedule.
    pub validation: Vec<usize>,
    /// Rows for the reported metrics.
    pub test: Vec<usize>,
    /// Rows outside all parts. Training, selection and metrics ignore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<usize>,
}

/// Part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitPart {
    /// Training.
    Train,
    /// Selection of the epoch.
    Validation,
    /// Reported metrics.
    Test,
}

/// Strategy that assigns rows to parts. Columns hold one value per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitStrategy<'a> {
    /// Random shuffle.
    Random,
    /// Same proportions for each stratum, within one row per part. A stratum is a class, or a bin of
    /// [`quantile_strata`].
    Stratified(&'a [usize]),
    /// Order of time: every training row is earlier than every validation row, and every validation row is
    /// earlier than every test row. Rows with the same time all go to the later part, so that validation and
    /// test have at least their share. The strategy draws no random numbers.
    Time(&'a [i64]),
    /// Each group in one part. Sizes are approximate: groups go, largest first and shuffled among equals, to
    /// the part that lacks most rows. An empty part receives a group while groups remain.
    Group(&'a [usize]),
    /// Parts named by a column. The strategy uses neither fractions nor random numbers.
    Labels(&'a [SplitPart]),
}

impl SplitStrategy<'_> {
    /// Returns the strategy's name in settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Stratified(_) => "stratified",
            Self::Time(_) => "time",
            Self::Group(_) => "group",
            Self::Labels(_) => "labels",
        }
    }

    /// Refuses a column whose length differs from the number of rows.
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
    /// Random: shuffles the rows; the last `validation` rows are for validation, and the last `test` of the
    /// remaining rows for the test. The default fractions and the stream of purpose `Split` give the same
    /// rows as earlier versions of `fet`.
    pub fn new(
        rows: usize,
        strategy: &SplitStrategy<'_>,
        fractions: Fractions,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, SplitError> {
        strategy.check(rows)?;
        let split = match strategy {
            SplitStrategy::Random => order::random(rows, fractions.sizes(rows)?, rng),
            SplitStrategy::Stratified(strata) => order::stratified(strata, fractions.sizes(rows)?, rng),
            SplitStrategy::Time(times) => time::split(times, fractions.sizes(rows)?),
            SplitStrategy::Group(groups) => group::split(groups, fractions.sizes(rows)?, rng)?,
            SplitStrategy::Labels(parts) => labelled(parts),
        };
        split.checked(strategy.name())
    }

    /// Returns the rows of a part.
    pub fn part(&self, part: SplitPart) -> &[usize] {
        match part {
            SplitPart::Train => &self.train,
            SplitPart::Validation => &self.validation,
            SplitPart::Test => &self.test,
        }
    }

    /// Returns the split with the given part of each row. Rows without a part stay outside all parts.
    pub fn given(parts: &[Option<SplitPart>]) -> Result<Self, SplitError> {
        let of = |wanted| (0..parts.len()).filter(|row| parts[*row] == wanted).collect();
        let split = Self {
            train: of(Some(SplitPart::Train)),
            validation: of(Some(SplitPart::Validation)),
            test: of(Some(SplitPart::Test)),
            aside: of(None),
        };
        split.checked("given")
    }

    /// Returns the split for a hyperparameter search, which must not see the test rows: they leave the split.
    /// Half of the validation rows select the epoch and the other half becomes the test: every second row if
    /// `alternate`, otherwise the last rows.
    pub fn for_tuning(self, alternate: bool) -> Result<Self, SplitError> {
        let half = self.validation.len().div_ceil(2);
        let selects = |place: usize| if alternate { place.is_multiple_of(2) } else { place < half };
        let (validation, test): (Vec<_>, Vec<_>) =
            self.validation.into_iter().enumerate().partition(|(place, _)| selects(*place));
        let rows = |placed: Vec<(usize, usize)>| placed.into_iter().map(|(_, row)| row).collect();
        let aside = [self.aside, self.test].concat();
        Self { train: self.train, validation: rows(validation), test: rows(test), aside }.checked("tuning")
    }

    /// Returns the number of rows, including rows outside all parts.
    pub fn rows(&self) -> usize {
        self.train.len() + self.validation.len() + self.test.len() + self.aside.len()
    }

    /// Refuses a split with an empty part.
    fn checked(self, strategy: &'static str) -> Result<Self, SplitError> {
        match SplitPart::ALL.into_iter().find(|part| self.part(*part).is_empty()) {
            Some(part) => Err(SplitError::EmptyPart { strategy, part: part.name(), rows: self.rows() }),
            None => Ok(self),
        }
    }
}

impl SplitPart {
    /// Training, validation, test.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// Returns the part's name in a column of labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    /// Parses a column of part names.
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

/// Returns the split that a column of parts defines. Each part keeps the order of the rows.
fn labelled(parts: &[SplitPart]) -> Split {
    let of = |wanted| (0..parts.len()).filter(|row| parts[*row] == wanted).collect();
    Split {
        train: of(SplitPart::Train),
        validation: of(SplitPart::Validation),
        test: of(SplitPart::Test),
        aside: vec![],
    }
}
