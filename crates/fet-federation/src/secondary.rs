//! A secondary party: its records, links, encoder and randomness. It is reached only through [`Party::ask`].
//!
//! It sees neither labels nor another party's features. It builds everything it needs from its own copy of
//! the common settings and the terms that it agreed to. It sends only the output of the privacy mechanism. It
//! treats a peer's message as data and refuses an invalid request with a reason.

mod account;
mod error;
mod evaluated;
mod guarantee;
mod join;
mod keys;
mod ledger;
mod lifetime;
mod linking;
mod model;
mod received;
mod release;
mod represent;
mod request_validator;
mod selection;
mod serving;
mod state;
mod sums;
mod table;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use fet_core::aggregator::SecureSum;
use fet_core::data::{Features, Keys, Matrix, PartyTable};
use fet_core::encoder::{Computation, Encoder};
use fet_core::experiment::CommonSettings;
use fet_core::linker::{DataHolder, Linker, Links};
use fet_core::message::{Reply, Request, Round};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party, Refusal};
use fet_core::policy::Policy;
use fet_core::privacy::PrivacyMechanism;
use fet_core::rng::OwnSeed;
use fet_privacy::identity::{Identity, PublicIdentity};
use fet_privacy::secure_sum::Participant;

use crate::prepare::PreparedParty;

use self::account::Account;
pub use self::error::SecondaryError;
use self::evaluated::Evaluated;
pub use self::linking::linking_seed;
pub use self::model::Finished;
use self::received::Received;
use self::request_validator::RequestValidator;
pub use self::state::Store;
pub(crate) use self::state::has_entries;
use self::table::TableIdentity;

/// A secondary party.
pub struct Secondary {
    name: String,
    /// The party's own data before it joins a run; `None` afterwards.
    own: Option<Own>,
    session: Option<Session>,
}

/// A party's private data and settings. The party never sends them.
pub struct Own {
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
    pub model: Option<Finished>,
    /// Finished model that training starts from; `None` to start from initial weights.
    pub start: Option<Finished>,
    /// Receives warnings for the party's operator.
    pub tell: Tell,
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
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// A party's side of one run.
struct Session {
    /// The party's number among the secondaries, from 1; it keys the randomness that all parties know.
    number: usize,
    /// Number of secondaries.
    parties: usize,
    /// Number of the primary's records.
    rows: usize,
    settings: CommonSettings,
    /// Hash of the party's own copy of the settings.
    settings_hash: [u8; 32],
    /// Digest of the terms that all parties have.
    common: [u8; 32],
    received: Received,
    linker: Box<dyn Linker>,
    /// Number of neighbours that the party represents.
    neighbours: usize,
    /// True if the party makes one representation of all neighbours.
    pooled: bool,
    /// True if the party sends the similarities of the neighbours to the primary.
    reveals_similarities: bool,
    encoder: Box<dyn Encoder>,
    privacy: Box<dyn PrivacyMechanism>,
    /// Form of the secure aggregation, if representations are aggregated securely.
    sum: Option<SecureSum>,
    /// Prefix of the names of the parameters that the method averages.
    shared: Option<&'static str>,
    /// An autodiff device.
    device: Device,
    seed: OwnSeed,
    identity: Identity,
    roster: Arc<[PublicIdentity]>,
    validator: RequestValidator,
    account: Account,
    store: Store,
    /// True if the party's own seed is saved.
    seed_kept: bool,
    tell: Tell,
    records: PreparedParty,
    table: TableIdentity,
    /// True if the party's table is that of the run, false if it is a table for new rows of the primary.
    has_run_records: bool,
    /// True if keys were linked, or an attempt to link them failed.
    linked: bool,
    /// A linker's challenge that the primary has not answered yet.
    unlinked: Option<Challenged>,
    links: Option<Links>,
    /// Links of new records, for predictions.
    serving: Option<Links>,
    /// The primary's keys, stored if neighbours are chosen again for each release.
    queries: Option<Keys>,
    /// Selection of the single release, if every row is released once.
    chosen: Option<Chosen>,
    pending: Option<Pending>,
    /// Cache of evaluation results.
    evaluated: Evaluated,
    /// Number of blocks that held NaN or infinity and were sent as zeros. The operator is warned; the number
    /// is never sent.
    blanked: u64,
    scratch: Vec<u32>,
    /// The party's state in secure aggregation, once it has made a key.
    sums: Option<Participant>,
    /// The party's best model so far; empty before the first one.
    best: Parameters,
}

/// The primary's encoded keys, and the linker's side that posed a challenge.
struct Challenged {
    queries: Keys,
    data_holder: Box<dyn DataHolder>,
    of: Of,
}

/// Origin of keys or rows among the primary's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Records of the run.
    Run,
    /// New records, for predictions.
    New,
}

/// Records that the single release of a frozen party shows, for all rows.
struct Chosen {
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
    pub fn new(own: Own) -> Self {
        Self { name: own.table.name.clone(), own: Some(own), session: None }
    }

