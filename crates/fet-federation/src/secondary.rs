//! A secondary party: its records, its links, its encoder and its randomness. It is reached only through [`Party::ask`].
//!
//! It has no labels and sees no other party's features. It builds everything it needs from its own copy of the common
//! settings and the terms that it agreed to, and sends only what the privacy mechanism has processed. A peer's message is
//! data: an invalid request is refused with a reason.

mod account;
mod error;
mod evaluated;
mod guarantee;
mod guard;
mod join;
mod keys;
mod ledger;
mod lifetime;
mod linking;
mod model;
mod received;
mod release;
mod represent;
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
use fet_core::linker::{Linker, Links, Owner};
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
use self::guard::Guard;
pub use self::linking::linking_seed;
pub use self::model::Finished;
use self::received::Received;
pub use self::state::Store;
pub(crate) use self::state::has_entries;
use self::table::TableIdentity;

/// One party that helps the primary.
pub struct Secondary {
    name: String,
    /// The party's own data before it joins a run; `None` afterwards.
    own: Option<Own>,
    session: Option<Session>,
}

/// A party's private data and settings. Nothing here is ever sent.
pub struct Own {
    /// Its records.
    pub table: PartyTable,
    /// The name of their file, for messages; that of the party where they have none.
    pub file: String,
    /// Its copy of the common settings; the primary's must be the same.
    pub settings: CommonSettings,
    /// Its randomness.
    pub seed: OwnSeed,
    /// What it signs with.
    pub identity: Identity,
    /// The identities of all secondaries, in their order, as they reached it by another way than the primary.
    pub roster: Arc<[PublicIdentity]>,
    /// What it lets the primary have, whatever the common settings say.
    pub policy: Policy,
    /// Where it computes; without autodiff.
    pub device: Device,
    /// How it computes.
    pub computation: Computation,
    /// How many bytes of representations it keeps in an evaluation, for rows that have the same neighbours.
    pub evaluation_cache: usize,
    /// Where it keeps its state.
    pub store: Store,
    /// Where it keeps its lifetime account; nothing in a simulation.
    pub lifetime: Option<LifetimePlace>,
    /// The finished model with which it answers requests for predictions, and no others; nothing where it takes part in a run.
    pub model: Option<Finished>,
    /// The finished model that training goes on from; nothing where it begins anew.
    pub start: Option<Finished>,
    /// Receives warnings for the party's operator.
    pub tell: Tell,
}

/// The place of a party's lifetime account.
#[derive(Debug, Clone)]
pub struct LifetimePlace {
    /// The party's own folder.
    pub folder: PathBuf,
    /// The checksum of its table, which the account notes for the operator's information.
    pub table: Option<String>,
}

/// Receives a warning for the party's operator.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// A party's side of one run.
struct Session {
    /// Its number among the secondaries, from 1; it keys the randomness that all parties know.
    number: usize,
    /// How many secondaries there are.
    parties: usize,
    /// How many records the primary has.
    rows: usize,
    settings: CommonSettings,
    /// Of its own copy of the settings.
    settings_hash: [u8; 32],
    /// Of the terms that all parties have.
    common: [u8; 32],
    received: Received,
    linker: Box<dyn Linker>,
    /// How many neighbours it represents.
    neighbours: usize,
    /// Whether it makes one representation of all of them.
    pooled: bool,
    /// Whether it tells the primary how similar they are.
    reveals_similarities: bool,
    encoder: Box<dyn Encoder>,
    privacy: Box<dyn PrivacyMechanism>,
    /// The form of the secret sum, if representations are summed in secret.
    sum: Option<SecureSum>,
    /// The prefix of the names of the parameters that the method averages.
    shared: Option<&'static str>,
    /// An autodiff device.
    device: Device,
    seed: OwnSeed,
    identity: Identity,
    roster: Arc<[PublicIdentity]>,
    guard: Guard,
    account: Account,
    store: Store,
    /// Whether its own seed is in its place.
    seed_kept: bool,
    tell: Tell,
    records: PreparedParty,
    table: TableIdentity,
    /// Whether its records are the run's, and not those of new rows of the primary.
    has_run_records: bool,
    /// Whether keys were linked, or an attempt at it has failed.
    linked: bool,
    /// A linker's challenge that the primary has not answered yet.
    unlinked: Option<Challenged>,
    links: Option<Links>,
    /// The links of new records, for predictions.
    serving: Option<Links>,
    /// The primary's keys, kept where neighbours are chosen anew for each release.
    queries: Option<Keys>,
    /// The selection of the single release, if every row is released once.
    chosen: Option<Chosen>,
    pending: Option<Pending>,
    /// What it keeps of an evaluation.
    evaluated: Evaluated,
    /// The blocks that held NaN or infinity and were sent as zeros; told to the operator, never sent.
    blanked: u64,
    scratch: Vec<u32>,
    /// Its part in secure sums, once it has made a key.
    sums: Option<Participant>,
    /// Its best model so far; empty before the first.
    best: Parameters,
}

