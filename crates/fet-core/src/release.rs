//! The `Release` slot: a disclosure that a secondary makes once, in place of taking part in the training.
//!
//! A release is a list of integers that a secondary makes from its table, its secret noise and, for some kinds, the
//! primary's keys and labels. The primary derives columns from it and adds them to its own columns, for any method that
//! works on these alone. All that follows is post-processing, so that neither training nor predictions add to the privacy
//! loss. Plug-ins are in `releases/` of `fet-components`.

use serde::{Deserialize, Serialize};

use crate::data::{Column, DataError, Keys, PartyTable};
use crate::loss::Loss;
use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

use fet_eval::records::Neighbouring;
pub use fet_eval::records::{CodeRecord, PartyRelease, ReleaseRecord, TableRelation};

/// A kind of release.
///
/// Laws:
///
/// - `make` depends on the table's records only as the account states, and draws all its randomness from
///   `noise`.
/// - The settings, the names of parties and the primary's keys are the only further inputs of `columns`.
pub trait Release: Send + Sync {
    /// Returns what a secondary needs of the primary's places for its release; `None` if it needs none.
    fn needs(&self) -> Option<PlaceNeeds> {
        None
    }

    /// Returns true if a release that was read from a file has the form of one that [`Release::make`] makes.
    fn is_whole(&self, _released: &Released, _places: Option<&Places>) -> bool {
        true
    }

    /// Refuses settings that do not fit the secondaries with these names.
    fn check_parties(&self, parties: &[&str]) -> Result<(), Violation>;

    /// Makes the release of a secondary's table, with `places` if the release needs them.
    ///
    /// # Errors
    /// The table lacks a declared column, or has keys or cells of another kind.
    fn make(
        &self,
        table: &PartyTable,
        places: Option<&Places>,
        noise: &mut ChaCha8Rng,
    ) -> Result<Released, DataError>;

    /// Returns the release of a table without noise, for an audit. `None` if the kind cannot state it, and cannot be audited.
    ///
    /// # Errors
    /// As for [`Release::make`].
    fn noiseless(
        &self,
        _table: &PartyTable,
        _places: Option<&Places>,
    ) -> Result<Option<Noiseless>, DataError> {
        Ok(None)
    }

    /// Returns warnings about a release of this table, for its owner alone: they follow from the records without noise.
    fn advice(&self, _table: &PartyTable, _places: Option<&Places>) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of the columns that the primary derives from the release of the secondary with this
    /// name.
    fn names(&self, party: &str) -> Vec<String>;

    /// Returns the columns with these names that the primary derives from a release for its records with these keys.
    ///
    /// # Errors
    /// The release has another length than the settings give it, the keys are of another kind, or the release does not
    /// cover them.
    fn columns(&self, released: &Released, keys: &Keys) -> Result<Vec<Column>, DataError>;

    /// Returns a note on keys for which the columns are less accurate, if there are any.
    fn note(&self, keys: &Keys) -> Option<String>;

    /// Returns the privacy loss of a release of this table, for its party's own account, before the release is made.
    /// `symbols` is the number of classes or bins of the primary's places, if the release needs them.
    ///
    /// # Errors
    /// The table lacks a declared column.
    fn loss(&self, table: &PartyTable, symbols: usize) -> Result<ReleaseLoss, DataError>;

    /// Returns the privacy loss of these releases.
    fn account(&self, released: &[Released]) -> ReleaseRecord;
}

/// Privacy loss of a release, for its party's own account.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseLoss {
    /// Neighbouring relation for which the loss holds.
    pub relation: Neighbouring,
    /// The loss.
    pub loss: Loss,
}

/// A release without its noise, and the distribution of the noise.
#[derive(Debug, Clone, PartialEq)]
pub enum Noiseless {
    /// All released integers, with Gaussian noise.
    Sums {
        /// The integers.
        values: Vec<i64>,
        /// Standard deviation of the noise.
        deviation: f64,
    },
    /// A symbol for each place, by randomised response.
    Symbols {
        /// Number of released integers before the first symbol.
        first: usize,
        /// Number of released integers from one symbol to the next.
        step: usize,
        /// The true symbol of each place; `None` for a uniform one.
        offers: Vec<Option<usize>>,
        /// Number of symbols.
        symbols: usize,
        /// Probability of the true symbol.
        truth: f64,
    },
}

