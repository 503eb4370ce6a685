//! A party that makes one release in place of taking part in the training.
//!
//! The party draws the release once and writes it into its own folder before it leaves. The same table, settings and
//! places give the same bytes in every later run, at no further cost. Another table, setting or place gives another
//! release, which the party counts in its lifetime account before it leaves.

use std::path::PathBuf;

use fet_core::message::{Age, LifetimeState, ReleasePlaces, ReleasedValues, Reply, Terms};
use fet_core::policy::Policy;
use fet_core::privacy::Loss;
use fet_core::release::ReleaseLoss;
use fet_eval::records::RESULTS_VERSION;
use fet_privacy::accountant::Total;

use super::config::PartyConfig;
use super::error::SecondaryError;
use super::join::check_terms;
use super::ledger;
use super::lifetime::{REHEARSAL, bounded, check_known, refused, shown};
use super::policy::check_release;
use super::session::MOST_ROWS;
use super::state::{Store, TableIdentity};
use crate::federation::PartyIndex;
use crate::lifetime::{About, OpenLifetime, RunLoss, add};
use crate::privacy::within;
use crate::release::{NamedRelease, OwnPlaces, WrongPlaces};

/// Number of symbols with which the party computes its loss before it knows the primary's places. More symbols may cost more,
/// so that the party checks its limits again before the release.
const LEAST_SYMBOLS: usize = 2;

/// A party that agreed to a run with a release.
pub(super) struct Releasing {
    config: PartyConfig,
    named: NamedRelease,
    party: PartyIndex,
    rows: usize,
    account: Option<ReleaseAccount>,
    /// Identity of the session's release, once it is made: a session makes one.
    made: Option<[u8; 32]>,
}

/// The party's lifetime account, and the name of the releases with the run's settings in it.
struct ReleaseAccount {
    account: OpenLifetime,
    name: String,
    about: About,
    limit: f64,
    standing: LifetimeState,
}

impl Releasing {
    /// Agrees to the terms of a run with a release, or refuses them.
    pub(super) fn agree(
        own: &PartyConfig,
        terms: &Terms,
    ) -> Result<(NamedRelease, PartyIndex, ReleaseLoss), SecondaryError> {
        let party = check_terms(own, terms)?;
        let named =
            NamedRelease::build(own.settings.release.as_ref())?.expect("the caller knows that it is there");
        let planned = loss(own, &named, LEAST_SYMBOLS)?;
        let warnings =
            check_release(&own.policy, &own.settings, terms.rows, named.component.needs(), &planned)?;
        if !own.seed.is_simulated() {
            warnings.into_iter().for_each(|warning| (own.tell)(format!("{}: {warning}", own.table.name)));
        }
        own.table.notes().for_each(|note| (own.tell)(format!("{}: {note}", own.table.name)));
        Ok((named, party, planned))
    }

    /// Begins the party's side of the run.
    pub(super) fn begin(
        config: PartyConfig,
        terms: &Terms,
        (named, party, planned): (NamedRelease, PartyIndex, ReleaseLoss),
    ) -> Result<Self, SecondaryError> {
        let account = ReleaseAccount::join(&config, &planned)?;
        Ok(Self { config, named, party, rows: terms.rows, account, made: None })
    }

    /// Returns the state of the lifetime account.
    pub(super) fn standing(&self) -> Option<LifetimeState> {
        self.account.as_ref().map(|account| account.standing)
    }

    /// Returns the keyed digest of the party's table, for the primary.
    pub(super) fn table(&self) -> [u8; 32] {
        TableIdentity::new(&self.config.table, &self.config.seed, &self.config.file).keyed()
    }

    /// Returns the state of the lifetime account in words, for the operator.
    pub(super) fn words(&self) -> Option<String> {
        let ReleaseAccount { standing: LifetimeState { earlier, epsilon, delta, .. }, limit, .. } =
            self.account.as_ref()?;
        let limit = if *limit > 0.0 { format!("limit {limit}") } else { "no limit".to_string() };
        let epsilon = shown(epsilon.unwrap_or(f64::INFINITY));
        Some(format!(
            "lifetime account: {earlier} earlier runs, with this release ε = {epsilon} at δ = {delta:e}; {limit}"
        ))
    }

