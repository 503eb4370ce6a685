//! Total privacy loss of several runs.
//!
//! A run is a list of Gaussian releases, or a bound (ε, δ) if no more is known. Gaussian releases compose as
//! in one run ([`Account`]), and bounds add up (basic composition). Without sampling, the figure also holds
//! if the settings of a run depend on the results of earlier runs: a limit on μ² is a filter (Smith and
//! Thakurta 2022). With sampling, the figure assumes that they do not.

use super::Account;
use super::event::Event;
use crate::noise::Slack;

/// Margin added to an estimate of ε before δ is divided for that ε.
const MARGIN: f64 = 0.01;

/// Sum of privacy losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Total {
    events: Vec<Event>,
    /// Number of integers drawn as noise.
    values: f64,
    /// Sum of the (ε, δ) bounds.
    bound: (f64, f64),
    unbounded: bool,
}

impl Total {
    /// Adds Gaussian releases whose noise consists of `values` integers, or 0 for noise of real numbers.
    pub fn add_gaussian(&mut self, events: impl IntoIterator<Item = Event>, values: f64) {
        self.values += values;
        for event in events {
            match self.events.iter_mut().find(|known| known.noise == event.noise && known.rate == event.rate)
            {
                Some(known) => known.steps = known.steps.saturating_add(event.steps),
                None => self.events.push(event),
            }
        }
    }

    /// Adds releases that together satisfy (ε, δ).
    pub fn add_bound(&mut self, epsilon: f64, delta: f64) {
        self.bound.0 += epsilon;
        self.bound.1 += delta;
    }

    /// Adds releases without a bound.
    pub fn add_unbounded(&mut self) {
        self.unbounded = true;
    }

    /// Returns true if the figure relies on the sampling of records.
    pub fn is_sampled(&self) -> bool {
        self.events.iter().any(|event| event.rate < 1.0)
    }

    /// Returns the total with perfect integer noise. Its ε is slightly smaller, and is also finite above an ε
    /// of about 20, where imperfect noise leaves no bound.
    #[must_use]
    pub fn with_ideal_noise(&self) -> Self {
        Self { values: 0.0, ..self.clone() }
    }

    /// Returns ε of all releases together at `delta`, or infinity if there is no bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let (bound, taken) = self.bound;
        let left = delta - taken;
        if self.unbounded || bound.is_nan() || !(left > 0.0 && left < 1.0) {
            return f64::INFINITY;
        }
        let gaussian = |delta| match Account::from_events(&self.events, delta) {
            Ok(account) => account.epsilon(),
            Err(_) => f64::INFINITY,
        };
        if self.values == 0.0 {
            return bound + gaussian(left);
        }
        // The part of δ left for the ideal noise depends on ε. The resulting ε must not exceed the one that
        // this part was computed for.
        let slack = Slack::for_draws(self.values);
        let mut most = gaussian(left) + MARGIN;
        for _ in 0..50 {
            let found = gaussian(slack.delta_left(left, most)) + slack.epsilon();
            if found <= most {
                return bound + found;
            }
            most = found + MARGIN;
        }
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::super::gaussian;
    use super::*;

    const DELTA: f64 = 1e-5;

    /// Five runs with ε = 8 each at δ = 1e-5; the noise multiplier is that of one run of 100 releases.
    #[test]
    fn five_runs_of_eight_are_twenty_two() {
        let noise = super::super::noise_for(8.0, DELTA, |noise| vec![Event { noise, rate: 1.0, steps: 100 }])
            .expect("in range");
        let mut total = Total::default();
        let mut found = Vec::new();
        for _ in 0..5 {
            total.add_gaussian([Event { noise, rate: 1.0, steps: 100 }], 0.0);
            found.push(total.epsilon(DELTA));
        }
        assert!((found[0] - 8.0).abs() < 1e-5 && (found[4] - 22.16).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn bounds_add_up_and_take_their_part_of_delta() {
        let mut total = Total::default();
        assert_eq!(total.epsilon(DELTA), 0.0);
        total.add_bound(1.5, 4e-6);
        total.add_bound(0.5, 2e-6);
        assert_eq!(total.epsilon(DELTA), 2.0);
        total.add_gaussian([Event { noise: 2.0, rate: 1.0, steps: 1 }], 0.0);
        assert_eq!(total.epsilon(DELTA), 2.0 + gaussian::epsilon(0.5, DELTA - (4e-6 + 2e-6)));
        total.add_bound(0.0, 5e-6);
        assert_eq!(total.epsilon(DELTA), f64::INFINITY, "δ is used up");
    }

    #[test]
    fn a_release_without_bound_leaves_none() {
        let mut total = Total::default();
        total.add_unbounded();
        total.add_gaussian([Event { noise: 2.0, rate: 1.0, steps: 1 }], 0.0);
        assert_eq!(total.epsilon(DELTA), f64::INFINITY);
        let mut noiseless = Total::default();
        noiseless.add_gaussian([Event { noise: 0.0, rate: 1.0, steps: 1 }], 0.0);
        assert_eq!(noiseless.epsilon(DELTA), f64::INFINITY);
    }

    #[test]
    fn imperfect_integers_cost_a_little() {
        let event = Event { noise: 4.0, rate: 1.0, steps: 100 };
        let [mut ideal, mut drawn] = [Total::default(), Total::default()];
        ideal.add_gaussian([event], 0.0);
        drawn.add_gaussian([event], 1e6);
        let (few, whole) = (ideal.epsilon(DELTA), drawn.epsilon(DELTA));
        assert!(few < whole && whole < few * 1.001, "{few} {whole}");
        assert_eq!(drawn.with_ideal_noise(), ideal);
        // The bound is infinite once e^ε times the error of the noise tables exceeds δ.
        drawn.add_gaussian([event], 1e12);
        assert_eq!(drawn.epsilon(DELTA), f64::INFINITY);
    }
}
