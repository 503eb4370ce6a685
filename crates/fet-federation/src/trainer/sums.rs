//! The primary's side of secure aggregation: requests masked messages, has one attempt unmasked, and has the
//! other parties help to unmask for a party that dropped out.

use fet_core::aggregator::SecureSum;
use fet_core::message::{Forward, Masked, Open, Reply, Request, Reveal, Round, ShareParameters, Words};
use fet_privacy::secure_sum::{
    Attempt, Commitment, Message, Opening, Parties, Recovered, SumId, holders, quorum, recover,
};

use super::{RunError, Trainer};
use crate::federation::{Asked, PartyError, Problem};
use crate::secret_sum;

/// Returns indices of rows or parties in the form of messages.
pub(super) fn short(numbers: &[usize]) -> Vec<u32> {
    numbers.iter().map(|&number| number as u32).collect()
}

/// A secure aggregation of representations.
pub(super) struct Parts<'a> {
    pub(super) trainer: &'a mut Trainer,
    pub(super) round: Round,
    pub(super) rows: &'a [u32],
    pub(super) shape: [usize; 3],
    pub(super) sum: SecureSum,
}

impl Parts<'_> {
    fn bits(&self, attempt: &Attempt) -> Result<u32, RunError> {
        let form = self.trainer.privacy.form(attempt.active.len(), self.shape[1] * self.shape[2]);
        Ok(secret_sum::units(self.sum, form, attempt.active.len())?.bits)
    }
}

impl Parties<u32> for Parts<'_> {
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
        let answered = self.trainer.federation.exchange(&attempt.active, requests)?;
        self.trainer.progress.released += 1;
        let shape = self.shape;
        let words = answered.into_iter().map(|(asked, reply)| match reply {
            Some(Reply::Masked(masked)) => Ok(Some(words(asked, masked, shape, bits)?)),
            Some(other) => Err(asked.unexpected(&other)),
            None => Ok(None),
        });
        Ok(words.collect::<Result<_, PartyError>>()?)
    }

    fn opened(&mut self, attempt: &Attempt) -> Result<Vec<Option<Opening>>, RunError> {
        self.trainer.open(self.round, attempt)
    }

    fn recovered(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Recovered, RunError> {
        let over = secret_sum::over_rows(self.rows, self.shape);
        let id = SumId {
            round: self.round.key(),
            name: secret_sum::REPRESENTATION,
            attempt: attempt.number,
            active: &attempt.active,
            over,
            bits: self.bits(attempt)?,
            degree: self.sum.degree,
        };
        self.trainer.recover(self.round, party, others, commitment, &id)
    }
}

/// A secure aggregation of the parameters that the method averages.
pub(super) struct SharedParameters<'a> {
    pub(super) trainer: &'a mut Trainer,
    pub(super) round: Round,
    pub(super) length: usize,
    pub(super) degree: usize,
}

impl Parties<u64> for SharedParameters<'_> {
    type Error = RunError;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u64>>>, RunError> {
        let active = short(&attempt.active);
        let message = ShareParameters { round: self.round, active, attempt: Some(attempt.number) };
        let requests = vec![Request::ShareParameters(message); attempt.active.len()];
        let answered = self.trainer.federation.exchange(&attempt.active, requests)?;
        let words = answered.into_iter().map(|(asked, reply)| match reply {
            Some(Reply::MaskedParameters(Words { words, commitment })) if words.len() == self.length => {
                Ok(Some(Message { words, commitment }))
            }
            Some(Reply::MaskedParameters(message)) => {
                Err(asked.wrong("words", format!("must be {}", self.length), message.words.len()))
            }
            Some(other) => Err(asked.unexpected(&other)),
            None => Ok(None),
        });
        Ok(words.collect::<Result<_, PartyError>>()?)
    }

    fn opened(&mut self, attempt: &Attempt) -> Result<Vec<Option<Opening>>, RunError> {
        self.trainer.open(self.round, attempt)
    }

    fn recovered(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Recovered, RunError> {
        let id = SumId {
            round: self.round.key(),
            name: secret_sum::PARAMETERS,
            attempt: attempt.number,
            active: &attempt.active,
            over: secret_sum::over_parameters(self.length),
            bits: secret_sum::parameters(attempt.active.len())?.bits,
            degree: self.degree,
        };
        self.trainer.recover(self.round, party, others, commitment, &id)
    }
}