    /// Makes the release, or reads it again.
    pub(super) fn release(&mut self, message: Option<ReleasePlaces>) -> Result<Reply, SecondaryError> {
        let places = self.places(message)?;
        let PartyConfig { table, seed, store, tell, .. } = &self.config;
        let unusable = |error: &dyn std::fmt::Display| {
            tell(format!("{}: {error}", table.name));
            SecondaryError::UnusableRecords
        };
        let offered = |places: &OwnPlaces| places.offered(table, self.party);
        let offered = places.as_ref().map(offered).transpose().map_err(|error| unusable(&error))?;
        let parts = (table, offered.as_ref());
        let advice = self.named.component.advice(table, offered.as_ref());
        advice.into_iter().for_each(|warning| tell(warning));
        // The identity depends on the seed: a party that lost its seed makes another release, with other noise.
        let identity = seed.keyed_digest("release", &self.named.made_from(table, offered.as_ref()));
        if self.made.is_some_and(|made| made != identity) {
            return Err(SecondaryError::OneRelease);
        }
        let id = fet_io::hex(&identity[..8]);
        let folder = match store {
            Store::Memory(_) => None,
            Store::Folder { own, .. } => Some(own.join(format!("release-{id}"))),
        };
        let kept = |folder: &PathBuf| self.named.kept(parts, folder);
        let kept = folder.as_ref().map(kept).transpose().map_err(|error| unusable(&error))?.flatten();
        // The seed is written before the account, so that a party that is killed between them counts the release once. The
        // account is written before the release, and the release before it leaves.
        store.keep_seed(seed)?;
        if let Some(account) = &mut self.account {
            if account.has_another(&id) {
                tell(format!(
                    "{}: this release differs from an earlier one with the same settings, because the table, or the primary's keys \
                     or labels, changed: its ε adds to that of the earlier one",
                    table.name
                ));
            }
            let symbols = places.as_ref().map_or(LEAST_SYMBOLS, OwnPlaces::symbols);
            let loss = loss(&self.config, &self.named, symbols)?.loss;
            account.count(&id, loss, &self.config.policy)?;
        }
        let kept = match kept {
            Some(kept) => kept,
            None => {
                let made = self.named.make(parts, seed).map_err(|error| unusable(&error))?;
                let write = |folder: &PathBuf| made.keep(folder);
                folder.as_ref().map(write).transpose().map_err(|error| unusable(&error))?;
                made
            }
        };
        self.made = Some(identity);
        let lifetime = self.standing();
        Ok(Reply::Released(ReleasedValues { values: kept.values().to_vec(), lifetime }))
    }

    /// Reads the places in a request, which the kind of release needs or does not need.
    fn places(&self, message: Option<ReleasePlaces>) -> Result<Option<OwnPlaces>, SecondaryError> {
        let wrong = |field, rule: String, value: String| SecondaryError::Message { field, rule, value };
        match (self.named.component.needs(), message) {
            (None, None) => Ok(None),
            (Some(_), Some(message)) => {
                if message.keys.rows() > self.rows.min(MOST_ROWS) {
                    let rule = format!("must have at most {} keys, the rows of the terms", self.rows);
                    return Err(wrong("places", rule, message.keys.rows().to_string()));
                }
                let places = OwnPlaces::received(&self.config.settings, message);
                let least = self.config.policy.least_rows;
                if let Ok(places) = &places
                    && places.rows() < least
                {
                    let rule = format!("must be at most the number of different keys ({})", places.rows());
                    return Err(SecondaryError::Policy {
                        field: "least_rows",
                        rule,
                        value: least.to_string(),
                    });
                }
                places.map(Some).map_err(|error| match error {
                    WrongPlaces::Message { field, rule, value } => wrong(field, rule, value),
                    WrongPlaces::Settings(violation) => violation.into(),
                })
            }
            (Some(_), None) => {
                Err(wrong("places", "must be there for this kind of release".into(), "missing".into()))
            }
            (None, Some(_)) => {
                Err(wrong("places", "must be left out for this kind of release".into(), "present".into()))
            }
        }
    }
}

/// Returns the loss of the party's release for some number of symbols.
fn loss(own: &PartyConfig, named: &NamedRelease, symbols: usize) -> Result<ReleaseLoss, SecondaryError> {
    let found = named.component.loss(&own.table, symbols).map_err(|error| {
        (own.tell)(format!("{}: {error}", own.table.name));
        SecondaryError::UnusableRecords
    })?;
    let loss = match own.seed.is_simulated() && !found.loss.is_none() {
        true => Loss::Unbounded { reason: REHEARSAL.into() },
        false => bounded(found.loss),
    };
    Ok(ReleaseLoss { loss, ..found })
}

