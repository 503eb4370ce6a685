//! What leaves a secondary: representations with their noise, alone or hidden in a sum, and encodings.

use burn::tensor::{Device, Tensor, TensorData};
use fet_privacy::secure_sum::{MaskId, Member, PublicKey, Word};

use super::{Secondary, SecondaryError};
use crate::model::Embedding;
use crate::protocol::{Forward, Hidden, Masked, Reply, Representation};
use crate::secret_sum::{self, PARAMETER_RANGE};
use fet_core::parameters::host;
use fet_core::privacy::{Release, Share};
use fet_core::rng::{Purpose, stream};

/// Which tensor of a round a mask is for.
const REPRESENTATION: u32 = 0;
const ENCODING: u32 = 1;

impl Secondary {
    /// A key for secret sums, from the system's own randomness: a sum does not depend on the masks in it, so that runs
    /// repeat all the same.
    pub(super) fn make_key(&mut self) -> Result<PublicKey, SecondaryError> {
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
        let member = Member::from_secret(self.number - 1, secret);
        let public = member.public();
        self.member = Some(member);
        Ok(public)
    }

    pub(super) fn agree_on_keys(&mut self, keys: &[PublicKey]) -> Result<(), SecondaryError> {
        let member = self.member.as_mut().ok_or(SecondaryError::NoKeys)?;
        member.agree(keys).map_err(|party| SecondaryError::BadKey { party: party + 1 })
    }

    /// The bounded representation as it leaves.
    pub(super) fn release(&self, bounded: Tensor<3>, message: &Forward) -> Result<Reply, SecondaryError> {
        let shape = bounded.dims();
        if self.privacy.is_identity() && message.hidden.is_none() {
            return Ok(Reply::Representation(Representation { tensor: bounded }));
        }
        let device: Device = bounded.device();
        // Another attempt at a round is another release: its noise is drawn anew.
        let attempt = message.hidden.as_ref().map_or(0, |hidden| hidden.attempt.number);
        let mut noise =
            stream(self.seed, self.number, Purpose::Noise, message.round ^ (u64::from(attempt) << 40));
        let mut release = Release {
            active: message.active,
            summed: message.hidden.is_some(),
            block: shape[1] * shape[2],
            noise: &mut noise,
        };
        let share = self.privacy.share(host(bounded), &mut release);
        if let Some(hidden) = &message.hidden {
            return self.hide(share, shape, hidden).map(Reply::Masked);
        }
        let values = match share {
            Share::Floats(values) => values,
            Share::Integers { values, scale } => {
                values.into_iter().map(|units| (f64::from(units) / scale) as f32).collect()
            }
        };
        let tensor = Tensor::from_data(TensorData::new(values, shape), &device);
        Ok(Reply::Representation(Representation { tensor }))
    }

    fn hide(&self, share: Share, shape: [usize; 3], hidden: &Hidden) -> Result<Masked, SecondaryError> {
        let Hidden { sum, attempt, .. } = hidden;
        let form = self.privacy.form(attempt.active.len(), shape[1] * shape[2]);
        let units = secret_sum::units(*sum, form, attempt.active.len())?;
        let mut words: Vec<u32> = match share {
            Share::Integers { values, .. } => values.into_iter().map(|value| value as u32).collect(),
            Share::Floats(values) => {
                let range = if form.is_none() { sum.range } else { f64::INFINITY };
                check_range(&values, range, "representation")?;
                values.into_iter().map(|value| u32::from_signed(units.round(value))).collect()
            }
        };
        self.mask(&mut words, units.bits, hidden, REPRESENTATION)?;
        Ok(Masked { shape, words, bits: units.bits })
    }

    /// The positional encoding's parameters, hidden in a sum.
    pub(super) fn hide_encoding(&self, hidden: &Hidden) -> Result<Vec<u64>, SecondaryError> {
        let units = secret_sum::parameters(hidden.attempt.active.len())?;
        let parameters = self.encoder.learner().parameters().with_prefix(Embedding::POSITION);
        check_range(parameters.values(), PARAMETER_RANGE, "positional encoding")?;
        let mut words: Vec<u64> =
            parameters.values().iter().map(|&value| u64::from_signed(units.round(value))).collect();
        self.mask(&mut words, units.bits, hidden, ENCODING)?;
        Ok(words)
    }

    fn mask<W: Word>(
        &self,
        words: &mut [W],
        bits: u32,
        hidden: &Hidden,
        name: u32,
    ) -> Result<(), SecondaryError> {
        let Hidden { sum, attempt, round } = hidden;
        if attempt.active.len() < 2 {
            return Err(SecondaryError::Alone);
        }
        let member = self.member.as_ref().ok_or(SecondaryError::NoKeys)?;
        let id = MaskId { round: *round, name, attempt: attempt.number };
        member.mask(words, bits, &attempt.active, sum.degree, id);
        Ok(())
    }
}

/// Refuses values that a sum has no room for, before they wrap around in it.
fn check_range(values: &[f32], range: f64, what: &'static str) -> Result<(), SecondaryError> {
    match values.iter().find(|value| !value.is_finite() || f64::from(value.abs()) > range) {
        None => Ok(()),
        Some(&value) => Err(SecondaryError::OutOfRange { what, value, range }),
    }
}
