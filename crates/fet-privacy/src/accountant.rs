//! Privacy accountant: computes the (ε, δ) cost of a sequence of Gaussian releases.
//!
//! Each release adds Gaussian noise of `noise` times the sensitivity to a quantity. That quantity depends on
//! the record in question with probability `rate` (Poisson sampling, drawn independently for each release and
//! kept secret), or always if `rate` is 1. The neighbouring relation adds or removes one record. The
//! accountant computes both directions and reports the larger ε. It computes three figures, each a valid
//! upper bound or infinity:
//!
//! - [`Account::exact`]: Gaussian differential privacy; exact, but available only if every rate is 1
//!   ([`gaussian`]).
//! - [`Account::pld`]: privacy loss distributions; within about 2e-4 of the true ε and never below it
//!   ([`pld`]). If the exact figure of the same releases without sampling or the Rényi figure is lower, the
//!   account takes that figure.
//! - [`Account::rdp`]: Rényi divergences; looser but fast ([`rdp`]).
//!
//! The accountant takes the sensitivity as given; `fet-core::privacy` derives it for a federated run.

mod calibrate;
pub mod gaussian;
pub(crate) mod normal;
pub mod pld;
mod quadrature;
pub mod rdp;
mod total;

pub use calibrate::noise_for;
pub use total::Total;

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

/// Cost of a sequence of releases at one δ, by each method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// δ.
    pub delta: f64,
    /// Exact ε, if no release is sampled.
    pub exact: Option<f64>,
    /// ε from privacy loss distributions.
    pub pld: f64,
    /// ε from Rényi divergences.
    pub rdp: f64,
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

/// ε above which a guarantee is meaningless. Beyond it, the bounds that need no grid are precise enough.
const MEANINGLESS: f64 = 1e4;

impl Account {
    /// Returns the cost of `events` at `delta`.
    pub fn from_events(events: &[Event], delta: f64) -> Result<Self, AccountError> {
        check_delta(delta)?;
        events.iter().try_for_each(Event::check)?;
        let events: Vec<Event> =
            events.iter().copied().filter(|event| event.steps > 0 && event.rate > 0.0).collect();
        if events.is_empty() {
            let exact = Some(0.0);
            return Ok(Self { delta, exact, pld: 0.0, rdp: 0.0 });
        }
        let rdp = rdp::epsilon(&events, delta);
        // An observer of every record can ignore some of them, so sampling never increases the cost.
        let unsampled = gaussian::epsilon(gaussian::compose(&events), delta);
        let exact = events.iter().all(|event| event.rate >= 1.0).then_some(unsampled);
        let pld = match exact {
            Some(exact) => exact,
            None if distance(&events) <= delta => 0.0,
            None if rdp.min(unsampled) > MEANINGLESS => rdp.min(unsampled),
            // All three are upper bounds. If the grid of the loss distribution has to be coarse, another
            // bound may be lower.
            None => pld::epsilon(&events, delta).min(rdp).min(unsampled),
        };
        Ok(Self { delta, exact, pld, rdp })
    }

    /// Returns the ε to report: the exact value if there is one, otherwise the value from privacy loss
    /// distributions.
    pub fn epsilon(&self) -> f64 {
        self.exact.unwrap_or(self.pld)
    }
}

/// Returns an upper bound on the total variation distance of `events`. If δ is at least this bound, ε is 0.
fn distance(events: &[Event]) -> f64 {
    // 2Φ(1/2σ) − 1 is less than its slope at 0 times 1/2σ.
    let one =
        |event: &Event| event.rate * (1.0 / (event.noise * (2.0 * std::f64::consts::PI).sqrt())).min(1.0);
    events.iter().map(|event| event.steps as f64 * one(event)).sum()
}

impl Event {
    fn check(&self) -> Result<(), AccountError> {
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
