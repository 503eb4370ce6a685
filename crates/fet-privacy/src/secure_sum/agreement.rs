//! Key agreement over a relay that the parties do not trust.
//!
//! Each party signs its fresh public key. Then each party signs the transcript of all keys that it received,
//! including its own. A participant sends nothing before it has the signatures of all parties under its own
//! transcript. A relay that replaces a party's key with its own lacks the first signature. A relay that sends
//! parties different keys or sets, or repeats a key of an earlier session, lacks the second signature. An
//! honest party gives the second signature once per session, for the key that it holds at that time.

use super::error::SumError;
use super::key_share::holders;
use super::member::{Member, PublicKey};
use super::quorum::quorum;
use crate::identity::{Identities, Identity, Signature};

/// Terms that a participant knows before it hears from the relay.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Context of the session; parties with different contexts cannot agree.
    pub context: [u8; 32],
    /// Identities of all parties.
    pub roster: Identities,
    /// Minimum number of parties in a sum, by this participant's policy.
    pub least: usize,
    /// Maximum number of parties that may collude with the receiver.
    pub colluding: usize,
}

/// Public key with its party's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedKey {
    /// X25519 public key.
    pub key: PublicKey,
    /// Two numbers that the party announces to the others and the relay cannot change. The caller defines
    /// their meaning.
    pub numbers: [u64; 2],
    /// Signature over context, party, key and numbers.
    pub signature: Signature,
}

/// Answer of a participant to the keys of all parties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// Sealed share for each of the other parties, in their order.
    pub sealed: Vec<(usize, Vec<u8>)>,
    /// Signature under the transcript.
    pub signature: Signature,
}

const SIGNS_KEY: &str = "fet secure sum key, 3";
const SIGNS_TRANSCRIPT: &str = "fet secure sum transcript, 1";

/// State of one party in the key agreement.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) terms: Terms,
    pub(super) member: Member,
    /// Parties of the key agreement, including this one.
    pub(super) parties: Vec<usize>,
    pub(super) confirmed: bool,
}

impl Agreement {
    pub(super) fn new(member: Member, terms: Terms) -> Self {
        Self { terms, member, parties: Vec::new(), confirmed: false }
    }

    /// Returns the number of holders that remove a mask together.
    pub(super) fn threshold(&self) -> usize {
        quorum(self.parties.len(), self.terms.colluding)
    }

    pub(super) fn signed_key(&self, identity: &Identity, numbers: [u64; 2]) -> SignedKey {
        let key = self.member.public();
        let message = key_message(&self.terms.context, self.member.index(), &key, numbers);
        SignedKey { key, numbers, signature: identity.sign(SIGNS_KEY, &message) }
    }

    pub(super) fn agree(
        &mut self,
        keys: &[(usize, SignedKey)],
        identity: &Identity,
    ) -> Result<Agreed, SumError> {
        if !self.parties.is_empty() {
            return Err(SumError::AgreedAlready);
        }
        let (own, Terms { context, roster, least, colluding }) = (self.member.index(), &self.terms);
        let known = keys.last().is_some_and(|(last, _)| *last < roster.len());
        if !known || !keys.is_sorted_by(|a, b| a.0 < b.0) || !keys.iter().any(|(party, _)| *party == own) {
            return Err(SumError::Parties);
        }
        let needed = (*least).max(colluding + 2);
        if keys.len() < needed {
            return Err(SumError::TooFew { what: "agreeing on keys", found: keys.len(), needed });
        }
        let mut all = vec![None; roster.len()];
        for (party, SignedKey { key, numbers, signature }) in keys {
            let message = key_message(context, *party, key, *numbers);
            let sound = roster.signed(*party, SIGNS_KEY, &message, signature);
            if !sound || (*party == own && *key != self.member.public()) {
                return Err(SumError::Unsigned { party: party + 1 });
            }
            all[*party] = Some(*key);
        }
        self.member.agree(&all, context).map_err(|party| SumError::BadKey { party: party + 1 })?;
        self.parties = keys.iter().map(|(party, _)| *party).collect();
        let sealed = self.member.key_shares(&self.parties, self.threshold());
        let message = numbered(context, own, self.member.transcript());
        Ok(Agreed {
            sealed: holders(&self.parties, own).into_iter().zip(sealed).collect(),
            signature: identity.sign(SIGNS_TRANSCRIPT, &message),
        })
    }

    /// Accepts the signatures of all parties under the transcript, and a sealed share from each of the
    /// others.
    pub(super) fn confirm(
        &mut self,
        sealed: &[(usize, &[u8])],
        signatures: &[(usize, Signature)],
    ) -> Result<(), SumError> {
        if self.parties.is_empty() {
            return Err(SumError::NotAgreed);
        }
        if self.confirmed {
            return Err(SumError::AgreedAlready);
        }
        let others = holders(&self.parties, self.member.index());
        if !signatures.iter().map(|(party, _)| party).eq(&self.parties)
            || !sealed.iter().map(|(party, _)| party).eq(&others)
        {
            return Err(SumError::Parties);
        }
        for (party, signature) in signatures {
            let message = numbered(&self.terms.context, *party, self.member.transcript());
            if !self.terms.roster.signed(*party, SIGNS_TRANSCRIPT, &message, signature) {
                return Err(SumError::Unconfirmed { party: party + 1 });
            }
        }
        let needed = self.threshold();
        for (from, sealed) in sealed {
            self.member.keep_key_share(*from, sealed, needed)?;
        }
        self.confirmed = true;
        Ok(())
    }
}

fn key_message(context: &[u8; 32], party: usize, key: &PublicKey, numbers: [u64; 2]) -> Vec<u8> {
    let mut message = numbered(context, party, &key.0);
    numbers.iter().for_each(|number| message.extend(number.to_le_bytes()));
    message
}

fn numbered(context: &[u8; 32], party: usize, content: &[u8; 32]) -> Vec<u8> {
    [&context[..], &(party as u64).to_le_bytes(), content].concat()
}
