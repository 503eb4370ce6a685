//! A party of secure sums that answers as the proof requires, whatever the receiver asks.
//!
//! It masks a sum of a round once for each attempt, each over fewer parties than the last and over a [`quorum`] of those that
//! the round has; it opens one attempt at a sum, the last that it sent; and it computes what others' shares make of that attempt,
//! and of no other. It knows nothing of rows, schedules or mechanisms: who calls it admits requests first.

use std::collections::BTreeSet;

use super::agreement::{Agreed, Agreement, SignedKey, Terms};
use super::error::SumError;
use super::graph::MaskGraph;
use super::id::SumId;
use super::member::Member;
use super::prf::{Commitment, Evaluation, Opening};
use super::quorum::quorum;
use super::word::Word;
use crate::identity::{Identity, Signature};

/// A party's side of a session of secure sums.
#[derive(Debug)]
pub struct Participant {
    agreement: Agreement,
    /// Its last message.
    sent: Option<Sent>,
    /// The sums, by round and tensor, that it has sent a message for.
    seen: BTreeSet<(u64, u32)>,
}

/// A message that has left.
#[derive(Debug)]
struct Sent {
    round: u64,
    name: u32,
    attempt: u32,
    active: Vec<usize>,
    over: [u8; 32],
    bits: u32,
    degree: usize,
    opening: Opening,
    opened: bool,
}

impl Participant {
    /// Party `index` with 32 secret random bytes, fresh in each session.
    pub fn new(index: usize, secret: [u8; 32], terms: Terms) -> Self {
        let agreement = Agreement::new(Member::from_secret(index, secret), terms);
        Self { agreement, sent: None, seen: BTreeSet::new() }
    }

    /// Its public key, signed, with two numbers that the other parties learn past the relay.
    pub fn signed_key(&self, identity: &Identity, numbers: [u64; 2]) -> SignedKey {
        self.agreement.signed_key(identity, numbers)
    }

    /// Agrees on keys with these parties, ascending and itself among them, once in a session.
    ///
    /// # Errors
    /// If they are fewer than its policy and the collusion that is provided for allow, if a key is not signed by its party,
    /// or if its own is not the one that it made.
    pub fn agree(&mut self, keys: &[(usize, SignedKey)], identity: &Identity) -> Result<Agreed, SumError> {
        self.agreement.agree(keys, identity)
    }

    /// Takes the signatures of all parties under the keys that they were told, and the share that each of the others sealed for
    /// this one. Before that it takes part in no sum.
    pub fn confirm(
        &mut self,
        sealed: &[(usize, &[u8])],
        signatures: &[(usize, Signature)],
    ) -> Result<(), SumError> {
        self.agreement.confirm(sealed, signatures)
    }

    /// What all parties of the session signed: no two sessions have the same. Zeros before keys are agreed on.
    pub fn transcript(&self) -> &[u8; 32] {
        self.agreement.member.transcript()
    }

    /// The parties that keys were agreed on with; none before.
    pub fn parties(&self) -> &[usize] {
        &self.agreement.parties
    }

    /// Refuses an attempt before keys are confirmed, or over too few of the `scheduled` parties, which all know that the round has.
    pub fn check_quorum(&self, active: &[usize], scheduled: &[usize]) -> Result<(), SumError> {
        let Agreement { terms, parties, confirmed, .. } = &self.agreement;
        if !confirmed {
            return Err(SumError::NotAgreed);
        }
        let of = scheduled.iter().filter(|party| parties.binary_search(party).is_ok()).count();
        let needed = quorum(of, terms.colluding).max(terms.least);
        if active.len() < needed {
            return Err(SumError::TooFew { what: "a secret sum of the round", found: active.len(), needed });
        }
        Ok(())
    }

    /// Masks `words` in place for an attempt at a sum; the commitment goes with them.
    ///
    /// # Errors
    /// Before keys are confirmed; if the attempt is not over a quorum of the `scheduled` parties; if it is not the next at its sum;
    /// if those that may collude could part the others.
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
                !sent.opened && fewer && id.attempt.checked_sub(1) == Some(sent.attempt)
            }
            _ => id.attempt == 0 && !self.seen.contains(&(id.round, id.name)),
        };
        if !next {
            return Err(SumError::Again { attempt: id.attempt });
        }
        let opening = member.mask(words, id);
        self.seen.insert((id.round, id.name));
        let SumId { round, name, attempt, over, bits, degree, .. } = *id;
        let active = active.to_vec();
        self.sent = Some(Sent { round, name, attempt, active, over, bits, degree, opening, opened: false });
        Ok(opening.commitment())
    }

    /// Takes its own mask off its last message of a sum; that sum's other attempts stay masked for ever.
    pub fn open(&mut self, round: u64, attempt: u32) -> Result<Opening, SumError> {
        let sent = self.sent.as_mut().filter(|sent| (sent.round, sent.attempt) == (round, attempt));
        let sent = sent.ok_or(SumError::NotSent { attempt })?;
        sent.opened = true;
        Ok(sent.opening)
    }

    /// What its share makes of the attempt that it has opened last, in the place of a `party` that took part and vanished.
    pub fn reveal(&self, round: u64, attempt: u32, party: usize) -> Result<Evaluation, SumError> {
        let fits = |sent: &&Sent| (sent.round, sent.attempt, sent.opened) == (round, attempt, true);
        let sent = self.sent.as_ref().filter(fits).ok_or(SumError::NotSent { attempt })?;
        let member = &self.agreement.member;
        if party == member.index() || !sent.active.contains(&party) {
            return Err(SumError::NotSent { attempt });
        }
        member.evaluation(party, &sent.id()).ok_or(SumError::NoBackup { party: party + 1 })
    }
}

impl Sent {
    fn id(&self) -> SumId<'_> {
        let Self { round, name, attempt, ref active, over, bits, degree, .. } = *self;
        SumId { round, name, attempt, active, over, bits, degree }
    }
}
