//! A secondary party: its records, links, encoder and randomness. It is reached only through [`Party::ask`].
//!
//! It sees neither labels nor another party's features. It builds everything it needs from its own copy of
//! the common settings and the terms that it agreed to. It sends only the output of the privacy mechanism. It
//! treats a peer's message as data and refuses an invalid request with a reason.

mod account;
mod config;
mod error;
mod evaluation_cache;
mod join;
mod ledger;
mod lifetime;
mod linking;
mod one_time;
mod policy;
mod prediction_count;
mod received;
mod representation;
mod saved_state;
mod saving;
mod selection;
mod session;
mod state;
mod sums;
mod validator;

use std::fmt;
use std::sync::Arc;

use fet_core::data::{Features, Matrix};
use fet_core::linker::Links;
use fet_core::message::{Joined, Reply, Request, Terms};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party, Refusal};

pub use self::config::{LifetimePlace, PartyConfig, WarnOperator};
pub use self::error::SecondaryError;
pub(crate) use self::lifetime::run_name;
use self::one_time::Releasing;
pub use self::prediction_count::PredictionCount;
pub use self::selection::linking_seed;
pub use self::session::{LinkCount, MOST_ROWS};
use self::session::{RowOrigin, Session};
pub(crate) use self::state::has_entries;
pub use self::state::{FinishedModel, Store};

/// A secondary party.
pub struct Secondary {
    name: String,
    state: PartyState,
}

/// State of a party in the protocol.
enum PartyState {
    /// The party waits for terms to which it agrees.
    Joining(Box<PartyConfig>),
    /// The party agreed to the terms of a run.
    Joined(Box<Session>),
    /// The party agreed to the terms of a run with a release, and makes the release.
    Releasing(Box<Releasing>),
    /// The party agreed to the terms, but cannot use its records or its model in the run.
    Unusable,
}

impl Secondary {
    /// Makes a party that has not joined a run yet.
    pub fn new(config: PartyConfig) -> Self {
        Self { name: config.table.name.clone(), state: PartyState::Joining(Box::new(config)) }
    }

