//! A party's side of one run: its records, links, model and releases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Device, Tensor};
use fet_core::aggregator::SecureSum;
use fet_core::data::Keys;
use fet_core::encoder::Encoder;
use fet_core::experiment::CommonSettings;
use fet_core::linker::{DataHolder, Linker, Links};
use fet_core::message::{Forward, LARGEST_FRAME, Round};
use fet_core::parameters::Parameters;
use fet_core::privacy::PrivacyMechanism;
use fet_core::rng::OwnSeed;
use fet_privacy::identity::{Identities, Identity};
use fet_privacy::secure_sum::Participant;
use sha2::{Digest, Sha256};

use super::account::{self, Account};
use super::config::WarnOperator;
use super::error::{SecondaryError, shortened};
use super::evaluation_cache::EvaluationCache;
use super::ledger::{self, Entry, Ledger};
use super::received::{self, Received};
use super::saved_state::SavedState;
use super::selection::Places;
use super::state::TableIdentity;
use super::validator::RequestValidator;
use crate::federation::PartyIndex;
use crate::prepare::PreparedParty;

/// Maximum number of the primary's records: the capacity of a frame if a key is one number.
pub const MOST_ROWS: usize = LARGEST_FRAME / 8;

/// A party's side of one run.
pub(super) struct Session {
    pub(super) terms: AgreedTerms,
    pub(super) credentials: Credentials,
    pub(super) records: OwnRecords,
    pub(super) method: MethodTerms,
    pub(super) linking: Linking,
    pub(super) model: LocalModel,
    pub(super) privacy: Box<dyn PrivacyMechanism>,
    pub(super) release: ReleaseState,
    pub(super) received: Received,
    pub(super) validator: RequestValidator,
    pub(super) saved: SavedState,
    pub(super) tell: WarnOperator,
}

/// The terms to which the party agreed.
pub(super) struct AgreedTerms {
    /// This party; its number keys the randomness that all parties know.
    pub(super) party: PartyIndex,
    /// Number of secondaries.
    pub(super) parties: usize,
    /// Number of the primary's records.
    pub(super) rows: usize,
    pub(super) settings: CommonSettings,
    /// Hash of the party's own copy of the settings.
    pub(super) settings_hash: [u8; 32],
    /// Digest of the terms that all parties share.
    pub(super) common: [u8; 32],
}

impl AgreedTerms {
    /// Refuses a set of parties without this party.
    pub(super) fn check_parties(&self, field: &'static str, parties: &[u32]) -> Result<(), SecondaryError> {
        let own = self.party.in_message();
        let sound = parties.is_sorted_by(|a, b| a < b)
            && parties.last().is_some_and(|&last| (last as usize) < self.parties)
            && parties.binary_search(&own).is_ok();
        if sound {
            return Ok(());
        }
        let rule = format!("must name party {own} and others below {}, ascending", self.parties);
        Err(SecondaryError::Message { field, rule, value: shortened(parties.iter()) })
    }
}

/// The party's private seed, and the identities of all parties.
pub(super) struct Credentials {
    pub(super) seed: OwnSeed,
    pub(super) identity: Identity,
    pub(super) roster: Identities,
}

/// The party's records.
pub(super) struct OwnRecords {
    pub(super) prepared: PreparedParty,
    pub(super) table: TableIdentity,
    /// True if the party's table is that of the run, false if it is a table for new rows of the primary.
    pub(super) is_of_run: bool,
}

/// Facts about the method that the party must know.
pub(super) struct MethodTerms {
    /// Number of neighbours that the party represents.
    pub(super) neighbours: usize,
    /// True if the party makes one representation of all neighbours.
    pub(super) pooled: bool,
    /// True if the party sends the similarities of the neighbours to the primary.
    pub(super) reveals_similarities: bool,
    /// Form of the secure aggregation, if representations are aggregated securely.
    pub(super) sum: Option<SecureSum>,
    /// Prefix of the names of the parameters that the method averages.
    pub(super) averaged: Option<&'static str>,
}

