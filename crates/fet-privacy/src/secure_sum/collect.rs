//! One sum from the receiver's side: ask, and ask again without those who did not answer.
//!
//! Whether a party takes part is decided before a round. One that vanishes within it leaves masks that nobody else
//! knows: what the others sent is still uniform to the receiver, and no key is revealed to undo it. The round is
//! done again among the others, each with masks of the new attempt and, being fewer, with noise anew. The failed
//! attempt's messages are never summed; each is masked by streams that no other attempt uses.

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
}

/// Why there is no sum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// Too few parties for a sum to hide anything.
    #[error(
        "a secure sum needs two parties or more; {left} of {of} are left: the sum would be the value itself"
    )]
    TooFew {
        /// How many are left.
        left: usize,
        /// How many there were.
        of: usize,
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

/// Sums what `ask` gets from each active party; where that is nothing, leaves the party out and starts again.
pub fn collect<W: Word, E: From<CollectError>>(
    active: &[usize],
    bits: u32,
    mut ask: impl FnMut(&Attempt) -> Result<Vec<Option<Vec<W>>>, E>,
) -> Result<Collected<W>, E> {
    let of = active.len();
    let mut attempt = Attempt { number: 0, active: active.to_vec() };
    loop {
        if attempt.active.len() < 2 {
            return Err(CollectError::TooFew { left: attempt.active.len(), of }.into());
        }
        let messages = ask(&attempt)?;
        if messages.iter().all(Option::is_some) {
            let messages: Vec<Vec<W>> = messages.into_iter().flatten().collect();
            return Ok(Collected { sum: total(messages, bits)?, attempt });
        }
        let answered = messages.iter().map(Option::is_some);
        let left = attempt.active.iter().zip(answered).filter_map(|(&party, here)| here.then_some(party));
        attempt = Attempt { number: attempt.number + 1, active: left.collect() };
    }
}

/// The sum of all messages modulo 2^bits.
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
