//! Saves and restores a session's state.
//!
//! The primary requests a save and receives a tag. After a crash, it requests the last epoch whose checkpoint
//! it has committed itself; one of the two states belongs to that epoch. The tag is drawn at random. A
//! checksum would depend on the party's records through the model, so that a primary that knows all records
//! but one could identify the last one.

use fet_core::message::Saved;
use serde::{Deserialize, Serialize};

use super::error::SecondaryError;
use super::session::Session;
use super::state::{Model, random};
use crate::state_file::{Learned, StateError, StateFile};

/// The header of a state file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    epoch: u32,
    /// Tag that identifies the state to the primary.
    tag: [u8; 32],
    settings_hash: [u8; 32],
    /// Digests of the received messages: of the terms, of terms and keys, and of everything.
    terms: [u8; 32],
    run: [u8; 32],
    received: [u8; 32],
    number: usize,
    /// Digest of the party's table.
    table: [u8; 32],
    steps: Vec<u64>,
    /// Number of records in the party's ledger.
    ledger: u64,
}

/// Keeps the current model as the best so far.
pub(super) fn keep_best(session: &mut Session) {
    session.model.best = session.model.encoder.learner().parameters().clone();
}

/// Saves the party's state after an epoch, and returns its tag.
pub(super) fn save(session: &mut Session, epoch: u32) -> Result<Saved, SecondaryError> {
    session.saved.keep_seed(&session.credentials.seed)?;
    let ledger = session.ledger()?.map_or(0, |ledger| ledger.records());
    let Learned { parameters, steps } =
        Learned::from_learner(session.model.encoder.learner(), &session.model.best);
    let (settings_hash, number, tag) = (session.terms.settings_hash, session.terms.party.number(), random()?);
    let (terms, run) = (*session.received.terms(), *session.received.run());
    let (received, table) = (*session.received.all(), session.records.table.digest());
    let header = Header { epoch, tag, settings_hash, terms, run, received, number, table, steps, ledger };
    let bytes = StateFile::new(&header, parameters).to_bytes();
    session.saved.store.save(epoch, bytes)?;
    Ok(Saved { epoch, tag })
}

/// Restores the state that the tag names; refuses the state of another run.
pub(super) fn load(session: &mut Session, saved: &Saved) -> Result<(), SecondaryError> {
    session.validator.check_load()?;
    let bytes = session.saved.store.find(saved.epoch)?;
    let (header, file) = StateFile::read::<Header>(&bytes)?;
    if header.number == session.terms.party.number() {
        session.records.table.check(&header.table, &*session.tell)?;
    }
    // Without an account of releases, keys may arrive again in another encoding, as in `psi`.
    let same_keys = session.privacy.is_identity() || header.run == *session.received.run();
    let same_terms =
        header.settings_hash == session.terms.settings_hash && header.terms == *session.received.terms();
    let same_run = same_terms && same_keys;
    if !same_run || header.number != session.terms.party.number() {
        return Err(StateError::OtherRun.into());
    }
    if header.tag != saved.tag {
        return Err(StateError::OtherContent { epoch: saved.epoch }.into());
    }
    if let Some(ledger) = session.ledger()? {
        ledger.check_records(header.ledger)?;
    }
    session.model.best = Learned { parameters: file.parameters, steps: header.steps }
        .restore(session.model.encoder.learner_mut())?;
    session.received.continue_from(header.received);
    session.validator.loaded(saved.epoch);
    Ok(())
}

/// Writes the best model and the preparation of the records.
pub(super) fn finish(session: &mut Session) -> Result<(), SecondaryError> {
    session.saved.keep_seed(&session.credentials.seed)?;
    if session.release.blanked > 0 {
        (session.tell)(format!(
            "{} blocks held NaN or infinity and were sent as zeros",
            session.release.blanked
        ));
    }
    let (settings, party) = (session.terms.settings.to_toml(), session.records.prepared.scaled.name.clone());
    let preparing = session.records.prepared.scaled.preparing.clone();
    let (number, table) = (session.terms.party.number(), session.records.table.digest());
    let model = Model { party, number, settings, preparing, table };
    Ok(session.saved.store.finish(&model.to_bytes(session.model.best.clone()))?)
}
