//! Parts of a split.

use fet_io::did_you_mean;
use serde::{Deserialize, Serialize};

use super::error::SplitError;

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

impl Split {
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
    pub(super) fn checked(self, strategy: &'static str) -> Result<Self, SplitError> {
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
