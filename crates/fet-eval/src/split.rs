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
mod parts;
mod strata;
mod time;

pub use error::SplitError;
pub use folds::folds;
pub use fractions::Fractions;
pub use parts::{Split, SplitPart};
pub use strata::{codes, quantile_strata};

use rand_chacha::ChaCha8Rng;

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
