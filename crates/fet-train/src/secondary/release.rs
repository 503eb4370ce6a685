//! What a secondary sends: noisy representations, alone or hidden in a sum, and averaged parameters.

use fet_core::message::{
    Backup, Backups, Block, Forward, LoadParameters, Masked, Open, PublicKeys, Reply, Reveal, Round,
    ShareParameters, SignedKey, Words,
};
use fet_core::parameters::Parameters;
use fet_core::privacy::{Release, Share};
use fet_core::rng::Purpose;
use fet_privacy::secure_sum::{Member, PublicKey, SumId, Word, holders};
use sha2::{Digest, Sha256};

use super::guard::Asked;
use super::{SecondaryError, Session};
use crate::secret_sum::{self, PARAMETER_RANGE, PARAMETERS, REPRESENTATION, SIGNS_KEY};

/// A secret sum that the party is asked to take part in.
struct Attempt<'a> {
    round: Round,
    active: &'a [u32],
    number: u32,
    /// A digest of what the sum is over.
    over: [u8; 32],
}

/// A message of a secret sum that has left.
pub(super) struct Sent {
    open: Open,
    name: u32,
    active: Vec<usize>,
    over: [u8; 32],
    bits: u32,
    degree: usize,
    /// Whether its mask was taken off.
    opened: bool,
}

impl Sent {
    fn id(&self) -> SumId<'_> {
        SumId {
            round: self.open.round.key(),
            name: self.name,
            attempt: self.open.attempt,
            active: &self.active,
            over: self.over,
            bits: self.bits,
            degree: self.degree,
        }
    }
}

impl Session {
    /// A key for secret sums, from the operating system's randomness. A sum does not depend on its masks, so runs still
    /// repeat.
    pub(super) fn make_key(&mut self) -> Result<SignedKey, SecondaryError> {
        if !self.agreed.is_empty() {
            return Err(SecondaryError::AgreedAlready);
        }
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
        let member = Member::from_secret(self.number - 1, secret);
        let (key, commitment) = (member.public().0, member.commitment());
        let message = secret_sum::signed_key(&self.settings_hash, self.number, &key, &commitment);
        let signature = self.identity.sign(SIGNS_KEY, &message).to_vec();
        self.member = Some(member);
        Ok(SignedKey { key, commitment, signature })
    }

    /// Derives keys from those of the others, all of which bear the signatures of the identities that it knows.
    pub(super) fn agree_on_keys(&mut self, message: &PublicKeys) -> Result<Backups, SecondaryError> {
        if message.keys.len() != message.parties.len() {
            let rule = format!("must be one for each of {} parties", message.parties.len());
            let value = message.keys.len().to_string();
            return Err(SecondaryError::Message { field: "keys", rule, value });
        }
        self.check_parties("parties", &message.parties)?;
        if !self.agreed.is_empty() {
            return Err(SecondaryError::AgreedAlready);
        }
        let mut all = vec![None; self.parties];
        let mut context = self.settings_hash.to_vec();
        for (&party, signed) in message.parties.iter().zip(&message.keys) {
            let number = party as usize + 1;
            let SignedKey { key, commitment, signature } = signed;
            let bytes = secret_sum::signed_key(&self.settings_hash, number, key, commitment);
            let identity = self.roster.get(number - 1).ok_or(SecondaryError::Unsigned { party: number })?;
            let sound = signature.as_slice().try_into().is_ok_and(|s| identity.signed(SIGNS_KEY, &bytes, s));
            if !sound {
                return Err(SecondaryError::Unsigned { party: number });
            }
            all[party as usize] = Some(PublicKey(*key));
            context.extend(commitment);
        }
        let own = message.parties.iter().position(|&party| party as usize == self.number - 1);
        let member = self.member.as_mut().ok_or(SecondaryError::NoKeys)?;
        if own.is_none_or(|place| message.keys[place].key != member.public().0) {
            return Err(SecondaryError::Unsigned { party: self.number });
        }
        member.agree(&all, &context).map_err(|party| SecondaryError::BadKey { party: party + 1 })?;
        self.agreed = message.parties.clone();
        let parties: Vec<usize> = self.agreed.iter().map(|&party| party as usize).collect();
        let sealed = member.backups(&parties).concat();
        let holders = holders(&parties, self.number - 1).into_iter().map(|party| party as u32).collect();
        Ok(Backups { parties: holders, sealed })
    }

