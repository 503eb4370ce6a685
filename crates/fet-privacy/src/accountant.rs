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
mod event;
pub mod gaussian;
pub(crate) mod normal;
pub mod pld;
mod quadrature;
pub mod rdp;
mod total;

use event::check_delta;

pub use calibrate::noise_for;
pub use event::{AccountError, Event, MOST_STEPS, NOISE_RANGE};
pub use total::Total;

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