    /// Returns the current parameters of the party's model; `None` before it joins. For the party's operator
    /// and for tests in one process.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.session().ok().map(|session| session.model.encoder.learner().parameters())
    }

    /// Returns the gradient of the last backward pass; `None` before the party joins. For the party's
    /// operator and for tests in one process.
    pub fn gradient(&self) -> Option<&[f32]> {
        self.session().ok().map(|session| session.model.encoder.learner().gradient().values.as_slice())
    }

    /// Overwrites parameters of the party's model. For the party's operator and for tests in one process.
    pub fn load(&mut self, parameters: &Parameters) -> Result<(), SecondaryError> {
        let session = self.session_mut()?;
        session.model.cache.forget();
        Ok(session.model.encoder.learner_mut().load(parameters)?)
    }

    /// Returns the scaled features and keys of the record that is most similar to each of these primary rows:
    /// an attacker's target. For the party's operator and for measuring attacks in one process.
    pub fn nearest_records(&self, rows: &[usize]) -> Result<[Matrix<f32>; 2], SecondaryError> {
        representation::nearest_records(self.session()?, rows)
    }

    /// Returns the records that are shown for each of these primary rows, most similar first. For the party's
    /// operator and for measuring attacks in one process.
    pub fn shown(&self, rows: &[usize]) -> Result<Vec<Vec<usize>>, SecondaryError> {
        representation::shown(self.session()?, rows)
    }

    /// Replaces the features of all records. A malicious party can do that at any time. For the party's
    /// operator and for measuring attacks in one process.
    pub fn replace_features(&mut self, features: Features) -> Result<(), SecondaryError> {
        let session = self.session_mut()?;
        session.model.cache.forget();
        let rows = session.records.prepared.raw_keys.rows();
        if features.rows() != rows {
            let rule = format!("must be {rows} rows");
            return Err(SecondaryError::Message {
                field: "features",
                rule,
                value: features.rows().to_string(),
            });
        }
        Ok(session.records.prepared.replace_features(features)?)
    }

    /// Returns the keys of the records as the model sees them. For the party's operator.
    pub fn model_keys(&self) -> Result<Matrix<f32>, SecondaryError> {
        Ok(self.session()?.records.prepared.scaled.keys.clone())
    }

    /// Replaces the keys that the model sees of all records; links do not change. For the party's operator.
    pub fn replace_model_keys(&mut self, keys: Matrix<f32>) -> Result<(), SecondaryError> {
        let session = self.session_mut()?;
        session.model.cache.forget();
        let present = &mut session.records.prepared.scaled.keys;
        let shape = |keys: &Matrix<f32>| format!("{} rows of {}", keys.rows(), keys.columns());
        if shape(&keys) != shape(present) {
            let rule = format!("must be {}", shape(present));
            return Err(SecondaryError::Message { field: "keys", rule, value: shape(&keys) });
        }
        *present = keys;
        Ok(())
    }

    /// Returns the party's links; `None` before the keys are linked. For the party's operator and for
    /// measuring attacks in one process.
    pub fn links(&self) -> Option<&Links> {
        self.session().ok()?.linking.run.links()
    }

    /// Returns the progress of the present or last search for links; `None` before the party joins. For the party's
    /// operator.
    pub fn link_count(&self) -> Option<Arc<LinkCount>> {
        self.session().ok().map(|session| Arc::clone(&session.linking.count))
    }

    /// Returns the links of the new records in the last prediction request; `None` before the first. For the
    /// party's operator.
    pub fn served(&self) -> Option<&Links> {
        self.session().ok()?.linking.new_rows.as_ref()
    }

    /// Returns the model's output for the neighbours of these primary rows, before any clipping, noise or
    /// mask, [n, K·H]. For the party's operator and for measuring attacks in one process.
    pub fn encoded(&mut self, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
        representation::encoded(self.session_mut()?, rows)
    }

    /// Returns the state of the lifetime account in words, once the party has joined; `None` if it has no
    /// account. For the party's operator.
    pub fn lifetime(&self) -> Option<String> {
        if let PartyState::Releasing(releasing) = &self.state {
            return releasing.words();
        }
        self.session().ok()?.release.account.lifetime.as_ref().map(lifetime::Spending::words)
    }

    /// Returns the party's side of the run that it joined.
    fn session(&self) -> Result<&Session, SecondaryError> {
        match &self.state {
            PartyState::Joined(session) => Ok(session),
            PartyState::Joining(_) | PartyState::Unusable => Err(SecondaryError::NotJoined),
            PartyState::Releasing(_) => Err(SecondaryError::OnlyReleases),
        }
    }

    fn session_mut(&mut self) -> Result<&mut Session, SecondaryError> {
        match &mut self.state {
            PartyState::Joined(session) => Ok(session),
            PartyState::Joining(_) | PartyState::Unusable => Err(SecondaryError::NotJoined),
            PartyState::Releasing(_) => Err(SecondaryError::OnlyReleases),
        }
    }

    /// Agrees to the terms, or refuses them and stays unchanged. The party drops a table that no model can
    /// use.
    fn join(&mut self, terms: &Terms) -> Result<Reply, SecondaryError> {
        let PartyState::Joining(config) = &self.state else { return Err(SecondaryError::AlreadyJoined) };
        if config.settings.release.is_some() {
            return self.join_for_release(terms);
        }
        let agreement = join::agree(config, terms)?;
        let PartyState::Joining(config) = std::mem::replace(&mut self.state, PartyState::Unusable) else {
            return Err(SecondaryError::AlreadyJoined);
        };
        let session = join::session(agreement, *config, terms)?;
        let joined = Joined {
            parameters: session.model.encoder.learner().parameters().values().len(),
            table: session.records.table.keyed(),
            lifetime: session.release.account.lifetime.as_ref().map(lifetime::Spending::standing),
        };
        self.state = PartyState::Joined(Box::new(session));
        Ok(Reply::Joined(joined))
    }

    /// Agrees to the terms of a run with a release, or refuses them and stays unchanged.
    fn join_for_release(&mut self, terms: &Terms) -> Result<Reply, SecondaryError> {
        let PartyState::Joining(config) = &self.state else { return Err(SecondaryError::AlreadyJoined) };
        let agreed = Releasing::agree(config, terms)?;
        let PartyState::Joining(config) = std::mem::replace(&mut self.state, PartyState::Unusable) else {
            return Err(SecondaryError::AlreadyJoined);
        };
        let releasing = Releasing::begin(*config, terms, agreed)?;
        let joined = Joined { parameters: 0, table: releasing.table(), lifetime: releasing.standing() };
        self.state = PartyState::Releasing(Box::new(releasing));
        Ok(Reply::Joined(joined))
    }

    fn handle(&mut self, request: Request) -> Result<Reply, SecondaryError> {
        if let Request::Join(terms) = request {
            return self.join(&terms);
        }
        if let PartyState::Releasing(releasing) = &mut self.state {
            return match request {
                Request::Release(places) => releasing.release(places),
                _ => Err(SecondaryError::OnlyReleases),
            };
        }
        let session = self.session_mut()?;
        // Only these requests leave the model unchanged, so that the cache of the evaluation stays valid.
        if !matches!(request, Request::Forward(_) | Request::Unmask(_) | Request::Reveal(_)) {
            session.model.cache.forget();
        }
        match request {
            Request::Link(message) => linking::link(session, message),
            Request::Answer(message) => linking::link_answered(session, &message),
            Request::MakeKey => sums::make_key(session).map(Reply::Key),
            Request::AgreeOnKeys(keys) => sums::agree_on_keys(session, &keys).map(Reply::Agreed),
            Request::KeepKeyShares(message) => sums::keep_key_shares(session, &message).map(|()| Reply::Done),
            Request::Unmask(message) => sums::unmask(session, message).map(Reply::Unmasking),
            Request::Reveal(message) => sums::reveal(session, message).map(Reply::Share),
            Request::Forward(message) => match RowOrigin::from_round(message.round) {
                RowOrigin::Run => representation::forward(session, message),
                RowOrigin::New => linking::represent_new(session, message),
            },
            Request::Backward(message) => representation::learn(session, message).map(|()| Reply::Done),
            Request::ShareParameters(message) => representation::share_parameters(session, message),
            Request::LoadParameters(message) => {
                representation::load_parameters(session, &message).map(|()| Reply::Done)
            }
            Request::KeepBest(_) => {
                saving::keep_best(session);
                Ok(Reply::Done)
            }
            Request::Save(message) => saving::save(session, message.epoch).map(Reply::Saved),
            Request::Load(message) => saving::load(session, &message).map(|()| Reply::Done),
            Request::Predict(message) => linking::predict(session, message),
            Request::Finish => saving::finish(session).map(|()| Reply::Done),
            Request::Forget => {
                session.saved.store.forget();
                Ok(Reply::Done)
            }
            Request::Release(_) => Err(SecondaryError::NoRelease),
            other => Err(SecondaryError::Unknown { name: other.name() }),
        }
    }
}

impl Party for Secondary {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.handle(request).map_err(|error| {
            Failure::Refused(match error {
                SecondaryError::Spent { .. } => Refusal::spent(error),
                error => Refusal::new(error),
            })
        })
    }
}

impl fmt::Debug for Secondary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if matches!(self.state, PartyState::Joined(_)) { "joined" } else { "not joined" };
        write!(f, "Secondary({:?}, {state})", self.name)
    }
}
