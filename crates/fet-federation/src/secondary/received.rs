//! Digests of everything received that a party's representations depend on: the terms, the primary's keys,
//! gradients and averages.
//!
//! A release is a function of the party's records, of the request for the release, and of these messages.
//! Noise, and the account's digest of a release, are derived from their digest. The primary's messages
//! therefore determine whether two releases have the same noise, or count once; the records do not.
//! Otherwise, a primary that may ask again with other keys could distinguish two tables by comparing bytes. A
//! run has one set of terms and keys, even after a restart (`ledger`).

use fet_core::data::{Keys, Sealed};
use fet_core::message::{Backward, Forward, LoadParameters, Parts, Terms};
use fet_eval::records::RESULTS_VERSION;
use sha2::{Digest as _, Sha256};

/// Digests of the received messages.
#[derive(Debug, Clone)]
pub(super) struct Received {
    terms: [u8; 32],
    /// Digest of the terms and of the linked keys.
    run: [u8; 32],
    /// Digest of terms and keys, and of everything that the model learned from.
    all: [u8; 32],
}

impl Received {
    /// Starts with the terms of all parties, and with the terms for this party only. `settings` is this
    /// party's own copy of the common settings.
    pub(super) fn new(settings: &str, terms: &Terms) -> Self {
        let hash = Sha256::new().chain_update(common(settings, terms));
        let standardise = [u8::from(terms.standardise.keys), u8::from(terms.standardise.features)];
        let hash = hash.chain_update((terms.number as u64).to_le_bytes()).chain_update(standardise);
        let terms: [u8; 32] = hash.finalize().into();
        Self { terms, run: terms, all: terms }
    }

    /// Adds random bytes, so that no release of this session repeats the noise of another session.
    pub(super) fn fresh(&mut self, random: &[u8; 32]) {
        let hash = Sha256::new().chain_update(b"fresh").chain_update(self.run).chain_update(random);
        self.run = hash.finalize().into();
        self.all = self.run;
    }

    /// Adds the primary's keys, which are linked.
    pub(super) fn keys(&mut self, keys: &Keys) {
        let mut hash = Sha256::new().chain_update(b"keys").chain_update(self.run);
        hash.update((keys.rows() as u64).to_le_bytes());
        hash.update((keys.columns() as u64).to_le_bytes());
        hash.update(keys.kind_name());
        match keys {
            Keys::Numbers(numbers) => {
                numbers.values().iter().for_each(|value| hash.update(value.to_le_bytes()));
            }
            Keys::Text(text) => text.cells().iter().for_each(|text| {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }),
            Keys::Sealed(sealed) => hash.update(sealed.bytes()),
        }
        self.linked(hash);
    }

    /// Adds the answer to a linker's challenge.
    pub(super) fn answer(&mut self, answer: &Sealed) {
        let hash = Sha256::new().chain_update(b"answer").chain_update(self.run);
        self.linked(hash.chain_update(answer.bytes()));
    }

    fn linked(&mut self, hash: Sha256) {
        self.run = hash.finalize().into();
        self.all = self.run;
    }

    /// Adds a gradient for the release with the request digest `asked`.
    pub(super) fn gradient(&mut self, asked: &[u8; 32], message: &Backward) {
        let Backward { round, gradient, learning_rate } = message;
        let hash = Sha256::new().chain_update(b"gradient").chain_update(self.all).chain_update(asked);
        let hash = hash.chain_update(round.key().to_le_bytes()).chain_update(learning_rate.to_le_bytes());
        self.learned(hash, gradient.values());
    }

    /// Adds averaged parameters.
    pub(super) fn averages(&mut self, message: &LoadParameters) {
        let hash = Sha256::new().chain_update(b"averages").chain_update(self.all);
        self.learned(hash.chain_update(message.round.key().to_le_bytes()), message.parameters.values());
    }

    fn learned(&mut self, mut hash: Sha256, values: &[f32]) {
        update(&mut hash, values);
        self.all = hash.finalize().into();
    }

    /// Returns the digest of the terms.
    pub(super) fn terms(&self) -> &[u8; 32] {
        &self.terms
    }

    /// Returns the digest of terms and keys, which is equal in every session of a run whose releases are
    /// counted.
    pub(super) fn run(&self) -> &[u8; 32] {
        &self.run
    }

    /// Returns the digest of everything.
    pub(super) fn all(&self) -> &[u8; 32] {
        &self.all
    }

    /// Continues from a state that was saved with this digest of everything.
    pub(super) fn continue_from(&mut self, all: [u8; 32]) {
        self.all = all;
    }
}

/// Returns a digest of a request for a training release. It covers the rows and the parties; the number of
/// parties determines the clipping bound.
pub(super) fn forward(message: &Forward) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"forward").chain_update(message.round.key().to_le_bytes());
    let mut hash = hash.chain_update(message.attempt.map_or([0xff; 4], u32::to_le_bytes));
    for numbers in [&message.rows, &message.active] {
        hash.update((numbers.len() as u64).to_le_bytes());
        numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
    }
    hash.finalize().into()
}

/// Returns a digest of the terms that all parties share.
pub(super) fn common(settings: &str, terms: &Terms) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"fet terms, 2").chain_update(fet_io::sha256(settings.as_bytes()));
    let hash = hash.chain_update(RESULTS_VERSION.to_le_bytes());
    let hash = hash.chain_update((terms.parties as u64).to_le_bytes());
    let hash = hash.chain_update((terms.rows as u64).to_le_bytes());
    match &terms.parts {
        Parts::Random { validation, test } => {
            hash.chain_update([0]).chain_update(validation.to_le_bytes()).chain_update(test.to_le_bytes())
        }
        Parts::Given(parts) => hash.chain_update([1]).chain_update(parts),
    }
    .finalize()
    .into()
}

/// Adds values to a hash, bit for bit.
pub(super) fn update(hash: &mut Sha256, values: &[f32]) {
    let mut bytes = [0u8; 4096];
    for values in values.chunks(1024) {
        let bytes = &mut bytes[..4 * values.len()];
        bytes
            .chunks_exact_mut(4)
            .zip(values)
            .for_each(|(out, value)| out.copy_from_slice(&value.to_le_bytes()));
        hash.update(bytes);
    }
}
