//! A secondary's part in secure aggregation: the key agreement of [`fet_privacy::secure_sum::Participant`],
//! and the masks of its messages.
//!
//! The party masks its message, unmasks one attempt, and helps to unmask the attempt for a party that dropped
//! out.

use fet_core::message::{Agreed, Confirmed, KeyShares, PublicKeys, Reveal, Round, SignedKey, Unmask};
use fet_privacy::secure_sum::{
    self, Commitment, Participant, PublicKey, SEALED_SHARE, SumError, SumId, Terms, Word,
};
use zeroize::Zeroizing;

use super::error::SecondaryError;
use super::lifetime::Spending;
use super::session::Session;
use crate::federation::PartyIndex;

/// Length of a signature in bytes.
const SIGNATURE: usize = 64;

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

/// Makes a key for secure aggregation, from the operating system's randomness. A sum does not depend on
/// its masks, so that runs with noise from the experiment's seed remain repeatable.
pub(super) fn make_key(session: &mut Session) -> Result<SignedKey, SecondaryError> {
    if session.release.participant.as_ref().is_some_and(|sums| !sums.parties().is_empty()) {
        return Err(SumError::AgreedAlready.into());
    }
    let secret = match session.credentials.seed.key_secret() {
        Some(secret) => secret,
        None => {
            let mut secret = Zeroizing::new([0u8; 32]);
            getrandom::fill(&mut secret[..])
                .map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
            secret
        }
    };
    let terms = Terms {
        context: session.terms.common,
        roster: session.credentials.roster.clone(),
        least: session.validator.least_summed(),
        colluding: session.privacy.colluding(),
    };
    let participant = Participant::new(session.terms.party.index(), *secret, terms);
    let lifetime = session.release.account.lifetime.as_ref();
    let age = lifetime.map(Spending::age_to_sign).unwrap_or_default();
    let secure_sum::SignedKey { key, signature, .. } =
        participant.signed_key(&session.credentials.identity, [age.found, age.now]);
    session.release.participant = Some(participant);
    Ok(SignedKey { key: key.0, age, signature: signature.to_vec() })
}

/// Derives keys from the public keys of the other parties. Every public key must have a signature of a
/// known identity.
pub(super) fn agree_on_keys(session: &mut Session, message: &PublicKeys) -> Result<Agreed, SecondaryError> {
    if message.keys.len() != message.parties.len() {
        let rule = format!("must be one for each of {} parties", message.parties.len());
        let value = message.keys.len().to_string();
        return Err(SecondaryError::Message { field: "keys", rule, value });
    }
    session.terms.check_parties("parties", &message.parties)?;
    let mut keys = Vec::with_capacity(message.keys.len());
    for (&party, SignedKey { key, age, signature }) in message.parties.iter().zip(&message.keys) {
        let unsigned = SumError::Unsigned { party: PartyIndex::new(party as usize).number() };
        let signature = signature.as_slice().try_into().map_err(|_| unsigned)?;
        let numbers = [age.found, age.now];
        keys.push((party as usize, secure_sum::SignedKey { key: PublicKey(*key), numbers, signature }));
    }
    let sums = session.release.participant.as_mut().ok_or(SumError::NotAgreed)?;
    let secure_sum::Agreed { sealed, signature } = sums.agree(&keys, &session.credentials.identity)?;
    see_ages(session, message)?;
    let parties = sealed.iter().map(|(party, _)| *party as u32).collect();
    let sealed = sealed.into_iter().flat_map(|(_, sealed)| sealed).collect();
    Ok(Agreed { key_shares: KeyShares { parties, sealed }, signature: signature.to_vec() })
}