/// The linker and its results.
pub(super) struct Linking {
    pub(super) linker: Box<dyn Linker>,
    pub(super) run: RunLinks,
    /// Links of new records, for predictions; `None` before the first prediction request.
    pub(super) new_rows: Option<Links>,
    /// A linker's challenge that the primary has not answered yet.
    pub(super) challenge: Option<PendingChallenge>,
    /// The primary's keys, stored if neighbours are chosen again for each release.
    pub(super) queries: Option<Keys>,
    /// Progress of the present or last search.
    pub(super) count: Arc<LinkCount>,
}

/// Progress of a search for links, which another thread may read.
#[derive(Debug, Default)]
pub struct LinkCount {
    linked: AtomicUsize,
    of: AtomicUsize,
}

impl LinkCount {
    /// Begins a search for the links of this number of rows.
    pub(super) fn begin(&self, rows: usize) {
        self.linked.store(0, Ordering::Relaxed);
        self.of.store(rows, Ordering::Relaxed);
    }

    /// Counts newly linked rows.
    pub(super) fn add(&self, rows: usize) {
        self.linked.fetch_add(rows, Ordering::Relaxed);
    }

    /// Returns the number of linked rows and the number of all rows of the search.
    ///
    /// Some linkers report all rows at the end of the search.
    pub fn rows(&self) -> (usize, usize) {
        (self.linked.load(Ordering::Relaxed), self.of.load(Ordering::Relaxed))
    }
}

/// State of the links of the run's keys.
pub(super) enum RunLinks {
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
    pub(super) fn links(&self) -> Option<&Links> {
        match self {
            Self::Linked(links) => Some(links),
            Self::Awaited | Self::Searched | Self::Serving => None,
        }
    }
}

impl Linking {
    /// Returns the links of rows with this origin.
    pub(super) fn links(&self, origin: RowOrigin) -> Result<&Links, SecondaryError> {
        let links = match origin {
            RowOrigin::Run => self.run.links(),
            RowOrigin::New => self.new_rows.as_ref(),
        };
        links.ok_or(SecondaryError::NotLinked)
    }
}

/// The party's model, and its state between messages.
pub(super) struct LocalModel {
    pub(super) encoder: Box<dyn Encoder>,
    /// An autodiff device.
    pub(super) device: Device,
    /// Representation that waits for its gradient.
    pub(super) pending: Option<Pending>,
    /// Cache of representations within an evaluation.
    pub(super) cache: EvaluationCache,
    /// The party's best model so far; empty before the first one.
    pub(super) best: Parameters,
    /// One entry for each record, `u32::MAX` outside the assembly of a batch.
    pub(super) scratch: Vec<u32>,
}

/// The party's releases, and its state in secure aggregation.
pub(super) struct ReleaseState {
    pub(super) account: Account,
    /// Selection of the single release, if every row is released once.
    pub(super) chosen: Option<SingleReleaseRecords>,
    /// The party's state in secure aggregation, once it has made a key.
    pub(super) participant: Option<Participant>,
    /// Number of blocks that held NaN or infinity and were sent as zeros. The operator is warned; the number
    /// is never sent.
    pub(super) blanked: u64,
}

/// The primary's encoded keys, and the linker's side that posed a challenge.
pub(super) struct PendingChallenge {
    pub(super) queries: Keys,
    pub(super) data_holder: Box<dyn DataHolder>,
    pub(super) origin: RowOrigin,
}

/// Origin of keys or rows among the primary's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOrigin {
    /// Records of the run.
    Run,
    /// New records, for predictions.
    New,
}

impl RowOrigin {
    /// Returns the origin of a round's rows.
    pub(super) fn from_round(round: Round) -> Self {
        if matches!(round, Round::Predict { .. }) { Self::New } else { Self::Run }
    }
}

/// Records that the single release of a frozen party shows, for all rows.
pub(super) struct SingleReleaseRecords {
    pub(super) places: Places,
    /// Digest of everything that determines the sample of these records.
    pub(super) sample: [u8; 32],
}

/// A training representation that waits for its gradient.
pub(super) struct Pending {
    pub(super) round: Round,
    /// Digest of the request. It covers the active parties: their number determines the clipping bound, and
    /// so the effect of a gradient.
    pub(super) asked: [u8; 32],
    pub(super) shape: [usize; 3],
    /// Number of real positions.
    pub(super) available: usize,
    /// Autograd graph of the clipping, if the mechanism clips.
    pub(super) graph: Option<Bounded>,
}