impl Trainer {
    /// Has the parties of an attempt unmask their own messages.
    fn open(&mut self, round: Round, attempt: &Attempt) -> Result<Vec<Option<Opening>>, RunError> {
        let request = Request::Open(Open { round, attempt: attempt.number });
        let requests = vec![request; attempt.active.len()];
        let answered = self.federation.exchange(&attempt.active, requests)?;
        let openings = answered.into_iter().map(|(asked, reply)| match reply {
            Some(Reply::Opening(opening)) => Ok(Some(Opening(opening))),
            Some(other) => Err(asked.unexpected(&other)),
            None => Ok(None),
        });
        Ok(openings.collect::<Result<_, PartyError>>()?)
    }

    /// Reconstructs the mask of a party that dropped out, from the key shares of `others`. A party that
    /// refuses or sends an invalid reply contributes nothing.
    fn recover(
        &mut self,
        round: Round,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
        id: &SumId<'_>,
    ) -> Result<Recovered, RunError> {
        // Parties that took no part in the sum have unmasked no message, and reveal no key share.
        let ask = holders(others, party);
        let request = Request::Reveal(Reveal { round, attempt: id.attempt, party: party as u32 });
        let answers = self.federation.ask_each(&ask, vec![request; ask.len()]);
        let share = |(&holder, (_, answer)): (&usize, (Asked, Result<Reply, Problem>))| match answer {
            Ok(Reply::Share(share)) => Some((holder, share)),
            _ => None,
        };
        let shares: Vec<_> = ask.iter().zip(answers).filter_map(share).collect();
        let needed = quorum(self.agreed.len(), self.privacy.colluding());
        Ok(recover(party, needed, &shares, commitment, id)?)
    }

    /// Returns the minimum number of parties for secure aggregation in a round.
    pub(super) fn fewest(&self, round: Round) -> usize {
        let scheduled = self.schedule.active(round);
        let of = scheduled.iter().filter(|party| self.agreed.contains(party)).count();
        quorum(of, self.privacy.colluding())
    }

    /// Warns of the parties that dropped out after the first `before`, if sums without noise differ by their
    /// parts.
    pub(super) fn note_smaller_sums(&mut self, before: usize) {
        let gone: Vec<usize> = self.progress.gone.iter().skip(before).copied().collect();
        for party in gone.into_iter().filter(|_| self.privacy.is_identity()) {
            let name = self.federation.name(party);
            let warning = format!(
                "party {} (\"{name}\") dropped out, and `privacy.kind` is \"none\": secure sums over \
                 the same rows with and without this party differ by its part, which the primary can \
                 compute",
                party + 1
            );
            self.warnings.push(warning.clone());
            self.progress.warnings.push(warning);
        }
    }

    /// Records the parties that dropped out while a sum was unmasked, and the parties that sent invalid
    /// values.
    pub(super) fn note_opening(&mut self, round: Round, lost: Vec<usize>, wrong: &[usize]) {
        self.progress.gone.extend(lost);
        for &party in wrong {
            let name = self.federation.name(party);
            let warning = format!(
                "party {} (\"{name}\") sent an invalid mask or key share for the secure sum of {round}; \
                 the sum is correct without it",
                party + 1
            );
            self.warnings.push(warning.clone());
            self.progress.warnings.push(warning);
        }
    }
}

/// Returns the words of a masked part, if it has the form of the sum.
fn words(asked: Asked, masked: Masked, shape: [usize; 3], bits: u32) -> Result<Message<u32>, PartyError> {
    let length = shape.iter().product::<usize>();
    if (masked.shape, masked.words.len(), masked.bits) != (shape, length, bits) {
        let rule = format!("must have the shape {shape:?}, {length} words of {bits} bits");
        let value = format!("{:?}, {} words of {} bits", masked.shape, masked.words.len(), masked.bits);
        return Err(asked.wrong("words", rule, value));
    }
    Ok(Message { words: masked.words, commitment: masked.commitment })
}
