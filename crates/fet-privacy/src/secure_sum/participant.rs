//! Party of secure sums that answers as the proof requires, whatever the receiver requests.
//!
//! A participant masks a sum of a round once for each attempt. Each attempt is over fewer parties than the
//! last, and over a [`quorum`] of the parties of the round. The participant unmasks one attempt at a sum, the
//! last that it sent. It computes the values of other parties' key shares for that attempt, and for no other.
//! It is independent of rows, schedules and mechanisms: its caller must admit requests first.

use super::agreement::{Agreed, Agreement, SignedKey, Terms};
use super::error::SumError;
use super::graph::MaskGraph;
use super::id::SumId;
use super::member::Member;
use super::prf::{Commitment, Evaluation, Unmasking};
use super::quorum::quorum;
use super::seen::Seen;
use super::word::Word;
use crate::identity::{Identity, Signature};

/// State of a party in a session of secure sums.
#[derive(Debug)]
pub struct Participant {
    agreement: Agreement,
    /// Last message that the party sent.
    sent: Option<SentMessage>,
    /// Sums for which the party has sent a message.
    seen: Seen,
}

/// Message that the party has sent.
#[derive(Debug)]
struct SentMessage {
    round: u64,
    name: u32,
    attempt: u32,
    active: Vec<usize>,
    over: [u8; 32],
    bits: u32,
    degree: usize,
    unmasking: Unmasking,
    unmasked: bool,
}

impl Participant {
    /// Creates party `index` from 32 secret random bytes, fresh in each session.
    pub fn new(index: usize, secret: [u8; 32], terms: Terms) -> Self {
        let agreement = Agreement::new(Member::from_secret(index, secret), terms);
        Self { agreement, sent: None, seen: Seen::default() }
    }

    /// Returns the party's signed public key, with two numbers for the other parties that the relay cannot
    /// change.
    pub fn signed_key(&self, identity: &Identity, numbers: [u64; 2]) -> SignedKey {
        self.agreement.signed_key(identity, numbers)
    }

    /// Agrees on keys with these parties, ascending and including this one, once per session.
    ///
    /// # Errors
    /// If there are fewer parties than the participant's policy and the tolerated collusion allow, if a key
    /// lacks its party's signature, or if the participant's own key is not the one that it made.
    pub fn agree(&mut self, keys: &[(usize, SignedKey)], identity: &Identity) -> Result<Agreed, SumError> {
        self.agreement.agree(keys, identity)
    }

    /// Accepts the signatures of all parties under the keys that they received, and the share that each of
    /// the others sealed for this one. Before that, the participant takes part in no sum.
    pub fn confirm(
        &mut self,
        sealed: &[(usize, &[u8])],
        signatures: &[(usize, Signature)],
    ) -> Result<(), SumError> {
        self.agreement.confirm(sealed, signatures)
    }

    /// Returns the transcript that all parties of the session signed, which is unique to the session. Returns
    /// zeros before keys are agreed on.
    pub fn transcript(&self) -> &[u8; 32] {
        self.agreement.member.transcript()
    }

    /// Returns the parties of the key agreement, or an empty slice before the agreement.
    pub fn parties(&self) -> &[usize] {
        &self.agreement.parties
    }

    /// Refuses an attempt before keys are confirmed, or over too few of the `scheduled` parties of the round,
    /// which all parties know.
    pub fn check_quorum(&self, active: &[usize], scheduled: &[usize]) -> Result<(), SumError> {
        let Agreement { terms, parties, confirmed, .. } = &self.agreement;
        if !confirmed {
            return Err(SumError::NotAgreed);
        }
        let of = scheduled.iter().filter(|party| parties.binary_search(party).is_ok()).count();
        let needed = quorum(of, terms.colluding).max(terms.least);
        if active.len() < needed {
            return Err(SumError::TooFew { what: "a secure sum of the round", found: active.len(), needed });
        }
        Ok(())
    }

    /// Masks `words` in place for an attempt at a sum. The receiver needs the returned commitment with the
    /// words.
    ///
    /// # Errors
    /// If keys are not confirmed, if the attempt is not over a quorum of the `scheduled` parties, if it is
    /// not the next attempt at its sum, or if the parties that may collude could disconnect the others.
    pub fn mask<W: Word>(
        &mut self,
        words: &mut [W],
        id: &SumId<'_>,
        scheduled: &[usize],
    ) -> Result<Commitment, SumError> {
        let Agreement { terms, member, parties, .. } = &self.agreement;
        let active = id.active;
        self.check_quorum(active, scheduled)?;
        let known = |party: &usize| parties.binary_search(party).is_ok() && scheduled.contains(party);
        if !active.is_sorted_by(|a, b| a < b)
            || !active.iter().all(known)
            || !active.contains(&member.index())
        {
            return Err(SumError::Parties);
        }
        if MaskGraph::new(active.len(), id.degree).tolerates() < terms.colluding {
            let (degree, colluding, active) = (id.degree, terms.colluding, active.len());
            return Err(SumError::Degree { degree, colluding, active });
        }
        let next = match &self.sent {
            Some(sent) if (sent.round, sent.name) == (id.round, id.name) => {
                let fewer = active.len() < sent.active.len()
                    && active.iter().all(|party| sent.active.binary_search(party).is_ok());
                !sent.unmasked && fewer && id.attempt.checked_sub(1) == Some(sent.attempt)
            }
            _ => id.attempt == 0 && !self.seen.contains(id.round, id.name),
        };
        if !next {
            return Err(SumError::Again { attempt: id.attempt });
        }
        let unmasking = member.mask(words, id);
        self.seen.insert(id.round, id.name);
        let SumId { round, name, attempt, over, bits, degree, .. } = *id;
        let active = active.to_vec();
        self.sent = Some(SentMessage {
            round,
            name,
            attempt,
            active,
            over,
            bits,
            degree,
            unmasking,
            unmasked: false,
        });
        Ok(unmasking.commitment())
    }

    /// Unmasks the party's last message of a sum. All other attempts at that sum stay masked forever.
    pub fn unmask(&mut self, round: u64, attempt: u32) -> Result<Unmasking, SumError> {
        let sent = self.sent.as_mut().filter(|sent| (sent.round, sent.attempt) == (round, attempt));
        let sent = sent.ok_or(SumError::NotSent { attempt })?;
        sent.unmasked = true;
        Ok(sent.unmasking)
    }

    /// Returns the participant's contribution to the mask of a `party` that took part and dropped out. The
    /// contribution is the value of its key share for the last attempt that it unmasked.
    pub fn reveal(&self, round: u64, attempt: u32, party: usize) -> Result<Evaluation, SumError> {
        let fits = |sent: &&SentMessage| (sent.round, sent.attempt, sent.unmasked) == (round, attempt, true);
        let sent = self.sent.as_ref().filter(fits).ok_or(SumError::NotSent { attempt })?;
        let member = &self.agreement.member;
        if party == member.index() || !sent.active.contains(&party) {
            return Err(SumError::NotSent { attempt });
        }
        member.evaluation(party, &sent.id()).ok_or(SumError::NoKeyShare { party: party + 1 })
    }
}

impl SentMessage {
    fn id(&self) -> SumId<'_> {
        let Self { round, name, attempt, ref active, over, bits, degree, .. } = *self;
        SumId { round, name, attempt, active, over, bits, degree }
    }
}
