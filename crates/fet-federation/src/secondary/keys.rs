//! Key agreement of a secondary for secure aggregation: the messages of
//! [`fet_privacy::secure_sum::Participant`].

use fet_core::message::{Age, Agreed, Backups, Confirmed, PublicKeys, SignedKey};
use fet_privacy::secure_sum::{self, Participant, PublicKey, SEALED_SHARE, SumError, Terms};
use zeroize::Zeroizing;

use super::{SecondaryError, Session};
use crate::lifetime::Known;
use crate::state_file::StateError;

/// File of the ages of other parties' lifetime accounts, in the party's own folder.
pub(super) const OTHERS: &str = "lifetimes-of-others.json";
/// Length of a signature in bytes.
const SIGNATURE: usize = 64;

impl Session {
    /// Makes a key for secure aggregation, from the operating system's randomness. A sum does not depend on
    /// its masks, so that runs with noise from the experiment's seed remain repeatable.
    pub(super) fn make_key(&mut self) -> Result<SignedKey, SecondaryError> {
        if self.sums.as_ref().is_some_and(|sums| !sums.parties().is_empty()) {
            return Err(SumError::AgreedAlready.into());
        }
        let secret = match self.seed.key_secret() {
            Some(secret) => secret,
            None => {
                let mut secret = Zeroizing::new([0u8; 32]);
                getrandom::fill(&mut secret[..])
                    .map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
                secret
            }
        };
        let terms = Terms {
            context: self.common,
            roster: self.roster.clone(),
            least: self.validator.least_summed(),
            colluding: self.privacy.colluding(),
        };
        let participant = Participant::new(self.number - 1, *secret, terms);
        let age =
            self.account.lifetime.as_ref().map_or_else(Age::default, |lifetime| lifetime.standing().age);
        let secure_sum::SignedKey { key, signature, .. } =
            participant.signed_key(&self.identity, [age.found, age.now]);
        self.sums = Some(participant);
        Ok(SignedKey { key: key.0, age, signature: signature.to_vec() })
    }

    /// Derives keys from the public keys of the other parties. Every public key must have a signature of a
    /// known identity.
    pub(super) fn agree_on_keys(&mut self, message: &PublicKeys) -> Result<Agreed, SecondaryError> {
        if message.keys.len() != message.parties.len() {
            let rule = format!("must be one for each of {} parties", message.parties.len());
            let value = message.keys.len().to_string();
            return Err(SecondaryError::Message { field: "keys", rule, value });
        }
        self.check_parties("parties", &message.parties)?;
        let mut keys = Vec::with_capacity(message.keys.len());
        for (&party, SignedKey { key, age, signature }) in message.parties.iter().zip(&message.keys) {
            let unsigned = SumError::Unsigned { party: party as usize + 1 };
            let signature = signature.as_slice().try_into().map_err(|_| unsigned)?;
            let numbers = [age.found, age.now];
            keys.push((party as usize, secure_sum::SignedKey { key: PublicKey(*key), numbers, signature }));
        }
        let sums = self.sums.as_mut().ok_or(SumError::NotAgreed)?;
        let secure_sum::Agreed { sealed, signature } = sums.agree(&keys, &self.identity)?;
        self.see_ages(message)?;
        let parties = sealed.iter().map(|(party, _)| *party as u32).collect();
        let sealed = sealed.into_iter().flat_map(|(_, sealed)| sealed).collect();
        Ok(Agreed { backups: Backups { parties, sealed }, signature: signature.to_vec() })
    }

    /// Remembers the signed ages of the other parties' lifetime accounts; refuses an account that was older
    /// before.
    fn see_ages(&self, message: &PublicKeys) -> Result<(), SecondaryError> {
        let Some(lifetime) = &self.account.lifetime else { return Ok(()) };
        let path = lifetime.folder().join(OTHERS);
        let failed = |problem: String| StateError::Io { path: path.display().to_string(), problem };
        let (mut known, mut seen) = (Known::read(&path).map_err(failed)?, Ok(()));
        let own = self.number as u32 - 1;
        let others = message.parties.iter().zip(&message.keys).filter(|(party, _)| **party != own);
        for (&party, key) in others {
            let identity = format!("{:?}", self.roster[party as usize]);
            let old = |source| SecondaryError::OldAccount { party: party as usize + 1, source };
            seen = seen.and(known.see(&identity, key.age).map_err(old));
        }
        known.keep().map_err(|error| failed(error.to_string()))?;
        seen
    }

    /// Records that all parties received the same keys, and stores the key shares of the others' secrets.
    pub(super) fn keep_backups(&mut self, message: &Confirmed) -> Result<(), SecondaryError> {
        let sums = self.sums.as_mut().ok_or(SumError::NotAgreed)?;
        let Backups { parties, sealed } = &message.backups;
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
}
