//! The accountant: what a sequence of Gaussian releases has cost, as (ε, δ).
//!
//! Every release adds Gaussian noise of `noise` times the sensitivity, to a quantity that depends on the record in
//! question with probability `rate` (Poisson sampling, drawn anew for each release and kept secret), or always
//! (`rate` 1). The neighbouring relation is add or remove one record; both directions are computed and the larger
//! ε counts. Three figures, each a valid upper bound, or infinity:
//!
//! - [`Account::exact`]: Gaussian differential privacy; exact, only where every rate is 1 ([`gaussian`]);
//! - [`Account::pld`]: privacy loss distribution, within about 2e-4 of the truth and never below ([`pld`]); the exact
//!   figure of the same releases unsampled, or the next, where that is lower;
//! - [`Account::rdp`]: Rényi divergences, looser, quick ([`rdp`]).
//!
//! What a sensitivity *is* for a federated run is not decided here; `fet-core::privacy` does.

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
    /// The probability with which a record takes part in a release.
    pub rate: f64,
    /// How many releases.
    pub steps: u64,
}

/// What a sequence of releases costs at one δ, by each method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// δ.
    pub delta: f64,
    /// The exact ε, where no release is sampled.
    pub exact: Option<f64>,
    /// ε by privacy loss distributions.
    pub pld: f64,
    /// ε by Rényi divergences.
    pub rdp: f64,
}

/// What cannot be accounted for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// A value out of its range.
    #[error("`{field}` {rule}; it is {value}")]
    Value {
        /// Which.
        field: &'static str,
        /// What it must be.
        rule: &'static str,
        /// What it is.
        value: f64,
    },
    /// No noise in the range that is searched meets the target.
    #[error(
        "`epsilon` {target} is out of reach: noise from {low:e} to {high:e} gives ε from {least:.3e} to {most:.3e}"
    )]
    OutOfReach {
        /// The ε that was asked for.
        target: f64,
        /// The least noise searched.
        low: f64,
        /// The most noise searched.
        high: f64,
        /// ε at the most noise.
        least: f64,
        /// ε at the least noise.
        most: f64,
    },
}

/// The noise multipliers that are accounted for.
pub const NOISE_RANGE: (f64, f64) = (1e-6, 1e7);
/// The most releases that are accounted for.
pub const MOST_STEPS: u64 = 1_000_000_000_000;

/// Above this ε, which promises nothing, the bounds that need no grid are close enough.
const MEANINGLESS: f64 = 1e4;

impl Account {
    /// The cost of `events` at `delta`.
    pub fn of(events: &[Event], delta: f64) -> Result<Self, AccountError> {
        check_delta(delta)?;
        events.iter().try_for_each(Event::check)?;
        let events: Vec<Event> =
            events.iter().copied().filter(|event| event.steps > 0 && event.rate > 0.0).collect();
        if events.is_empty() {
            let exact = Some(0.0);
            return Ok(Self { delta, exact, pld: 0.0, rdp: 0.0 });
        }
        let rdp = rdp::epsilon(&events, delta);
        // Who sees every record can leave some out: sampling never costs more than not sampling.
        let unsampled = gaussian::epsilon(gaussian::compose(&events), delta);
        let exact = events.iter().all(|event| event.rate >= 1.0).then_some(unsampled);
        let pld = match exact {
            Some(exact) => exact,
            None if distance(&events) <= delta => 0.0,
            None if rdp.min(unsampled) > MEANINGLESS => rdp.min(unsampled),
            // All are upper bounds; where the grid of the loss distribution must be coarse, another may be lower.
            None => pld::epsilon(&events, delta).min(rdp).min(unsampled),
        };
        Ok(Self { delta, exact, pld, rdp })
    }

    /// The ε to quote: exact where there is one, else by privacy loss distributions.
    pub fn epsilon(&self) -> f64 {
        self.exact.unwrap_or(self.pld)
    }
}

/// No less than the total variation distance that `events` make: where δ is as much, ε is 0.
fn distance(events: &[Event]) -> f64 {
    // 2Φ(1/2σ) − 1, less than its slope at 0 times 1/2σ.
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
    let rule = "must be above 0 and below 1: the chance that the bound fails, well below one in the number of records";
    Err(AccountError::Value { field: "delta", rule, value: delta })
}