/// The primary's concealed keys, and the linker's side that posed a challenge.
struct Challenged {
    queries: Keys,
    owner: Box<dyn Owner>,
    of: Of,
}

/// Which of the primary's records keys or rows belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The run's.
    Run,
    /// New ones, for predictions.
    New,
}

/// The records that the single release of a frozen party shows, for all rows.
struct Chosen {
    places: selection::Places,
    /// A digest of what their sample follows from.
    sample: [u8; 32],
}

/// A training representation whose gradient is awaited.
struct Pending {
    round: Round,
    /// A digest of the request: also how its parties clip decides what a gradient does.
    asked: [u8; 32],
    shape: [usize; 3],
    /// How many of its positions are real.
    available: usize,
    /// The autograd graph of the bounding, if a mechanism bounds.
    graph: Option<Bounded>,
}

/// The graph of a bounded representation between forward and backward.
struct Bounded {
    encoded: Tensor<3>,
    bounded: Tensor<3>,
}

impl Secondary {
    /// A party that has joined no run yet.
    pub fn new(own: Own) -> Self {
        Self { name: own.table.name.clone(), own: Some(own), session: None }
    }

    /// The current parameters of its model; `None` before it joins. For the party's owner and for tests in one process.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.session.as_ref().map(|session| session.encoder.learner().parameters())
    }

    /// The gradient of its last backward pass; `None` before it joins. For the party's owner and for tests in one process.
    pub fn gradient(&self) -> Option<&[f32]> {
        self.session.as_ref().map(|session| session.encoder.learner().gradient().values.as_slice())
    }

    /// Overwrites parameters of its model. For the party's owner and for tests in one process.
    pub fn load(&mut self, parameters: &Parameters) -> Result<(), SecondaryError> {
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        session.evaluated.forget();
        Ok(session.encoder.learner_mut().load(parameters)?)
    }

    /// The scaled features and keys of the record most similar to each of these primary rows: an attacker's target. For the
    /// party's owner and for measuring attacks in one process.
    pub fn nearest_records(&self, rows: &[usize]) -> Result<[Matrix<f32>; 2], SecondaryError> {
        self.session.as_ref().ok_or(SecondaryError::NotJoined)?.nearest_records(rows)
    }

    /// The records that are shown for each of these primary rows, most similar first. For the party's owner and for measuring
    /// attacks in one process.
    pub fn shown(&self, rows: &[usize]) -> Result<Vec<Vec<usize>>, SecondaryError> {
        self.session.as_ref().ok_or(SecondaryError::NotJoined)?.shown(rows)
    }

    /// Puts other features in the place of its own, as many: a party can do that at any time. For the party's owner and for
    /// measuring attacks in one process.
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

    /// The keys of its records as its model sees them. For the party's owner.
    pub fn model_keys(&self) -> Result<Matrix<f32>, SecondaryError> {
        Ok(self.session.as_ref().ok_or(SecondaryError::NotJoined)?.records.scaled.keys.clone())
    }

    /// Puts other keys in the place of those that its model sees, as many; links do not change. For the party's owner.
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

    /// Its links; `None` before it has any. For the party's owner and for measuring attacks in one process.
    pub fn links(&self) -> Option<&Links> {
        self.session.as_ref()?.links.as_ref()
    }

    /// The links of the new records that it was asked for last; `None` before any. For the party's owner.
    pub fn served(&self) -> Option<&Links> {
        self.session.as_ref()?.serving.as_ref()
    }

    /// What its model makes of the neighbours of these primary rows, before any bounding, noise or mask, [n, K·H]. For the
    /// party's owner and for measuring attacks in one process.
    pub fn encoded(&mut self, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
        self.session.as_mut().ok_or(SecondaryError::NotJoined)?.encoded(rows)
    }

    /// The state of its lifetime account in words, once it has joined; `None` where it keeps none. For the party's owner.
    pub fn lifetime(&self) -> Option<String> {
        self.session.as_ref()?.account.lifetime.as_ref().map(lifetime::Spending::words)
    }

    fn handle(&mut self, request: Request) -> Result<Reply, SecondaryError> {
        if let Request::Join(terms) = request {
            return self.join(&terms);
        }
        let session = self.session.as_mut().ok_or(SecondaryError::NotJoined)?;
        // Only these leave the model as an evaluation found it.
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
        // If this fails, what was reserved counts: more than was released, never less.
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
