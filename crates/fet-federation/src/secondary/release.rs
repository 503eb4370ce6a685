//! Releases of a secondary: noisy representations, alone or hidden in a sum, and averaged parameters.

use fet_core::message::{Block, Forward, LoadParameters, Masked, Reply, Round, ShareParameters, Words};
use fet_core::parameters::Parameters;
use fet_core::privacy::{Release, Share};
use fet_core::rng::Purpose;
use fet_privacy::secure_sum::{SumError, Word};
use sha2::{Digest, Sha256};

use super::received::{self, update};
use super::request_validator::Asked;
use super::sums::Attempt;
use super::{SecondaryError, Session};
use crate::secret_sum::{self, PARAMETER_RANGE, PARAMETERS, REPRESENTATION};

impl Session {
    /// Refuses a set of parties without this party.
    pub(super) fn check_parties(&self, field: &'static str, parties: &[u32]) -> Result<(), SecondaryError> {
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

    /// Refuses a set of parties without this party, and an attempt that does not fit the aggregator.
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
        if attempt.is_some() {
            self.check_quorum(round, active)?;
        }
        Ok(())
    }

    /// Returns the reply with the clipped representation: noisy, and masked if it is part of a sum.
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
        if self.privacy.is_identity() {
            self.account.unprotected(self.privacy.as_ref())?;
        }
        if self.privacy.is_identity() && attempt.is_none() {
            return Ok(Reply::Representation(block(bounded)));
        }
        // Another attempt at a round is another release with its own noise.
        let number = u64::from(message.attempt.unwrap_or(0));
        let mut drawn_from = content(&[], &over, &message.active, &[]);
        if !self.privacy.is_identity() {
            let context = self.context(attempt.is_some());
            let released = content(&context, &over, &message.active, &bounded);
            self.count(message, &released)?;
            // A simulated seed is not a secret. Its noise does not depend on the values, so that devices that
            // round differently can be compared.
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

    /// Returns a digest of everything that determines the sample of a release: the request and its context.
    /// The noise depends on these and on the values. A release therefore equals an earlier one in both its
    /// sample and its noise, or in neither.
    pub(super) fn sample(&self, message: &Forward) -> [u8; 32] {
        let context = self.context(message.attempt.is_some());
        let hash =
            Sha256::new().chain_update(b"fet sample, 1").chain_update((context.len() as u64).to_le_bytes());
        hash.chain_update(context).chain_update(received::forward(message)).finalize().into()
    }

    /// Returns the context of a release, which determines it together with the request and the values.
    ///
    /// The context covers all that was received, the sample of the single release of a frozen party, and, for
    /// a sum, the session. All parties of a session have its transcript, so that either all or none of them
    /// use other noise than in an earlier session. If each party repeated its own noise, a primary could have
    /// only some parties repeat theirs, and subtract their noise.
    fn context(&self, summed: bool) -> Vec<u8> {
        let mut context = self.received.all().to_vec();
        if let Some(chosen) = &self.chosen {
            context.extend(chosen.sample);
        }
        if let Some(sums) = self.sums.as_ref().filter(|_| summed && !self.seed.is_simulated()) {
            context.extend(sums.transcript());
        }
        context
    }

    fn hide(
        &mut self,
        share: Share,
        shape: [usize; 3],
        attempt: &Attempt<'_>,
    ) -> Result<Masked, SecondaryError> {
        let sum = self.sum.ok_or(SumError::NotAgreed)?;
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
        let commitment = self.mask(&mut words, units.bits, attempt, REPRESENTATION)?;
        Ok(Masked { shape, words, bits: units.bits, commitment })
    }

    /// Returns the parameters that the method averages, in the clear or hidden in a sum.
    pub(super) fn share_parameters(&mut self, message: ShareParameters) -> Result<Reply, SecondaryError> {
        let asked = Asked::Share(message.clone());
        if let Some(reply) = self.validator.repeated(&asked) {
            return Ok(reply);
        }
        let parameters = self.shared_parameters()?;
        self.check_active(message.round, &message.active, message.attempt)?;
        self.validator.admit(message.round, None, &message.active, message.attempt)?;
        let reply = self.shared(&message, parameters)?;
        self.validator.answered(asked, &reply);
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
        let commitment = self.mask(&mut words, units.bits, &attempt, PARAMETERS)?;
        Ok(Reply::MaskedParameters(Words { words, commitment }))
    }

    /// Loads averaged parameters; refuses parameters that the method does not average.
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
        self.validator.averaged(message.round)?;
        if !self.privacy.is_identity() {
            self.received.averages(message);
        }
        Ok(self.encoder.learner_mut().load(&message.parameters)?)
    }

    fn shared_parameters(&self) -> Result<Parameters, SecondaryError> {
        let prefix = self.shared.ok_or(SecondaryError::NothingShared)?;
        Ok(self.encoder.learner().parameters().with_prefix(prefix))
    }
}

/// Returns a digest of a release and of everything that determines it. The noise is derived from the digest,
/// so that a repeated release has the same noise, and any other release has other noise. The values are
/// determined by the other content; they are included for devices that do not compute the same values every
/// time.
fn content(context: &[u8], over: &[u8; 32], active: &[u32], values: &[f32]) -> [u8; 32] {
    let mut hash =
        Sha256::new().chain_update(b"fet release, 2").chain_update((context.len() as u64).to_le_bytes());
    hash.update(context);
    hash.update(over);
    hash.update((active.len() as u64).to_le_bytes());
    active.iter().for_each(|party| hash.update(party.to_le_bytes()));
    update(&mut hash, values);
    hash.finalize().into()
}

fn list(names: &[(String, Vec<usize>)]) -> String {
    shortened(names.iter())
}

/// Returns the first few items that a peer sent, so that a refusal does not repeat all of them.
fn shortened<T: std::fmt::Debug>(all: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 8;
    let (count, first) = (all.len(), all.take(SHOWN).collect::<Vec<_>>());
    if count > SHOWN { format!("{first:?} and {} more", count - SHOWN) } else { format!("{first:?}") }
}

/// Refuses values outside the range of a sum before they wrap around.
fn check_range(values: &[f32], range: f64, what: &'static str) -> Result<(), SecondaryError> {
    // The refusal reaches the primary, so it does not contain the value.
    let outside = values.iter().any(|value| !value.is_finite() || f64::from(value.abs()) > range);
    if outside { Err(SecondaryError::OutOfRange { what, range }) } else { Ok(()) }
}
