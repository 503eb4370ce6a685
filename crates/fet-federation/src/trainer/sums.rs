//! Sums over the secondaries that hide each party's part.
//!
//! The primary requests masked messages, has one attempt unmasked, and has the other parties help to unmask
//! for a party that dropped out.

use fet_core::aggregator::SecureSum;
use fet_core::message::{
    Agreed, Confirmed, Forward, KeyShares, Masked, PublicKeys, Reply, Request, Reveal, Round,
    ShareParameters, Unmask, Words,
};
use fet_core::privacy::PrivacyMechanism;
use fet_privacy::secure_sum::{
    Attempt, Commitment, Message, Parties, Reconstructed, SEALED_SHARE, SumId, Unmasking, holders, quorum,
    reconstruct,
};

use super::error::RunError;
use crate::federation::{Federation, PartyError, Problem, SentRequest};
use crate::secure_aggregation;

/// Returns indices of rows or parties in the form of messages.
pub(super) fn short(numbers: &[usize]) -> Vec<u32> {
    numbers.iter().map(|&number| number as u32).collect()
}

/// A secure aggregation of representations.
pub(super) struct RepresentationSum<'a> {
    pub(super) federation: &'a mut Federation,
    pub(super) privacy: &'a dyn PrivacyMechanism,
    /// Number of secondaries that agreed on keys.
    pub(super) agreed: usize,
    /// Counts the requests for representations.
    pub(super) requests: &'a mut u64,
    pub(super) round: Round,
    pub(super) rows: &'a [u32],
    pub(super) shape: [usize; 3],
    pub(super) sum: SecureSum,
}

impl RepresentationSum<'_> {
    fn bits(&self, attempt: &Attempt) -> Result<u32, RunError> {
        let form = self.privacy.form(attempt.active.len(), self.shape[1] * self.shape[2]);
        Ok(secure_aggregation::units(self.sum, form, attempt.active.len())?.bits)
    }
}

impl Parties<u32> for RepresentationSum<'_> {
    type Error = RunError;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u32>>>, RunError> {
        let bits = self.bits(attempt)?;
        let message = Forward {
            round: self.round,
            rows: self.rows.to_vec(),
            active: short(&attempt.active),
            attempt: Some(attempt.number),
        };
        let requests = vec![Request::Forward(message); attempt.active.len()];
        let answered = exchange(self.federation, self.round, &attempt.active, requests)?;
        *self.requests += 1;
        let shape = self.shape;
        let words = answered.into_iter().map(|(sent, reply)| match reply {
            Some(Reply::Masked(masked)) => Ok(Some(words(sent, masked, shape, bits)?)),
            Some(other) => Err(sent.unexpected(&other)),
            None => Ok(None),
        });
        Ok(words.collect::<Result<_, PartyError>>()?)
    }

    fn unmaskings(&mut self, attempt: &Attempt) -> Result<Vec<Option<Unmasking>>, RunError> {
        unmask(self.federation, self.round, attempt)
    }

    fn reconstruct(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Reconstructed, RunError> {
        let over = secure_aggregation::over_rows(self.rows, self.shape);
        let id = SumId {
            round: self.round.key(),
            name: secure_aggregation::REPRESENTATION,
            attempt: attempt.number,
            active: &attempt.active,
            over,
            bits: self.bits(attempt)?,
            degree: self.sum.degree,
        };
        let needed = quorum(self.agreed, self.privacy.colluding());
        reconstruct_unmasking(self.federation, (party, others), (commitment, needed), (self.round, &id))
    }
}

/// A secure aggregation of the parameters that the method averages.
pub(super) struct ParameterSum<'a> {
    pub(super) federation: &'a mut Federation,
    pub(super) privacy: &'a dyn PrivacyMechanism,
    /// Number of secondaries that agreed on keys.
    pub(super) agreed: usize,
    pub(super) round: Round,
    pub(super) length: usize,
    pub(super) degree: usize,
}

impl Parties<u64> for ParameterSum<'_> {
    type Error = RunError;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u64>>>, RunError> {
        let active = short(&attempt.active);
        let message = ShareParameters { round: self.round, active, attempt: Some(attempt.number) };
        let requests = vec![Request::ShareParameters(message); attempt.active.len()];
        let answered = self.federation.exchange(&attempt.active, requests)?;
        let words = answered.into_iter().map(|(sent, reply)| match reply {
            Some(Reply::MaskedParameters(Words { words, commitment })) if words.len() == self.length => {
                Ok(Some(Message { words, commitment }))
            }
            Some(Reply::MaskedParameters(message)) => {
                Err(sent.wrong("words", format!("must be {}", self.length), message.words.len()))
            }
            Some(other) => Err(sent.unexpected(&other)),
            None => Ok(None),
        });
        Ok(words.collect::<Result<_, PartyError>>()?)
    }

    fn unmaskings(&mut self, attempt: &Attempt) -> Result<Vec<Option<Unmasking>>, RunError> {
        unmask(self.federation, self.round, attempt)
    }

    fn reconstruct(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Reconstructed, RunError> {
        let id = SumId {
            round: self.round.key(),
            name: secure_aggregation::PARAMETERS,
            attempt: attempt.number,
            active: &attempt.active,
            over: secure_aggregation::over_parameters(self.length),
            bits: secure_aggregation::parameters(attempt.active.len())?.bits,
            degree: self.degree,
        };
        let needed = quorum(self.agreed, self.privacy.colluding());
        reconstruct_unmasking(self.federation, (party, others), (commitment, needed), (self.round, &id))
    }
}

