//! A secondary party: its records, links, encoder and randomness. It is reached only through [`Party::ask`].
//!
//! It sees neither labels nor another party's features. It builds everything it needs from its own copy of
//! the common settings and the terms that it agreed to. It sends only the output of the privacy mechanism. It
//! treats a peer's message as data and refuses an invalid request with a reason.

mod account;
mod error;
mod evaluation_cache;
mod join;
mod ledger;
mod lifetime;
mod linking;
mod policy;
mod received;
mod representation;
mod selection;
mod state;
mod sums;
mod validator;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use fet_core::aggregator::SecureSum;
use fet_core::data::{Features, Keys, Matrix, PartyTable};
use fet_core::encoder::{Computation, Encoder};
use fet_core::experiment::CommonSettings;
use fet_core::linker::{DataHolder, Linker, Links};
use fet_core::message::{Joined, Reply, Request, Round, Terms};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party, Refusal};
use fet_core::policy::Policy;
use fet_core::privacy::PrivacyMechanism;
use fet_core::rng::OwnSeed;
use fet_privacy::identity::{Identity, PublicIdentity};
use fet_privacy::secure_sum::Participant;

use crate::federation::PartyIndex;
use crate::prepare::PreparedParty;

use self::account::Account;
pub use self::error::SecondaryError;
use self::evaluation_cache::EvaluationCache;
pub use self::linking::linking_seed;
use self::received::Received;
pub(crate) use self::state::has_entries;
pub use self::state::{FinishedModel, Store};
use self::state::{SavedState, TableIdentity};
use self::validator::RequestValidator;

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
    /// The party agreed to the terms, but cannot use its records or its model in the run.
    Unusable,
}

/// A party's private data and settings. The party never sends them.
pub struct PartyConfig {
    /// The party's records.
    pub table: PartyTable,
    /// Name of the records' file, for messages; the name of the party without such a file.
    pub file: String,
    /// The party's copy of the common settings; the primary's must be equal.
    pub settings: CommonSettings,
    /// Seed of the party's randomness.
    pub seed: OwnSeed,
    /// Identity that signs the party's messages.
    pub identity: Identity,
    /// Identities of all secondaries, in their order. The party must get them by another channel than the
    /// primary.
    pub roster: Arc<[PublicIdentity]>,
    /// Limits on the disclosure to the primary, independent of the common settings.
    pub policy: Policy,
    /// Device on which the party computes, without autodiff.
    pub device: Device,
    /// Settings of the computation.
    pub computation: Computation,
    /// Maximum size in bytes of the cache of representations during an evaluation, for rows with the same
    /// neighbours.
    pub evaluation_cache: usize,
    /// Storage of the party's state.
    pub store: Store,
    /// Place of the lifetime account; `None` in a simulation.
    pub lifetime: Option<LifetimePlace>,
    /// Finished model of a party that answers only prediction requests; `None` if the party takes part in a
    /// run.
    pub model: Option<FinishedModel>,
    /// Finished model that training starts from; `None` to start from initial weights.
    pub start: Option<FinishedModel>,
    /// Receives warnings for the party's operator.
    pub tell: WarnOperator,
}

/// The place of a party's lifetime account.
#[derive(Debug, Clone)]
pub struct LifetimePlace {
    /// The party's own folder.
    pub folder: PathBuf,
    /// Checksum of the party's table, which the account notes for the operator's information.
    pub table: Option<String>,
}

/// Receives a warning for the party's operator.
pub type WarnOperator = Arc<dyn Fn(String) + Send + Sync>;

/// A party's side of one run.
struct Session {
    terms: AgreedTerms,
    credentials: Credentials,
    records: OwnRecords,
    method: MethodTerms,
    linking: Linking,
    model: LocalModel,
    privacy: Box<dyn PrivacyMechanism>,
    release: ReleaseState,
    received: Received,
    validator: RequestValidator,
    saved: SavedState,
    tell: WarnOperator,
}

/// The terms to which the party agreed.
struct AgreedTerms {
    /// This party; its number keys the randomness that all parties know.
    party: PartyIndex,
    /// Number of secondaries.
    parties: usize,
    /// Number of the primary's records.
    rows: usize,
    settings: CommonSettings,
    /// Hash of the party's own copy of the settings.
    settings_hash: [u8; 32],
    /// Digest of the terms that all parties share.
    common: [u8; 32],
}

/// The party's private seed, and the identities of all parties.
struct Credentials {
    seed: OwnSeed,
    identity: Identity,
    roster: Arc<[PublicIdentity]>,
}

/// The party's records.
struct OwnRecords {
    prepared: PreparedParty,
    table: TableIdentity,
    /// True if the party's table is that of the run, false if it is a table for new rows of the primary.
    is_of_run: bool,
}

/// Facts about the method that the party must know.
struct MethodTerms {
    /// Number of neighbours that the party represents.
    neighbours: usize,
    /// True if the party makes one representation of all neighbours.
    pooled: bool,
    /// True if the party sends the similarities of the neighbours to the primary.
    reveals_similarities: bool,
    /// Form of the secure aggregation, if representations are aggregated securely.
    sum: Option<SecureSum>,
    /// Prefix of the names of the parameters that the method averages.
    averaged: Option<&'static str>,
}

