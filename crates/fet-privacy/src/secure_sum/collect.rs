//! One sum from the receiver's side: ask for masked messages, ask again without those who did not answer, and have
//! the masks of one attempt opened.
//!
//! A party opens one attempt at a sum and no other, so that of all attempts one sum becomes known at most: whoever claims that
//! a party has vanished, or gets its message late, does not learn two sums of one round that differ by that party's part. A party that
//! vanishes before the opening is left out and the round is done again. One that vanishes within the opening, or opens its
//! message wrongly, stays in the sum: the others open its mask from the shares that they keep ([`super::recover`]).

use super::backup::Recovered;
use super::member::unmask;
use super::prf::{Commitment, Opening};
use super::word::Word;

/// One attempt at a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Counted from 0; it keys the masks.
    pub number: u32,
    /// Who takes part, ascending.
    pub active: Vec<usize>,
}

/// A sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected<W> {
    /// The sum modulo 2^bits.
    pub sum: Vec<W>,
    /// Who took part in it, and at which attempt.
    pub attempt: Attempt,
    /// Who took part and has vanished since, or opened its message wrongly.
    pub lost: Vec<usize>,
    /// Who sent an opening, or a share of one, that does not fit.
    pub wrong: Vec<usize>,
}

/// A masked message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<W> {
    /// Modulo 2^bits.
    pub words: Vec<W>,
    /// To the opening.
    pub commitment: Commitment,
}

/// Why there is no sum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// Too few parties for a sum to hide anything.
    #[error("a secure sum needs {needed} parties or more here; {} of {of} are left", left.len())]
    TooFew {
        /// Who is left.
        left: Vec<usize>,
        /// How many there were.
        of: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A party opened its message wrongly, and the others cannot open it in its place.
    #[error(
        "party {party} sent an opening that is not the one that its message commits to, and the others could not open the message in \
         its place"
    )]
    Opening {
        /// The party, from 1.
        party: usize,
    },
    /// Messages of different lengths.
    #[error("a party sent {found} words, not {expected}")]
    Length {
        /// How many the first sent.
        expected: usize,
        /// How many another sent.
        found: usize,
    },
}

/// How a receiver reaches the parties. A reply is nothing where a party has vanished.
pub trait Parties<W> {
    /// What can go wrong.
    type Error: From<CollectError>;

    /// The masked message of each active party.
    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<W>>>, Self::Error>;

    /// The opening of each active party's own mask.
    fn opened(&mut self, attempt: &Attempt) -> Result<Vec<Option<Opening>>, Self::Error>;

    /// The opening of the mask of `party`, which vanished, by `others`.
    fn recovered(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Recovered, Self::Error>;
}

/// Sums what the active parties send, without those who vanish before they have sent it, while `needed` are left, two at
/// least ([`super::quorum`]).
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
            return open(total(words, bits)?, commitments, attempt, bits, parties);
        }
        let answered = messages.iter().map(Option::is_some);
        let left = attempt.active.iter().zip(answered).filter_map(|(&party, here)| here.then_some(party));
        attempt = Attempt { number: attempt.number + 1, active: left.collect() };
    }
}

fn open<W: Word, P: Parties<W>>(
    mut sum: Vec<W>,
    commitments: Vec<Commitment>,
    attempt: Attempt,
    bits: u32,
    parties: &mut P,
) -> Result<Collected<W>, P::Error> {
    let replies = parties.opened(&attempt)?;
    let (mut openings, mut here, mut lost, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((&party, commitment), reply) in attempt.active.iter().zip(commitments).zip(replies) {
        match reply {
            Some(opening) if opening.commitment() == commitment => {
                openings.push(opening);
                here.push(party);
            }
            other => {
                lost.push((party, commitment));
                wrong.extend(other.map(|_| party));
            }
        }
    }
    for (party, commitment) in &lost {
        let recovered = parties.recovered(&attempt, *party, &here, commitment);
        let recovered = match recovered {
            Err(_) if wrong.contains(party) => return Err(CollectError::Opening { party: party + 1 }.into()),
            recovered => recovered?,
        };
        openings.push(recovered.opening);
        wrong.extend(recovered.wrong);
    }
    unmask(&mut sum, &openings, bits);
    wrong.sort_unstable();
    wrong.dedup();
    let lost = lost.into_iter().map(|(party, _)| party).collect();
    Ok(Collected { sum, attempt, lost, wrong })
}

/// The sum of all messages modulo 2^bits; it still bears the parties' own masks.
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