/// Graph of a clipped representation between forward and backward pass.
pub(super) struct Bounded {
    pub(super) encoded: Tensor<3>,
    pub(super) bounded: Tensor<3>,
}

impl Session {
    /// Returns a digest of everything that determines the sample of a release: the request and its context.
    /// The noise depends on these and on the values. A release therefore equals an earlier one in both its
    /// sample and its noise, or in neither.
    pub(super) fn sample(&self, message: &Forward) -> [u8; 32] {
        let context = self.release_context(message.attempt.is_some());
        let hash =
            Sha256::new().chain_update(b"fet sample, 1").chain_update((context.len() as u64).to_le_bytes());
        hash.chain_update(context).chain_update(received::forward(message)).finalize().into()
    }

    /// Returns the context of a release, which determines it together with the request and the values.
    ///
    /// The context covers all that was received, the sample of the single release of a frozen party, and, for
    /// a sum, the session. All parties of a session have its transcript, so that either all or none of them
    /// use other noise than in an earlier session. If each party repeated its own noise, a primary could have
    /// only some parties repeat theirs, and subtract their noise.
    pub(super) fn release_context(&self, summed: bool) -> Vec<u8> {
        let mut context = self.received.all().to_vec();
        if let Some(chosen) = &self.release.chosen {
            context.extend(chosen.sample);
        }
        if let Some(sums) =
            self.release.participant.as_ref().filter(|_| summed && !self.credentials.seed.is_simulated())
        {
            context.extend(sums.transcript());
        }
        context
    }

    /// Counts a release before it leaves, or refuses it. `content` is a digest of the release before noise;
    /// it determines the noise.
    pub(super) fn count_release(
        &mut self,
        message: &Forward,
        content: &[u8; 32],
    ) -> Result<(), SecondaryError> {
        let (round, active) = (message.round.key(), message.active.len());
        let attempt = message.attempt.unwrap_or(0);
        let sample = match &self.release.chosen {
            Some(chosen) if matches!(message.round, Round::Once { .. }) => chosen.sample,
            _ => self.sample(message),
        };
        let (privacy, account) = (self.privacy.as_ref(), &mut self.release.account);
        privacy.check_parties(account.releases(), active).map_err(|violation| violation.within("privacy"))?;
        let secret = self.credentials.seed.secret("ledger");
        let hash = Sha256::new().chain_update(&secret[..]).chain_update(round.to_le_bytes());
        let release = hash.chain_update(attempt.to_le_bytes()).chain_update(content).finalize();
        let sample =
            Sha256::new().chain_update(b"sample").chain_update(&secret[..]).chain_update(sample).finalize();
        let digest = ledger::digest(&sample.into(), &release.into());
        let ledger =
            account::open(account, &self.saved.store, (&self.terms.settings_hash, self.received.run()))?;
        if ledger.knows(&digest) {
            return Ok(());
        }
        if ledger.knows_sample(&digest) {
            return Err(SecondaryError::SampledAlready { round: message.round });
        }
        let entry = Entry { round, attempt, active, digest };
        let made = ledger.with(entry).tallies();
        let earlier = ledger.knows_any();
        account.check(privacy, made.clone(), active)?;
        account.reserve(privacy, made, active)?;
        if earlier && !account.warned {
            account.warned = true;
            (self.tell)(format!(
                "{} differs from the release of an earlier session of this run: both are counted",
                message.round
            ));
        }
        self.saved.keep_seed(&self.credentials.seed)?;
        let ledger = account::open(
            &mut self.release.account,
            &self.saved.store,
            (&self.terms.settings_hash, self.received.run()),
        )?;
        Ok(ledger.write(entry)?)
    }

    /// Returns the party's ledger, which is read on first use; `None` if the run lacks an account.
    pub(super) fn ledger(&mut self) -> Result<Option<&mut Ledger>, SecondaryError> {
        if self.privacy.is_identity() {
            return Ok(None);
        }
        if self.linking.run.links().is_none() {
            return Err(SecondaryError::NotLinked);
        }
        account::open(
            &mut self.release.account,
            &self.saved.store,
            (&self.terms.settings_hash, self.received.run()),
        )
        .map(Some)
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