/// The linker and its results.
struct Linking {
    linker: Box<dyn Linker>,
    run: RunLinks,
    /// Links of new records, for predictions; `None` before the first prediction request.
    new_rows: Option<Links>,
    /// A linker's challenge that the primary has not answered yet.
    challenge: Option<PendingChallenge>,
    /// The primary's keys, stored if neighbours are chosen again for each release.
    queries: Option<Keys>,
}

/// State of the links of the run's keys.
enum RunLinks {
    /// The primary has not sent the keys yet.
    Awaited,
    /// The search has begun, and may have failed; the party allows no second search.
    Searched,
    /// The keys are linked, and the party takes part in training.
    Linked(Links),
    /// The party serves predictions of a finished model and does not link the run's keys.
    Serving,
}

impl RunLinks {
    /// Returns the links of the run's keys; `None` before the keys are linked.
    fn links(&self) -> Option<&Links> {
        match self {
            Self::Linked(links) => Some(links),
            Self::Awaited | Self::Searched | Self::Serving => None,
        }
    }
}

impl Linking {
    /// Returns the links of rows with this origin.
    fn links(&self, origin: RowOrigin) -> Result<&Links, SecondaryError> {
        let links = match origin {
            RowOrigin::Run => self.run.links(),
            RowOrigin::New => self.new_rows.as_ref(),
        };
        links.ok_or(SecondaryError::NotLinked)
    }
}

/// The party's model, and its state between messages.
struct LocalModel {
    encoder: Box<dyn Encoder>,
    /// An autodiff device.
    device: Device,
    /// Representation that waits for its gradient.
    pending: Option<Pending>,
    /// Cache of representations within an evaluation.
    cache: EvaluationCache,
    /// The party's best model so far; empty before the first one.
    best: Parameters,
    /// One entry for each record, `u32::MAX` outside the assembly of a batch.
    scratch: Vec<u32>,
}

/// The party's releases, and its state in secure aggregation.
struct ReleaseState {
    account: Account,
    /// Selection of the single release, if every row is released once.
    chosen: Option<SingleReleaseRecords>,
    /// The party's state in secure aggregation, once it has made a key.
    participant: Option<Participant>,
    /// Number of blocks that held NaN or infinity and were sent as zeros. The operator is warned; the number
    /// is never sent.
    blanked: u64,
}

/// The primary's encoded keys, and the linker's side that posed a challenge.
struct PendingChallenge {
    queries: Keys,
    data_holder: Box<dyn DataHolder>,
    origin: RowOrigin,
}

/// Origin of keys or rows among the primary's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOrigin {
    /// Records of the run.
    Run,
    /// New records, for predictions.
    New,
}

/// Records that the single release of a frozen party shows, for all rows.
struct SingleReleaseRecords {
    places: selection::Places,
    /// Digest of everything that determines the sample of these records.
    sample: [u8; 32],
}

/// A training representation that waits for its gradient.
struct Pending {
    round: Round,
    /// Digest of the request. It covers the active parties: their number determines the clipping bound, and
    /// so the effect of a gradient.
    asked: [u8; 32],
    shape: [usize; 3],
    /// Number of real positions.
    available: usize,
    /// Autograd graph of the clipping, if the mechanism clips.
    graph: Option<Bounded>,
}

/// Graph of a clipped representation between forward and backward pass.
struct Bounded {
    encoded: Tensor<3>,
    bounded: Tensor<3>,
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
        self.session().ok()?.release.account.lifetime.as_ref().map(lifetime::Spending::words)
    }

    /// Returns the party's side of the run that it joined.
    fn session(&self) -> Result<&Session, SecondaryError> {
        match &self.state {
            PartyState::Joined(session) => Ok(session),
            PartyState::Joining(_) | PartyState::Unusable => Err(SecondaryError::NotJoined),
        }
    }

    fn session_mut(&mut self) -> Result<&mut Session, SecondaryError> {
        match &mut self.state {
            PartyState::Joined(session) => Ok(session),
            PartyState::Joining(_) | PartyState::Unusable => Err(SecondaryError::NotJoined),
        }
    }

    /// Agrees to the terms, or refuses them and stays unchanged. The party drops a table that no model can
    /// use.
    fn join(&mut self, terms: &Terms) -> Result<Reply, SecondaryError> {
        let PartyState::Joining(config) = &self.state else { return Err(SecondaryError::AlreadyJoined) };
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

    fn handle(&mut self, request: Request) -> Result<Reply, SecondaryError> {
        if let Request::Join(terms) = request {
            return self.join(&terms);
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
            Request::Forward(message) => representation::forward(session, message),
            Request::Backward(message) => representation::learn(session, message).map(|()| Reply::Done),
            Request::ShareParameters(message) => representation::share_parameters(session, message),
            Request::LoadParameters(message) => {
                representation::load_parameters(session, &message).map(|()| Reply::Done)
            }
            Request::KeepBest(_) => {
                state::keep_best(session);
                Ok(Reply::Done)
            }
            Request::Save(message) => state::save(session, message.epoch).map(Reply::Saved),
            Request::Load(message) => state::load(session, &message).map(|()| Reply::Done),
            Request::Predict(message) => linking::predict(session, message),
            Request::Finish => state::finish(session).map(|()| Reply::Done),
            Request::Forget => {
                state::forget(session);
                Ok(Reply::Done)
            }
            other => Err(SecondaryError::Unknown { name: other.name() }),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If this fails, the whole reservation counts: at least as much as was released.
        if let Err(error) = self.release.account.close(self.privacy.as_ref()) {
            (self.tell)(error.to_string());
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
