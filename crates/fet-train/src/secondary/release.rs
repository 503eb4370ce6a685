//! What a secondary sends: noisy representations, alone or hidden in a sum, and averaged parameters.

use fet_core::message::{
    Block, Forward, LoadParameters, Masked, PublicKeys, Reply, Round, ShareParameters, Words,
};
use fet_core::parameters::Parameters;
use fet_core::privacy::{Release, Share};
use fet_core::rng::Purpose;
use fet_privacy::secure_sum::{MaskId, Member, PublicKey, Word};

use super::{SecondaryError, Session};
use crate::secret_sum::{self, PARAMETER_RANGE};

/// Which values of a round a mask hides.
const REPRESENTATION: u32 = 0;
const PARAMETERS: u32 = 1;

/// A secret sum that the party is asked to take part in.
struct Attempt<'a> {
    round: Round,
    active: &'a [u32],
    number: u32,
}

impl Session {
    /// A key for secret sums, from the operating system's randomness. A sum does not depend on its masks, so runs still
    /// repeat.
    pub(super) fn make_key(&mut self) -> Result<fet_core::message::PublicKey, SecondaryError> {
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
        let member = Member::from_secret(self.number - 1, secret);
        let public = member.public();
        self.member = Some(member);
        self.agreed.clear();
        Ok(public.0)
    }

    pub(super) fn agree_on_keys(&mut self, message: &PublicKeys) -> Result<(), SecondaryError> {
        let (keys, rest) = message.keys.as_chunks::<32>();
        if !rest.is_empty() || keys.len() != message.parties.len() {
            let rule = format!("must be 32 bytes for each of {} parties", message.parties.len());
            let value = message.keys.len().to_string();
            return Err(SecondaryError::Message { field: "keys", rule, value });
        }
        self.check_parties("parties", &message.parties)?;
        let mut all = vec![None; self.parties];
        for (&party, &key) in message.parties.iter().zip(keys) {
            all[party as usize] = Some(PublicKey(key));
        }
        let member = self.member.as_mut().ok_or(SecondaryError::NoKeys)?;
        member.agree_with(&all).map_err(|party| SecondaryError::BadKey { party: party + 1 })?;
        self.agreed = message.parties.clone();
        Ok(())
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
        &self,
        bounded: Vec<f32>,
        shape: [usize; 3],
        message: &Forward,
    ) -> Result<Reply, SecondaryError> {
        let block = |values| Block::new(shape, values).expect("a tensor fills its shape");
        let attempt =
            message.attempt.map(|number| Attempt { round: message.round, active: &message.active, number });
        if self.privacy.is_identity() && attempt.is_none() {
            return Ok(Reply::Representation(block(bounded)));
        }
        // Another attempt at a round is another release: its noise is drawn anew.
        let number = u64::from(message.attempt.unwrap_or(0));
        let mut noise = self.seed.stream(Purpose::Noise, message.round.key() ^ (number << 40));
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

    fn hide(&self, share: Share, shape: [usize; 3], attempt: &Attempt<'_>) -> Result<Masked, SecondaryError> {
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
    pub(super) fn share_parameters(&self, message: &ShareParameters) -> Result<Reply, SecondaryError> {
        let parameters = self.shared_parameters()?;
        self.check_active(message.round, &message.active, message.attempt)?;
        let Some(number) = message.attempt else { return Ok(Reply::Parameters(parameters)) };
        let attempt = Attempt { round: message.round, active: &message.active, number };
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
        Ok(self.encoder.learner_mut().load(&message.parameters)?)
    }

    fn shared_parameters(&self) -> Result<Parameters, SecondaryError> {
        let prefix = self.shared.ok_or(SecondaryError::NothingShared)?;
        Ok(self.encoder.learner().parameters().with_prefix(prefix))
    }

    fn mask<W: Word>(
        &self,
        words: &mut [W],
        bits: u32,
        attempt: &Attempt<'_>,
        name: u32,
    ) -> Result<(), SecondaryError> {
        let degree = self.sum.ok_or(SecondaryError::NoKeys)?.degree;
        let agreed = attempt.active.iter().all(|party| self.agreed.binary_search(party).is_ok());
        let member = self.member.as_ref().filter(|_| agreed).ok_or(SecondaryError::NoKeys)?;
        let active: Vec<usize> = attempt.active.iter().map(|&party| party as usize).collect();
        let id = MaskId { round: attempt.round.key(), name, attempt: attempt.number };
        member.mask(words, bits, &active, degree, id);
        Ok(())
    }
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
    match values.iter().find(|value| !value.is_finite() || f64::from(value.abs()) > range) {
        None => Ok(()),
        Some(&value) => Err(SecondaryError::OutOfRange { what, value, range }),
    }
}
