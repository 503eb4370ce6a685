//! The primary's side of releases that parties elsewhere make.

use fet_core::data::{DataError, Standardise, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::message::{LifetimeState, OLDEST_PROTOCOL, Parts, ReleasedValues, Reply, Request, Terms};
use fet_core::party::Party;
use fet_core::release::Released;
use fet_core::rng::OwnSeed;
use fet_eval::records::RESULTS_VERSION;

use crate::data::divided;
use crate::federation::{Federation, PartyIndex, SentRequest};
use crate::prepare::PrimaryData;
use crate::release::{KeptRelease, NamedRelease, OneTimeReleases, OwnPlaces, joined, note};
use crate::trainer::RunError;

/// Returns the primary's data with the columns of these releases, split as the experiment requires.
///
/// # Errors
/// A release does not fit, or the primary has a column of the same name.
pub(crate) fn with_releases(
    experiment: &Experiment,
    named: &NamedRelease,
    data: VerticalData,
    releases: OneTimeReleases,
) -> Result<PrimaryData, DataError> {
    let mut data = joined(experiment, data, &releases.released())?;
    note(named.component.as_ref(), &mut data.primary);
    let (primary, _) = divided(experiment, data)?;
    Ok(PrimaryData { releases, ..primary })
}

/// The parties of a run with a release, before they make it.
pub struct ReleasingParties<'a> {
    experiment: &'a Experiment,
    named: NamedRelease,
    places: Option<OwnPlaces>,
    federation: Federation,
    standings: Vec<Option<LifetimeState>>,
}

impl<'a> ReleasingParties<'a> {
    /// Prepares the primary's side before any party is asked. `names` are the secondaries' names, and `own` is the primary's
    /// seed.
    ///
    /// # Errors
    /// The settings or the primary's data do not fit the release, or the experiment has none.
    pub fn new(
        experiment: &'a Experiment,
        data: &VerticalData,
        names: &[String],
        own: &OwnSeed,
    ) -> Result<Self, RunError> {
        let named = NamedRelease::build(experiment.release.as_ref())?;
        let named = named.ok_or_else(|| DataError::new("`release`", "must be there"))?;
        named.component.check_parties(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let places = |needs| OwnPlaces::new(experiment, data, needs, own);
        let places = named.component.needs().map(places).transpose()?;
        let federation = Federation::new(Vec::new(), Vec::new(), 1);
        Ok(Self { experiment, named, places, federation, standings: Vec::new() })
    }

    /// Has these parties agree to the terms. `threads` is the largest number of parties that are asked in parallel.
    ///
    /// # Errors
    /// A party refuses, or cannot be reached.
    pub fn join(
        &mut self,
        parties: Vec<Box<dyn Party>>,
        rows: usize,
        threads: usize,
    ) -> Result<(), RunError> {
        self.federation = Federation::new(parties, Vec::new(), threads);
        let settings = self.experiment.common().terms();
        let active = self.federation.active();
        let terms = |&index: &usize| {
            Request::Join(Terms {
                // Every message of a run is as old as this version.
                protocol: OLDEST_PROTOCOL,
                results: RESULTS_VERSION,
                settings: settings.clone(),
                settings_hash: fet_io::sha256(settings.as_bytes()),
                name: self.federation.name(index).to_string(),
                number: PartyIndex::new(index).number(),
                parties: self.federation.len(),
                rows,
                // The split of the rows stays with the primary.
                parts: Parts::default(),
                standardise: Standardise::ALL,
            })
        };
        let requests = active.iter().map(terms).collect();
        let replies = self.federation.exchange_all(&active, requests)?.into_iter();
        let standing = |(sent, reply): (SentRequest, Reply)| match reply {
            Reply::Joined(joined) => Ok(joined.lifetime),
            reply => Err(sent.unexpected(&reply)),
        };
        self.standings = replies.map(standing).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns the state of each party's lifetime account, as it last reported it; `None` for a party without an account.
    pub fn standings(&self) -> &[Option<LifetimeState>] {
        &self.standings
    }

    /// Has each party make its release, and returns the primary's data with the columns of all releases. Afterwards
    /// [`Self::standings`] has the state of the accounts with these releases.
    ///
    /// # Errors
    /// A party refuses, cannot be reached, or answers with a release of another form.
    pub fn release(&mut self, data: VerticalData) -> Result<PrimaryData, RunError> {
        let active = self.federation.active();
        let message = self.places.as_ref().map(OwnPlaces::message);
        let requests = active.iter().map(|_| Request::Release(message.clone())).collect();
        let places = self.places.as_ref().map(OwnPlaces::without_offers);
        let (mut kept, mut warnings, mut standings) = (Vec::new(), Vec::new(), Vec::new());
        for (sent, reply) in self.federation.exchange_all(&active, requests)? {
            let Reply::Released(ReleasedValues { values, lifetime }) = reply else {
                return Err(sent.unexpected(&reply).into());
            };
            let released = Released { party: sent.party.clone(), values };
            if !self.named.component.is_whole(&released, places.as_ref()) {
                let rule = "must have the form that the settings and the primary's keys give them";
                return Err(sent.wrong("values", rule, format!("{} numbers", released.values.len())).into());
            }
            warnings.extend(lifetime.and_then(|standing| standing.warning(&sent.party)));
            standings.push(lifetime);
            kept.push(KeptRelease::of_party(released));
        }
        self.standings = standings;
        let releases = OneTimeReleases::new(self.experiment, self.named.component.as_ref(), kept);
        let releases = releases
            .with_labels(self.places.as_ref().and_then(OwnPlaces::label_privacy))
            .with_warnings(warnings);
        Ok(with_releases(self.experiment, &self.named, data, releases)?)
    }
}

impl std::fmt::Debug for ReleasingParties<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReleasingParties({} parties)", self.federation.len())
    }
}
