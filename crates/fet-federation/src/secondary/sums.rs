//! A secondary's part in secure aggregation: it masks, unmasks one attempt, and helps to unmask the attempt
//! for a party that dropped out.

use fet_core::message::{Open, Reveal, Round};
use fet_privacy::secure_sum::{Commitment, SumError, SumId, Word};

use super::{SecondaryError, Session};

/// A request to take part in a secure aggregation.
pub(super) struct Attempt<'a> {
    pub(super) round: Round,
    pub(super) active: &'a [u32],
    pub(super) number: u32,
    /// Digest of the summed content.
    pub(super) over: [u8; 32],
}

fn indices(parties: &[u32]) -> Vec<usize> {
    parties.iter().map(|&party| party as usize).collect()
}

impl Session {
    /// Refuses an attempt over too few of the round's scheduled parties.
    pub(super) fn check_quorum(&self, round: Round, active: &[u32]) -> Result<(), SecondaryError> {
        let sums = self.sums.as_ref().ok_or(SumError::NotAgreed)?;
        Ok(sums.check_quorum(&indices(active), &self.validator.scheduled(round))?)
    }

    pub(super) fn mask<W: Word>(
        &mut self,
        words: &mut [W],
        bits: u32,
        attempt: &Attempt<'_>,
        name: u32,
    ) -> Result<Commitment, SecondaryError> {
        let degree = self.sum.ok_or(SumError::NotAgreed)?.degree;
        let sums = self.sums.as_mut().ok_or(SumError::NotAgreed)?;
        let Attempt { round, number, over, .. } = *attempt;
        let (active, scheduled) = (indices(attempt.active), self.validator.scheduled(round));
        let id = SumId { round: round.key(), name, attempt: number, active: &active, over, bits, degree };
        Ok(sums.mask(words, &id, &scheduled)?)
    }

    /// Unmasks the party's last message of a sum; the other attempts at that sum stay masked forever.
    pub(super) fn open(&mut self, message: Open) -> Result<[u8; 32], SecondaryError> {
        let not_sent = SumError::NotSent { attempt: message.attempt };
        let opening = self.sums.as_mut().ok_or(not_sent)?.open(message.round.key(), message.attempt)?;
        self.validator.opened(message.round);
        Ok(opening.0)
    }

    /// Returns the key share's contribution to unmasking the attempt that this party has unmasked, for a
    /// party that dropped out before it unmasked its own message. The party counts as dropped out from then
    /// on.
    pub(super) fn reveal(&mut self, message: Reveal) -> Result<[u8; 32], SecondaryError> {
        let (party, attempt) = (message.party as usize, message.attempt);
        let sums = self.sums.as_ref().ok_or(SumError::NotSent { attempt })?;
        let evaluation = sums.reveal(message.round.key(), attempt, party)?;
        self.validator.lost(party);
        Ok(evaluation)
    }
}