    /// Keeps the shares of the others' secrets.
    pub(super) fn keep_backups(&mut self, message: &Backups) -> Result<(), SecondaryError> {
        let member =
            self.member.as_mut().filter(|_| !self.agreed.is_empty()).ok_or(SecondaryError::NoKeys)?;
        let count = message.parties.len();
        let known = message.parties.iter().all(|party| self.agreed.binary_search(party).is_ok());
        if !known || count == 0 || !message.sealed.len().is_multiple_of(count) || message.sealed.is_empty() {
            let rule =
                "must be shares of one length, each of a party that keys were agreed on with".to_string();
            let value = format!("{} bytes of {count} parties", message.sealed.len());
            return Err(SecondaryError::Message { field: "sealed", rule, value });
        }
        let shares = message.sealed.chunks_exact(message.sealed.len() / count);
        for (&party, sealed) in message.parties.iter().zip(shares) {
            member.keep_backup(party as usize, sealed)?;
        }
        Ok(())
    }

    /// Takes its own mask off its last message of a sum; that sum's other attempts stay masked for ever.
    pub(super) fn open(&mut self, message: Open) -> Result<[u8; 32], SecondaryError> {
        let not_sent = SecondaryError::NotSent { round: message.round, attempt: message.attempt };
        let (Some(sent), Some(member)) = (&mut self.sent, &self.member) else { return Err(not_sent) };
        if sent.open != message {
            return Err(not_sent);
        }
        sent.opened = true;
        self.guard.opened(message.round);
        Ok(member.opening(&sent.id()).0)
    }

    /// Gives the share that it keeps of the secret of a party that vanished before it opened its message of an attempt that
    /// this party has opened. That party is gone from then on.
    pub(super) fn reveal(&mut self, message: Reveal) -> Result<Backup, SecondaryError> {
        let open = Open { round: message.round, attempt: message.attempt };
        let party = message.party as usize;
        let took_part = |sent: &&Sent| {
            sent.open == open && sent.opened && party != self.number - 1 && sent.active.contains(&party)
        };
        let not_sent = SecondaryError::NotSent { round: message.round, attempt: message.attempt };
        self.sent.as_ref().filter(took_part).ok_or(not_sent)?;
        // A share opens every attempt of a party. Whoever had enough shares of all could open two attempts at a sum.
        if self.revealed.is_some_and(|revealed| revealed != party) {
            return Err(SecondaryError::RevealedAlready);
        }
        let share = self.member.as_ref().and_then(|member| member.backup_of(party));
        let share = share.ok_or(SecondaryError::NoBackup { party: party + 1 })?.to_vec();
        self.revealed = Some(party);
        self.guard.lost(party);
        Ok(Backup(share))
    }

    /// Refuses a set of parties that this one does not belong to.
    fn check_parties(&self, field: &'static str, parties: &[u32]) -> Result<(), SecondaryError> {
        let own = self.number as u32 - 1;
        let sound = parties.is_sorted_by(|a, b| a < b)
            && parties.last().is_some_and(|&last| (last as usize) < self.parties)
            && parties.binary_search(&own).is_ok();
        if sound {
            return Ok(());
        }
        let rule = format!("must name party {own} and others below {}, ascending", self.parties);
        Err(SecondaryError::Message { field, rule, value: shortened(parties.iter()) })
    }

    /// Refuses a set of parties that this one does not belong to, and an attempt that does not fit the aggregator.
    pub(super) fn check_active(
        &self,
        round: Round,
        active: &[u32],
        attempt: Option<u32>,
    ) -> Result<(), SecondaryError> {
        if !round.is_sound() || attempt.is_some_and(|attempt| attempt >= 1 << 20) {
            let rule = "must be a valid round and attempt of this run".to_string();
            let value = format!("{round}, attempt {attempt:?}");
            return Err(SecondaryError::Message { field: "round", rule, value });
        }
        self.check_parties("active", active)?;
        if attempt.is_some() != self.sum.is_some() {
            let rule = "must be present if and only if the aggregator sees only sums".to_string();
            return Err(SecondaryError::Message { field: "attempt", rule, value: format!("{attempt:?}") });
        }
        if attempt.is_some() && active.len() < 2 {
            return Err(SecondaryError::Alone);
        }
        Ok(())
    }

