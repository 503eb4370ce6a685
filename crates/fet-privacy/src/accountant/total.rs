//! The loss of several runs together.
//!
//! A run is a list of Gaussian releases, or a bound (ε, δ) where no more is known. Gaussian releases compose as in one run
//! ([`Account`]), and bounds add up (basic composition). For releases without sampling the figure also holds where the settings of a
//! run were chosen after the results of earlier ones were seen: a limit on μ² is a filter (Smith and Thakurta 2022). With sampling
//! it supposes that they were not.

use super::{Account, Event};
use crate::noise::Slack;

/// Excess of the ε for which δ is divided over the resulting ε.
const MARGIN: f64 = 0.01;

/// A sum of losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Total {
    events: Vec<Event>,
    /// Integers that were drawn as noise.
    values: f64,
    /// The bounds, added up.
    bound: (f64, f64),
    unbounded: bool,
}

impl Total {
    /// Adds Gaussian releases, whose noise took `values` integers; 0 for noise of real numbers.
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

    /// Adds releases that are (ε, δ) together.
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

    /// Returns the total with perfect integer noise. Its ε is a little less, and finite from some ε of 20 on, where imperfect noise
    /// leaves no bound.
    #[must_use]
    pub fn with_ideal_noise(&self) -> Self {
        Self { values: 0.0, ..self.clone() }
    }

    /// ε of all together at `delta`; infinite where there is no bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let (bound, taken) = self.bound;
        let left = delta - taken;
        if self.unbounded || bound.is_nan() || !(left > 0.0 && left < 1.0) {
            return f64::INFINITY;
        }
        let gaussian = |delta| match Account::of(&self.events, delta) {
            Ok(account) => account.epsilon(),
            Err(_) => f64::INFINITY,
        };
        if self.values == 0.0 {
            return bound + gaussian(left);
        }
        // The part of δ that is left for the ideal noise depends on ε, which must not exceed what it was computed for.
        let slack = Slack::of(self.values);
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

    /// The example of five runs with ε = 8 each, at δ = 1e-5: their noise multiplier is that of one run of 100 releases.
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
        // There is no bound once e^ε times the error of the noise tables passes δ.
        drawn.add_gaussian([event], 1e12);
        assert_eq!(drawn.epsilon(DELTA), f64::INFINITY);
    }
}