/// Has every two secondaries agree on a key, and has each secondary store key shares of the others' secrets.
/// The primary relays public keys, which their parties signed, and encrypted key shares. Returns the parties
/// that agreed, from 0.
pub(super) fn agree_on_keys(federation: &mut Federation) -> Result<Vec<usize>, RunError> {
    let everyone = federation.active();
    let mut keys = Vec::with_capacity(everyone.len());
    for (sent, reply) in federation.exchange_all(&everyone, vec![Request::MakeKey; everyone.len()])? {
        let Reply::Key(key) = reply else { return Err(sent.unexpected(&reply).into()) };
        keys.push(key);
    }
    let request = Request::AgreeOnKeys(PublicKeys { parties: short(&everyone), keys });
    let replies = federation.exchange_all(&everyone, vec![request; everyone.len()])?;
    let mut shares = vec![KeyShares { parties: Vec::new(), sealed: Vec::new() }; federation.len()];
    let mut signatures = Vec::with_capacity(64 * everyone.len());
    for (&from, (sent, reply)) in everyone.iter().zip(replies) {
        let Reply::Agreed(Agreed { key_shares, signature }) = reply else {
            return Err(sent.unexpected(&reply).into());
        };
        let expected = short(&holders(&everyone, from));
        let count = expected.len();
        if key_shares.parties != expected || key_shares.sealed.len() != SEALED_SHARE * count {
            let rule = format!("must be {SEALED_SHARE} bytes for each of the {count} others, in their order");
            let value = format!("{} bytes for {:?}", key_shares.sealed.len(), key_shares.parties);
            return Err(sent.wrong("sealed", rule, value).into());
        }
        if signature.len() != 64 {
            return Err(sent.wrong("signature", "must be 64 bytes", signature.len()).into());
        }
        signatures.extend(signature);
        for (&holder, share) in expected.iter().zip(key_shares.sealed.chunks_exact(SEALED_SHARE)) {
            let shares = &mut shares[holder as usize];
            shares.parties.push(from as u32);
            shares.sealed.extend(share);
        }
    }
    let confirmed = |&party: &usize| {
        let (key_shares, signatures) = (shares[party].clone(), signatures.clone());
        Request::KeepKeyShares(Confirmed { key_shares, signatures })
    };
    federation.command(&everyone, everyone.iter().map(confirmed).collect())?;
    Ok(everyone)
}

/// Sends a request to each of these parties. A party that drops out gives no reply, except in a prediction: there
/// it is an error, because a prediction without the party would be another one.
fn exchange(
    federation: &mut Federation,
    round: Round,
    active: &[usize],
    requests: Vec<Request>,
) -> Result<Vec<(SentRequest, Option<Reply>)>, PartyError> {
    if !matches!(round, Round::Predict { .. }) {
        return federation.exchange(active, requests);
    }
    let answered = federation.exchange_all(active, requests)?;
    Ok(answered.into_iter().map(|(sent, reply)| (sent, Some(reply))).collect())
}

/// Has the parties of an attempt unmask their own messages.
fn unmask(
    federation: &mut Federation,
    round: Round,
    attempt: &Attempt,
) -> Result<Vec<Option<Unmasking>>, RunError> {
    let request = Request::Unmask(Unmask { round, attempt: attempt.number });
    let requests = vec![request; attempt.active.len()];
    let answered = exchange(federation, round, &attempt.active, requests)?;
    let unmaskings = answered.into_iter().map(|(sent, reply)| match reply {
        Some(Reply::Unmasking(unmasking)) => Ok(Some(Unmasking(unmasking))),
        Some(other) => Err(sent.unexpected(&other)),
        None => Ok(None),
    });
    Ok(unmaskings.collect::<Result<_, PartyError>>()?)
}

/// Reconstructs the mask of a party that dropped out, from `needed` key shares of `others`. A party that refuses
/// or sends an invalid reply contributes nothing.
fn reconstruct_unmasking(
    federation: &mut Federation,
    (party, others): (usize, &[usize]),
    (commitment, needed): (&Commitment, usize),
    (round, id): (Round, &SumId<'_>),
) -> Result<Reconstructed, RunError> {
    // Parties that took no part in the sum have unmasked no message, and reveal no key share.
    let ask = holders(others, party);
    let request = Request::Reveal(Reveal { round, attempt: id.attempt, party: party as u32 });
    let answers = federation.ask_each(&ask, vec![request; ask.len()]);
    let share = |(&holder, (_, answer)): (&usize, (SentRequest, Result<Reply, Problem>))| match answer {
        Ok(Reply::Share(share)) => Some((holder, share)),
        _ => None,
    };
    let shares: Vec<_> = ask.iter().zip(answers).filter_map(share).collect();
    Ok(reconstruct(party, needed, &shares, commitment, id)?)
}

/// Returns the words of a masked part, if it has the form of the sum.
fn words(
    sent: SentRequest,
    masked: Masked,
    shape: [usize; 3],
    bits: u32,
) -> Result<Message<u32>, PartyError> {
    let length = shape.iter().product::<usize>();
    if (masked.shape, masked.words.len(), masked.bits) != (shape, length, bits) {
        let rule = format!("must have the shape {shape:?}, {length} words of {bits} bits");
        let value = format!("{:?}, {} words of {} bits", masked.shape, masked.words.len(), masked.bits);
        return Err(sent.wrong("words", rule, value));
    }
    Ok(Message { words: masked.words, commitment: masked.commitment })
}
