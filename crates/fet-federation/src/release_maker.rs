//! Releases outside a run, for an audit: made of any table of a secondary, with any seed.

use fet_core::data::{DataError, PartyTable, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::release::{Noiseless, ReleaseRecord, Released};
use fet_core::rng::OwnSeed;

use crate::federation::PartyIndex;
use crate::release::{NamedRelease, OwnPlaces};
use crate::trainer::RunError;

/// Makes the releases of one secondary of an experiment.
pub struct ReleaseMaker {
    named: NamedRelease,
    places: Option<OwnPlaces>,
    party: PartyIndex,
}

impl ReleaseMaker {
    /// Prepares the releases of a secondary, from 0. `data` has the primary's keys and labels.
    ///
    /// # Errors
    /// The experiment has no release, or the settings or the primary's data do not fit it.
    pub fn new(experiment: &Experiment, data: &VerticalData, party: usize) -> Result<Self, RunError> {
        let named = NamedRelease::build(experiment.release.as_ref())?;
        let named = named.ok_or_else(|| DataError::new("`release`", "must be there"))?;
        let names: Vec<&str> = data.secondaries.iter().map(|table| table.name.as_str()).collect();
        named.component.check_parties(&names)?;
        let seed = OwnSeed::simulated(experiment.seed, 0);
        let own = |needs| OwnPlaces::new(experiment, data, needs, &seed);
        let places = named.component.needs().map(own).transpose()?;
        Ok(Self { named, places, party: PartyIndex::new(party) })
    }

    /// Makes the release of a table with the noise of a seed.
    ///
    /// # Errors
    /// The table does not fit the settings.
    pub fn make(&self, table: &PartyTable, seed: &OwnSeed) -> Result<Released, DataError> {
        let places = self.places.as_ref().map(|own| own.offered(table, self.party)).transpose()?;
        Ok(self.named.make((table, places.as_ref()), seed)?.released())
    }

    /// Returns the release of a table without noise; `None` if its kind cannot state it.
    ///
    /// # Errors
    /// The table does not fit the settings.
    pub fn noiseless(&self, table: &PartyTable) -> Result<Option<Noiseless>, DataError> {
        let places = self.places.as_ref().map(|own| own.offered(table, self.party)).transpose()?;
        self.named.component.noiseless(table, places.as_ref())
    }

    /// Returns the privacy loss that a release claims.
    pub fn account(&self, released: &Released) -> ReleaseRecord {
        self.named.component.account(std::slice::from_ref(released))
    }
}

impl std::fmt::Debug for ReleaseMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReleaseMaker({})", self.party)
    }
}