impl Noiseless {
    /// The release of nothing.
    pub const NONE: Self = Self::Sums { values: Vec::new(), deviation: 1.0 };

    /// Returns the log-likelihood ratio of a release: of this table against `other`. For symbols it takes the true symbols of
    /// both tables as known, although noise decides them too.
    pub fn ratio(&self, other: &Self, released: &Released) -> f64 {
        match (self, other) {
            (Self::Sums { values, deviation }, Self::Sums { values: others, .. }) => {
                let square = |a: i64, b: i64| ((a - b) as f64).powi(2);
                let differs = values.iter().zip(others).zip(&released.values);
                let sum: f64 =
                    differs.map(|((own, other), found)| square(*found, *other) - square(*found, *own)).sum();
                sum / (2.0 * deviation * deviation)
            }
            (Self::Symbols { first, step, offers, symbols, truth }, Self::Symbols { offers: others, .. }) => {
                let (symbols, truth) = (*symbols as f64, *truth);
                let log = |offer: Option<usize>, found: i64| match offer {
                    None => -symbols.ln(),
                    Some(own) if own as i64 == found => truth.ln(),
                    Some(_) => ((1.0 - truth) / (symbols - 1.0)).ln(),
                };
                let found = released.values.iter().skip(*first).step_by(*step);
                offers
                    .iter()
                    .zip(others)
                    .zip(found)
                    .map(|((own, other), found)| log(*own, *found) - log(*other, *found))
                    .sum()
            }
            _ => 0.0,
        }
    }

    /// Returns the number of places whose true symbols differ between two tables, or the distance of their sums in standard
    /// deviations of the noise.
    pub fn difference(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Symbols { offers, .. }, Self::Symbols { offers: others, .. }) => {
                offers.iter().zip(others).filter(|(own, other)| own != other).count() as f64
            }
            _ => self.distance(other).unwrap_or(0.0),
        }
    }

    /// Returns the distance of two tables' sums, in standard deviations of the noise; `None` for symbols.
    pub fn distance(&self, other: &Self) -> Option<f64> {
        match (self, other) {
            (Self::Sums { values, deviation }, Self::Sums { values: others, .. }) => {
                let square = |(own, other): (&i64, &i64)| ((own - other) as f64).powi(2);
                Some(values.iter().zip(others).map(square).sum::<f64>().sqrt() / deviation)
            }
            _ => None,
        }
    }
}

/// Form of the labels that secondaries need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceNeeds {
    /// Number of bins of the labels of a regression, with equal numbers of training rows.
    pub bins: usize,
}

/// The primary's places, which its keys name: rows with equal keys are one place.
#[derive(Clone, PartialEq)]
pub struct Places {
    /// Digest of each place's key ([`Keys::digests`]).
    pub keys: Vec<i64>,
    /// Class, or bin of the label, of each place that a training row has.
    pub labels: Vec<Option<usize>>,
    /// Number of classes or bins.
    pub symbols: usize,
    /// Probability that a label is the true one, where each other label is equally likely; 1 for labels without protection.
    pub label_truth: f64,
    /// The nearest place of each record of the secondary. It follows from the record's own
    /// key and the places, and from no other record.
    pub offers: Vec<usize>,
}

/// Shows the number of places only.
impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Places[{}]", self.keys.len())
    }
}

/// A secondary's release, as the primary holds it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Released {
    /// The secondary's name.
    pub party: String,
    /// The integers, in the order that the plug-in defines.
    pub values: Vec<i64>,
}

/// Shows the number of values only, because a log needs no more.
impl std::fmt::Debug for Released {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Released[{:?}, {} values]", self.party, self.values.len())
    }
}

impl SlotKind for dyn Release {
    const SLOT: &'static str = "release";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Release>);