/// Remembers the signed ages of the other parties' lifetime accounts; refuses an account that was older
/// before this session began.
fn see_ages(session: &Session, message: &PublicKeys) -> Result<(), SecondaryError> {
    let Some(lifetime) = &session.release.account.lifetime else { return Ok(()) };
    let own = session.terms.party.in_message();
    let others = message.parties.iter().zip(&message.keys).filter(|(party, _)| **party != own);
    let identity = |party: u32| format!("{:?}", session.credentials.roster[party as usize]);
    let (numbers, ages): (Vec<_>, Vec<_>) =
        others.map(|(&party, key)| (party as usize, (identity(party), key.age))).unzip();
    match lifetime.see(&ages)? {
        Some((position, source)) => {
            let party = PartyIndex::new(numbers[position]).number();
            Err(SecondaryError::OldAccount { party, source })
        }
        None => Ok(()),
    }
}

/// Records that all parties received the same keys, and stores the key shares of the others' secrets.
pub(super) fn keep_key_shares(session: &mut Session, message: &Confirmed) -> Result<(), SecondaryError> {
    let sums = session.release.participant.as_mut().ok_or(SumError::NotAgreed)?;
    let KeyShares { parties, sealed } = &message.key_shares;
    let refuse = |field, each, found: usize, count: usize| {
        let rule = format!("must be {each} bytes for each party");
        Err(SecondaryError::Message { field, rule, value: format!("{found} bytes of {count}") })
    };
    if sealed.len() != SEALED_SHARE * parties.len() {
        return refuse("sealed", SEALED_SHARE, sealed.len(), parties.len());
    }
    let agreed = sums.parties().to_vec();
    if message.signatures.len() != SIGNATURE * agreed.len() {
        return refuse("signatures", SIGNATURE, message.signatures.len(), agreed.len());
    }
    let sealed: Vec<(usize, &[u8])> =
        parties.iter().map(|&party| party as usize).zip(sealed.chunks_exact(SEALED_SHARE)).collect();
    let (signatures, _) = message.signatures.as_chunks::<SIGNATURE>();
    let signatures: Vec<_> = agreed.into_iter().zip(signatures.iter().copied()).collect();
    Ok(sums.confirm(&sealed, &signatures)?)
}

/// Refuses an attempt over too few of the round's scheduled parties.
pub(super) fn check_quorum(session: &Session, round: Round, active: &[u32]) -> Result<(), SecondaryError> {
    let sums = session.release.participant.as_ref().ok_or(SumError::NotAgreed)?;
    Ok(sums.check_quorum(&indices(active), &session.validator.scheduled(round))?)
}

/// Masks words for a sum, and returns the commitment to the mask.
pub(super) fn mask<W: Word>(
    session: &mut Session,
    words: &mut [W],
    bits: u32,
    attempt: &Attempt<'_>,
    name: u32,
) -> Result<Commitment, SecondaryError> {
    let degree = session.method.sum.ok_or(SumError::NotAgreed)?.degree;
    let sums = session.release.participant.as_mut().ok_or(SumError::NotAgreed)?;
    let Attempt { round, number, over, .. } = *attempt;
    let (active, scheduled) = (indices(attempt.active), session.validator.scheduled(round));
    let id = SumId { round: round.key(), name, attempt: number, active: &active, over, bits, degree };
    Ok(sums.mask(words, &id, &scheduled)?)
}

/// Unmasks the party's last message of a sum; the other attempts at that sum stay masked forever.
pub(super) fn unmask(session: &mut Session, message: Unmask) -> Result<[u8; 32], SecondaryError> {
    let not_sent = SumError::NotSent { attempt: message.attempt };
    let unmasking =
        session.release.participant.as_mut().ok_or(not_sent)?.unmask(message.round.key(), message.attempt)?;
    session.validator.unmasked(message.round);
    Ok(unmasking.0)
}

/// Returns the key share's contribution to unmasking the attempt that this party has unmasked, for a
/// party that dropped out before it unmasked its own message. The party counts as dropped out from then
/// on.
pub(super) fn reveal(session: &mut Session, message: Reveal) -> Result<[u8; 32], SecondaryError> {
    let (party, attempt) = (message.party as usize, message.attempt);
    let sums = session.release.participant.as_ref().ok_or(SumError::NotSent { attempt })?;
    let evaluation = sums.reveal(message.round.key(), attempt, party)?;
    session.validator.drop_out(party);
    Ok(evaluation)
}