    /// The bounded representation as it is sent.
    pub(super) fn release(
        &mut self,
        bounded: Vec<f32>,
        shape: [usize; 3],
        message: &Forward,
    ) -> Result<Reply, SecondaryError> {
        let block = |values| Block::new(shape, values).expect("a tensor fills its shape");
        let over = secret_sum::over_rows(&message.rows, shape);
        let attempt = message.attempt.map(|number| Attempt {
            round: message.round,
            active: &message.active,
            number,
            over,
        });
        if self.privacy.is_identity() && attempt.is_none() {
            return Ok(Reply::Representation(block(bounded)));
        }
        // Another attempt at a round is another release: its noise is drawn anew.
        let number = u64::from(message.attempt.unwrap_or(0));
        let mut drawn_from = content(&over, &message.active, &[]);
        if !self.privacy.is_identity() {
            let released = content(&over, &message.active, &bounded);
            self.count(message, &released)?;
            // A simulated seed is no secret: its noise does not follow from the values, so that devices that round
            // differently can be compared.
            if !self.seed.is_simulated() {
                drawn_from = released;
            }
        }
        let round = message.round.key() ^ (number << 40);
        let mut noise = self.seed.stream_over(Purpose::Noise, round, &drawn_from);
        let mut release = Release {
            active: message.active.len(),
            summed: attempt.is_some(),
            block: shape[1] * shape[2],
            noise: &mut noise,
        };
        let share = self.privacy.share(bounded, &mut release);
        if let Some(attempt) = &attempt {
            return self.hide(share, shape, attempt).map(Reply::Masked);
        }
        let values = match share {
            Share::Floats(values) => values,
            Share::Integers { values, scale } => {
                values.into_iter().map(|units| (f64::from(units) / scale) as f32).collect()
            }
        };
        Ok(Reply::Representation(block(values)))
    }

    fn hide(
        &mut self,
        share: Share,
        shape: [usize; 3],
        attempt: &Attempt<'_>,
    ) -> Result<Masked, SecondaryError> {
        let sum = self.sum.ok_or(SecondaryError::NoKeys)?;
        let active = attempt.active.len();
        let form = self.privacy.form(active, shape[1] * shape[2]);
        let units = secret_sum::units(sum, form, active)?;
        let mut words: Vec<u32> = match share {
            Share::Integers { values, .. } => values.into_iter().map(|value| value as u32).collect(),
            Share::Floats(values) => {
                let range = if form.is_none() { sum.range } else { f64::INFINITY };
                check_range(&values, range, "representation")?;
                values.into_iter().map(|value| u32::from_signed(units.round(value))).collect()
            }
        };
        self.mask(&mut words, units.bits, attempt, REPRESENTATION)?;
        Ok(Masked { shape, words, bits: units.bits })
    }

    /// The parameters that the method averages, in the clear or hidden in a sum.
    pub(super) fn share_parameters(&mut self, message: ShareParameters) -> Result<Reply, SecondaryError> {
        let asked = Asked::Share(message.clone());
        if let Some(reply) = self.guard.repeated(&asked) {
            return Ok(reply);
        }
        let parameters = self.shared_parameters()?;
        self.check_active(message.round, &message.active, message.attempt)?;
        self.guard.admit(message.round, None, &message.active, message.attempt)?;
        let reply = self.shared(&message, parameters)?;
        self.guard.answered(asked, &reply);
        Ok(reply)
    }

