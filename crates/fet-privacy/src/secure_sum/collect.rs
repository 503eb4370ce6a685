//! One sum from the receiver's side. The receiver requests masked messages, asks again without the parties
//! that did not answer, and has the masks of one attempt removed.
//!
//! A party unmasks one attempt at a sum and no other, so that at most one sum of all attempts becomes known.
//! A receiver that claims that a party dropped out, or gets its message late, cannot learn two sums of one
//! round that differ by that party's part. If a party drops out before the unmasking, the receiver repeats
//! the round without it. A party that drops out during the unmasking, or unmasks its message wrongly, stays
//! in the sum: the others remove its mask with their key shares ([`super::reconstruct`]).

use super::key_share::Reconstructed;
use super::member::unmask;
use super::prf::{Commitment, Unmasking};
use super::word::Word;

/// One attempt at a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the attempt, counted from 0; the masks depend on it.
    pub number: u32,
    /// Parties that take part, ascending.
    pub active: Vec<usize>,
}

/// Sum, with the parties that took part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected<W> {
    /// The sum modulo 2^bits.
    pub sum: Vec<W>,
    /// Attempt that gave the sum, and its parties.
    pub attempt: Attempt,
    /// Parties that took part and then dropped out, or unmasked their message wrongly.
    pub dropped_out: Vec<usize>,
    /// Parties that sent a wrong unmasking value, or a wrong share of one.
    pub wrong: Vec<usize>,
}

/// Masked message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<W> {
    /// Words modulo 2^bits.
    pub words: Vec<W>,
    /// Commitment to the unmasking value.
    pub commitment: Commitment,
}

/// Failure of a sum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// Too few parties for a sum to hide anything.
    #[error("a secure sum needs at least {needed} parties here; {} of {of} are left", left.len())]
    TooFew {
        /// Remaining parties.
        left: Vec<usize>,
        /// Number of parties at the start.
        of: usize,
        /// Minimum number of parties.
        needed: usize,
    },
    /// A party unmasked its message wrongly, and the others cannot unmask the message in its place.
    #[error(
        "party {party} sent an unmasking value that does not match the commitment in its message, and the others could not unmask the \
         message in its place"
    )]
    Unmasking {
        /// Party, counted from 1.
        party: usize,
    },
    /// Messages of different lengths.
    #[error("a party sent {found} words instead of {expected}")]
    Length {
        /// Number of words in the first message.
        expected: usize,
        /// Number of words in another message.
        found: usize,
    },
}

/// Connection of a receiver to the parties. A reply is `None` if a party dropped out.
pub trait Parties<W> {
    /// Error of the connection.
    type Error: From<CollectError>;

    /// Requests the masked message of each active party.
    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<W>>>, Self::Error>;

    /// Requests the unmasking value of each active party's private mask.
    fn unmaskings(&mut self, attempt: &Attempt) -> Result<Vec<Option<Unmasking>>, Self::Error>;

    /// Has `others` remove the mask of `party`, which dropped out.
    fn reconstruct(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Reconstructed, Self::Error>;
}

/// Sums the messages of the active parties. Leaves out parties that drop out before sending their message,
/// while at least `needed` parties remain, or two if `needed` is lower ([`super::quorum`]).
pub fn collect<W: Word, P: Parties<W>>(
    active: &[usize],
    needed: usize,
    bits: u32,
    parties: &mut P,
) -> Result<Collected<W>, P::Error> {
    let (of, needed) = (active.len(), needed.max(2));
    let mut attempt = Attempt { number: 0, active: active.to_vec() };
    loop {
        if attempt.active.len() < needed {
            return Err(CollectError::TooFew { left: attempt.active, of, needed }.into());
        }
        let messages = parties.masked(&attempt)?;
        if messages.iter().all(Option::is_some) {
            let (words, commitments) = messages
                .into_iter()
                .flatten()
                .map(|Message { words, commitment }| (words, commitment))
                .unzip();
            return unmask_attempt(total(words, bits)?, commitments, attempt, bits, parties);
        }
        let answered = messages.iter().map(Option::is_some);
        let left =
            attempt.active.iter().zip(answered).filter_map(|(&party, answered)| answered.then_some(party));
        attempt = Attempt { number: attempt.number + 1, active: left.collect() };
    }
}

fn unmask_attempt<W: Word, P: Parties<W>>(
    mut sum: Vec<W>,
    commitments: Vec<Commitment>,
    attempt: Attempt,
    bits: u32,
    parties: &mut P,
) -> Result<Collected<W>, P::Error> {
    let replies = parties.unmaskings(&attempt)?;
    let (mut unmaskings, mut active, mut dropped_out, mut wrong) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((&party, commitment), reply) in attempt.active.iter().zip(commitments).zip(replies) {
        match reply {
            Some(unmasking) if unmasking.commitment() == commitment => {
                unmaskings.push(unmasking);
                active.push(party);
            }
            other => {
                dropped_out.push((party, commitment));
                wrong.extend(other.map(|_| party));
            }
        }
    }
    for (party, commitment) in &dropped_out {
        let reconstructed = parties.reconstruct(&attempt, *party, &active, commitment);
        let reconstructed = match reconstructed {
            Err(_) if wrong.contains(party) => {
                return Err(CollectError::Unmasking { party: party + 1 }.into());
            }
            reconstructed => reconstructed?,
        };
        unmaskings.push(reconstructed.unmasking);
        wrong.extend(reconstructed.wrong);
    }
    unmask(&mut sum, &unmaskings, bits);
    wrong.sort_unstable();
    wrong.dedup();
    let dropped_out = dropped_out.into_iter().map(|(party, _)| party).collect();
    Ok(Collected { sum, attempt, dropped_out, wrong })
}

/// Returns the sum of all messages modulo 2^bits. It still contains the parties' private masks.
pub fn total<W: Word>(messages: Vec<Vec<W>>, bits: u32) -> Result<Vec<W>, CollectError> {
    let mut messages = messages.into_iter();
    let mut sum = messages.next().unwrap_or_default();
    for message in messages {
        if message.len() != sum.len() {
            return Err(CollectError::Length { expected: sum.len(), found: message.len() });
        }
        sum.iter_mut().zip(message).for_each(|(all, one)| *all = all.plus(one));
    }
    sum.iter_mut().for_each(|word| *word = word.low(bits));
    Ok(sum)
}