    /// Returns the current parameters of the party's model; `None` before it joins. For the party's data_holder and
    /// for tests in one process.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.session.as_ref().map(|session| session.encoder.learner().parameters())
    }

    /// Returns the gradient of the last backward pass; `None` before the party joins. For the party's data_holder
    /// and for tests in one process.
    pub fn gradient(&self) -> Option<&[f32]> {
        self.session.as_ref().map(|session| session.encoder.learner().gradient().values.as_slice())
    }

    /// Overwrites parameters of the party's model. For the party's data_holder and for tests in one process.
    pub fn load(&mut self, parameters: &Parameters) -> Result<(), SecondaryError> {
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        session.evaluated.forget();
        Ok(session.encoder.learner_mut().load(parameters)?)
    }

    /// Returns the scaled features and keys of the record that is most similar to each of these primary rows:
    /// an attacker's target. For the party's data_holder and for measuring attacks in one process.
    pub fn nearest_records(&self, rows: &[usize]) -> Result<[Matrix<f32>; 2], SecondaryError> {
        self.session.as_ref().ok_or(SecondaryError::NotJoined)?.nearest_records(rows)
    }

    /// Returns the records that are shown for each of these primary rows, most similar first. For the party's
    /// data_holder and for measuring attacks in one process.
    pub fn shown(&self, rows: &[usize]) -> Result<Vec<Vec<usize>>, SecondaryError> {
        self.session.as_ref().ok_or(SecondaryError::NotJoined)?.shown(rows)
    }

    /// Replaces the features of all records. A malicious party can do that at any time. For the party's data_holder
    /// and for measuring attacks in one process.
    pub fn replace_features(&mut self, features: Features) -> Result<(), SecondaryError> {
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        session.evaluated.forget();
        let rows = session.records.raw_keys.rows();
        if features.rows() != rows {
            let rule = format!("must be {rows} rows");
            return Err(SecondaryError::Message {
                field: "features",
                rule,
                value: features.rows().to_string(),
            });
        }
        Ok(session.records.replace_features(features)?)
    }

    /// Returns the keys of the records as the model sees them. For the party's data_holder.
    pub fn model_keys(&self) -> Result<Matrix<f32>, SecondaryError> {
        Ok(self.session.as_ref().ok_or(SecondaryError::NotJoined)?.records.scaled.keys.clone())
    }

    /// Replaces the keys that the model sees of all records; links do not change. For the party's data_holder.
    pub fn replace_model_keys(&mut self, keys: Matrix<f32>) -> Result<(), SecondaryError> {
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        session.evaluated.forget();
        let present = &mut session.records.scaled.keys;
        let shape = |keys: &Matrix<f32>| format!("{} rows of {}", keys.rows(), keys.columns());
        if shape(&keys) != shape(present) {
            let rule = format!("must be {}", shape(present));
            return Err(SecondaryError::Message { field: "keys", rule, value: shape(&keys) });
        }
        *present = keys;
        Ok(())
    }

    /// Returns the party's links; `None` before the keys are linked. For the party's data_holder and for measuring
    /// attacks in one process.
    pub fn links(&self) -> Option<&Links> {
        self.session.as_ref()?.links.as_ref()
    }

    /// Returns the links of the new records in the last prediction request; `None` before the first. For the
    /// party's data_holder.
    pub fn served(&self) -> Option<&Links> {
        self.session.as_ref()?.serving.as_ref()
    }

    /// Returns the model's output for the neighbours of these primary rows, before any clipping, noise or
    /// mask, [n, K·H]. For the party's data_holder and for measuring attacks in one process.
    pub fn encoded(&mut self, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
        self.session.as_mut().ok_or(SecondaryError::NotJoined)?.encoded(rows)
    }

    /// Returns the state of the lifetime account in words, once the party has joined; `None` if it has no
    /// account. For the party's data_holder.
    pub fn lifetime(&self) -> Option<String> {
        self.session.as_ref()?.account.lifetime.as_ref().map(lifetime::Spending::words)
    }

    fn handle(&mut self, request: Request) -> Result<Reply, SecondaryError> {
        if let Request::Join(terms) = request {
            return self.join(&terms);
        }
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        // Only these requests leave the model unchanged, so that the cache of the evaluation stays valid.
        if !matches!(request, Request::Forward(_) | Request::Open(_) | Request::Reveal(_)) {
            session.evaluated.forget();
        }
        match request {
            Request::Link(message) => session.link(message),
            Request::Answer(message) => session.link_answered(&message),
            Request::MakeKey => session.make_key().map(Reply::Key),
            Request::AgreeOnKeys(keys) => session.agree_on_keys(&keys).map(Reply::Agreed),
            Request::KeepBackups(message) => session.keep_backups(&message).map(|()| Reply::Done),
            Request::Open(message) => session.open(message).map(Reply::Opening),
            Request::Reveal(message) => session.reveal(message).map(Reply::Share),
            Request::Forward(message) => session.forward(message),
            Request::Backward(message) => session.learn(message).map(|()| Reply::Done),
            Request::ShareParameters(message) => session.share_parameters(message),
            Request::LoadParameters(message) => session.load_parameters(&message).map(|()| Reply::Done),
            Request::KeepBest(_) => {
                session.keep_best();
                Ok(Reply::Done)
            }
            Request::Save(message) => session.save(message.epoch).map(Reply::Saved),
            Request::Load(message) => session.load(&message).map(|()| Reply::Done),
            Request::Predict(message) => session.predict(message),
            Request::Finish => session.finish(&self.name).map(|()| Reply::Done),
            Request::Forget => {
                session.forget();
                Ok(Reply::Done)
            }
            other => Err(SecondaryError::Unknown { name: other.name() }),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If this fails, the whole reservation counts: at least as much as was released.
        if let Err(error) = self.account.close(self.privacy.as_ref()) {
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
        let state = if self.session.is_some() { "joined" } else { "not joined" };
        write!(f, "Secondary({:?}, {state})", self.name)
    }
}