    fn shared(&mut self, message: &ShareParameters, parameters: Parameters) -> Result<Reply, SecondaryError> {
        let Some(number) = message.attempt else { return Ok(Reply::Parameters(parameters)) };
        let over = secret_sum::over_parameters(parameters.values().len());
        let attempt = Attempt { round: message.round, active: &message.active, number, over };
        let units = secret_sum::parameters(attempt.active.len())?;
        check_range(parameters.values(), PARAMETER_RANGE, "parameter")?;
        let mut words: Vec<u64> =
            parameters.values().iter().map(|&value| u64::from_signed(units.round(value))).collect();
        self.mask(&mut words, units.bits, &attempt, PARAMETERS)?;
        Ok(Reply::MaskedParameters(Words(words)))
    }

    /// Takes averaged parameters; refuses any that the method does not average.
    pub(super) fn load_parameters(&mut self, message: &LoadParameters) -> Result<(), SecondaryError> {
        let own = self.shared_parameters()?;
        let names = |parameters: &Parameters| -> Vec<(String, Vec<usize>)> {
            let segments = parameters.segments().iter();
            segments.map(|segment| (segment.name.clone(), segment.shape.clone())).collect()
        };
        let (expected, found) = (names(&own), names(&message.parameters));
        if expected != found {
            let rule = format!("must be those that the method averages, {}", list(&expected));
            return Err(SecondaryError::Message { field: "parameters", rule, value: list(&found) });
        }
        if !message.parameters.values().iter().all(|value| value.is_finite()) {
            let rule = "must be finite".to_string();
            return Err(SecondaryError::Message { field: "parameters", rule, value: "not".into() });
        }
        self.guard.averaged(message.round)?;
        Ok(self.encoder.learner_mut().load(&message.parameters)?)
    }

    fn shared_parameters(&self) -> Result<Parameters, SecondaryError> {
        let prefix = self.shared.ok_or(SecondaryError::NothingShared)?;
        Ok(self.encoder.learner().parameters().with_prefix(prefix))
    }

    fn mask<W: Word>(
        &mut self,
        words: &mut [W],
        bits: u32,
        attempt: &Attempt<'_>,
        name: u32,
    ) -> Result<(), SecondaryError> {
        let degree = self.sum.ok_or(SecondaryError::NoKeys)?.degree;
        let agreed = attempt.active.iter().all(|party| self.agreed.binary_search(party).is_ok());
        let member = self.member.as_ref().filter(|_| agreed).ok_or(SecondaryError::NoKeys)?;
        let active: Vec<usize> = attempt.active.iter().map(|&party| party as usize).collect();
        let open = Open { round: attempt.round, attempt: attempt.number };
        let sent = Sent { open, name, active, over: attempt.over, bits, degree, opened: false };
        member.mask(words, &sent.id());
        self.sent = Some(sent);
        Ok(())
    }
}

/// A digest of what is released: noise follows from it, so that the same release bears the same noise when a run is
/// resumed, and any other release another.
fn content(over: &[u8; 32], active: &[u32], values: &[f32]) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(b"fet release, 1").chain_update(over);
    hash.update((active.len() as u64).to_le_bytes());
    active.iter().for_each(|party| hash.update(party.to_le_bytes()));
    let mut bytes = [0u8; 4096];
    for values in values.chunks(1024) {
        let bytes = &mut bytes[..4 * values.len()];
        bytes
            .chunks_exact_mut(4)
            .zip(values)
            .for_each(|(out, value)| out.copy_from_slice(&value.to_le_bytes()));
        hash.update(bytes);
    }
    hash.finalize().into()
}

fn list(names: &[(String, Vec<usize>)]) -> String {
    shortened(names.iter())
}

/// The first few items that a peer sent: a refusal must not repeat all of them.
fn shortened<T: std::fmt::Debug>(all: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 8;
    let (count, first) = (all.len(), all.take(SHOWN).collect::<Vec<_>>());
    if count > SHOWN { format!("{first:?} and {} more", count - SHOWN) } else { format!("{first:?}") }
}

/// Refuses values outside the range of a sum, before they wrap around.
fn check_range(values: &[f32], range: f64, what: &'static str) -> Result<(), SecondaryError> {
    // The refusal reaches the primary: it says nothing of the value.
    let outside = values.iter().any(|value| !value.is_finite() || f64::from(value.abs()) > range);
    if outside { Err(SecondaryError::OutOfRange { what, range }) } else { Ok(()) }
}