impl ReleaseAccount {
    /// Opens the account and begins a session in it; refuses a release that would exceed the limit.
    fn join(own: &PartyConfig, planned: &ReleaseLoss) -> Result<Option<Self>, SecondaryError> {
        let Some(place) = &own.lifetime else { return Ok(None) };
        let (limit, delta) = (own.policy.lifetime_epsilon, own.policy.most_delta);
        let shared = place.account.open(&place.folder)?;
        let mut account = shared.lock();
        check_known(&account, limit, &own.tell)?;
        let settings = fet_io::sha256(own.settings.terms().as_bytes());
        let name = ledger::short_name(&own.seed.keyed_digest("releases", &settings));
        let about = About {
            mechanism: own.settings.release.as_ref().map_or_else(String::new, |slot| slot.kind().to_string()),
            neighbouring: Some(planned.relation),
            learning: None,
            colluding: 0,
            seed: own.settings.seed,
            results: RESULTS_VERSION,
            table: place.table.clone(),
        };
        let earlier: Vec<&RunLoss> = account.runs().iter().filter(|run| !run.is_none()).collect();
        // A release with the same settings is probably the same one. The request shows it, and counts another one.
        let repeats = earlier.iter().any(|run| run.name.starts_with(&of_settings(&name)));
        let mut total = account.total();
        let spent = total.epsilon(delta);
        if !repeats {
            add(&mut total, &planned.loss);
        }
        let epsilon = total.epsilon(delta);
        if limit > 0.0 && !within(epsilon, limit) {
            let mut alone = Total::default();
            add(&mut alone, &planned.loss);
            let rule = format!(
                "must be at least the ε of all runs together with this release ({}): earlier runs spent {}, and this release \
                 alone needs {}, all at δ = {delta:e}",
                shown(epsilon),
                shown(spent),
                shown(alone.epsilon(delta))
            );
            return Err(refused(limit, rule));
        }
        let earlier = earlier.iter().filter(|run| !run.name.starts_with(&of_settings(&name))).count() as u64;
        let age = account.join(&name, about.clone())?;
        let epsilon = Some(epsilon).filter(|epsilon| epsilon.is_finite());
        let standing = LifetimeState { age, earlier, epsilon, delta };
        drop(account);
        Ok(Some(Self { account: shared, name, about, limit, standing }))
    }

    /// Returns true if the account lacks this release, and has another one with the same settings.
    fn has_another(&self, id: &str) -> bool {
        let own = of_settings(&self.name);
        let account = self.account.lock();
        let mut names = account.runs().iter().filter(|run| !run.is_none()).map(|run| run.name.as_str());
        let is_known = names.clone().any(|name| name == format!("{own}{id}"));
        !is_known && names.any(|name| name.starts_with(&own))
    }

    /// Writes the loss of a release, unless the account has it; refuses a release that would exceed a limit of the policy.
    fn count(&mut self, id: &str, loss: Loss, policy: &Policy) -> Result<(), SecondaryError> {
        let own = of_settings(&self.name);
        let name = format!("{own}{id}");
        let mut account = self.account.lock();
        let is_counted = account.run(&name).is_some_and(|run| !run.is_none());
        let mut total = account.total();
        if !is_counted {
            add(&mut total, &loss);
            let epsilon = total.epsilon(self.standing.delta);
            if self.limit > 0.0 && !within(epsilon, self.limit) {
                let rule = format!(
                    "must be at most `policy.lifetime_epsilon` ({}) with this release, at δ = {:e}",
                    self.limit, self.standing.delta
                );
                let what = "ε of all runs of the party";
                return Err(SecondaryError::Spent { what, rule, value: shown(epsilon) });
            }
            let mut of_run = Total::default();
            let earlier = account.runs().iter().filter(|run| run.name.starts_with(&own));
            earlier.for_each(|run| run.add_to(&mut of_run));
            add(&mut of_run, &loss);
            let epsilon = of_run.epsilon(policy.most_delta);
            if policy.most_epsilon > 0.0 && !within(epsilon, policy.most_epsilon) {
                let rule = format!(
                    "must be at most `policy.most_epsilon` ({}) with this release, at δ = {:e}",
                    policy.most_epsilon, policy.most_delta
                );
                let what = "ε of all releases with these settings";
                return Err(SecondaryError::Spent { what, rule, value: shown(epsilon) });
            }
            if !loss.is_none() {
                account.write(&RunLoss::of_release(name.clone(), self.about.clone(), loss), true)?;
            }
        }
        let others = account.runs().iter().filter(|run| !run.is_none() && run.name != name).count();
        let epsilon = Some(total.epsilon(self.standing.delta)).filter(|epsilon| epsilon.is_finite());
        let age = Age { found: self.standing.age.now, now: account.age() };
        drop(account);
        self.standing = LifetimeState { age, earlier: others as u64, epsilon, ..self.standing };
        Ok(())
    }
}

/// Returns the beginning of the names of all releases with the same settings.
fn of_settings(name: &str) -> String {
    format!("{name}-")
}
