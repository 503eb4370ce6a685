//! Releases that the accountant counts, and input that it refuses.

/// `steps` releases of the same kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Standard deviation of the noise, in units of the sensitivity.
    pub noise: f64,
    /// Probability that a record takes part in a release.
    pub rate: f64,
    /// Number of releases.
    pub steps: u64,
}

/// Input that the accountant refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// A value outside its range.
    #[error("`{field}` {rule}; it is {value}")]
    Value {
        /// Name of the parameter.
        field: &'static str,
        /// Requirement on the value.
        rule: &'static str,
        /// Value that violates the requirement.
        value: f64,
    },
    /// No noise in the searched range meets the target.
    #[error(
        "`epsilon` {target} is out of reach: noise from {low:e} to {high:e} gives ε from {least:.3e} to {most:.3e}"
    )]
    OutOfReach {
        /// Requested ε.
        target: f64,
        /// Smallest noise searched.
        low: f64,
        /// Largest noise searched.
        high: f64,
        /// ε at the largest noise.
        least: f64,
        /// ε at the smallest noise.
        most: f64,
    },
}

/// Range of noise multipliers that the accountant accepts.
pub const NOISE_RANGE: (f64, f64) = (1e-6, 1e7);

/// Maximum number of releases in one event.
pub const MOST_STEPS: u64 = 1_000_000_000_000;

impl Event {
    pub(super) fn check(&self) -> Result<(), AccountError> {
        let (least, most) = NOISE_RANGE;
        if !(least..=most).contains(&self.noise) {
            let rule = "must be at least 1e-6 and at most 1e7 times the sensitivity";
            return Err(AccountError::Value { field: "noise", rule, value: self.noise });
        }
        if !(0.0..=1.0).contains(&self.rate) {
            let rule = "must be a probability, from 0 to 1";
            return Err(AccountError::Value { field: "rate", rule, value: self.rate });
        }
        if self.steps > MOST_STEPS {
            let rule = "must be at most 1e12";
            return Err(AccountError::Value { field: "steps", rule, value: self.steps as f64 });
        }
        Ok(())
    }
}

pub(crate) fn check_delta(delta: f64) -> Result<(), AccountError> {
    if delta > 0.0 && delta < 1.0 {
        return Ok(());
    }
    let rule =
        "must be above 0 and below 1: the probability that the bound fails, well below 1 / number of records";
    Err(AccountError::Value { field: "delta", rule, value: delta })
}
