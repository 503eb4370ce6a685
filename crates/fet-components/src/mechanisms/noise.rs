//! `discrete-gaussian` and `gaussian`: clip each row's block to C/|A| and add noise; the parties' shares give
//! σ·C on the sum (paper, section 6, with variances that satisfy its claim).
//!
//! `discrete-gaussian` quantises and adds integers: the reported ε is proved for this mechanism. `gaussian`
//! adds 32-bit floats, an idealisation for comparison. With secure aggregation, each of |A| parties adds
//! variance σ²C²/(|A|−t), so that the shares without those of t colluders suffice. If every part is visible,
//! each party adds the full noise.

use burn::tensor::Tensor;
use fet_privacy::accountant::noise_for;
use fet_privacy::noise::{DiscreteGaussian, LEAST_DEVIATION, MOST_DEVIATION};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clip::blank_unbounded;
use super::ledger::{EPSILON_MARGIN, Ledger, ReleaseView, scale};
use super::{NoiseSettings, clip_blocks};
use fet_core::privacy::{
    Form, Guarantee, Learning, Loss, PrivacyMechanism, Release, Releases, Selection, Share, Spent, Tally,
};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `discrete-gaussian`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DiscreteGaussianSettings(NoiseSettings);

/// Settings of `gaussian`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GaussianSettings(NoiseSettings);

impl Recipe<dyn PrivacyMechanism> for DiscreteGaussianSettings {
    fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn PrivacyMechanism>, Violation> {
        Ok(Box::new(Noise { settings: self.0.clone(), integer: true }))
    }
}

impl Recipe<dyn PrivacyMechanism> for GaussianSettings {
    fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn PrivacyMechanism>, Violation> {
        Ok(Box::new(Noise { settings: self.0.clone(), integer: false }))
    }
}

inventory::submit! {
    Plugin::<dyn PrivacyMechanism>::new::<DiscreteGaussianSettings>(
        "discrete-gaussian",
        "clipping and integer noise, with a proved guarantee",
    )
}

inventory::submit! {
    Plugin::<dyn PrivacyMechanism>::new::<GaussianSettings>(
        "gaussian",
        "clipping and noise in floats: an idealisation, for comparison",
    )
}

struct Noise {
    /// Settings; after calibration, with the calibrated noise.
    settings: NoiseSettings,
    integer: bool,
}

impl Noise {
    fn kind(&self) -> &'static str {
        if self.integer { "discrete-gaussian" } else { "gaussian" }
    }

    fn ledger<'a>(&'a self, schedule: &'a Releases) -> Ledger<'a> {
        Ledger { settings: &self.settings, schedule, integer: self.integer }
    }

    /// Returns the standard deviation of one party's noise.
    fn deviation(&self, active: usize, summed: bool) -> f64 {
        self.settings.noise * self.settings.clip * self.settings.share(active, summed)
    }

    /// Refuses integer noise with a standard deviation below `least` units, or above the range of the
    /// integers.
    fn check_deviation(&self, active: usize, schedule: &Releases, least: f64) -> Result<(), Violation> {
        let units =
            self.deviation(active, schedule.summed) * scale(self.settings.clip, active, schedule.block);
        if self.integer && !(least..=MOST_DEVIATION).contains(&units) {
            let rule = format!(
                "must give each of {active} parties a noise of {LEAST_DEVIATION} to {MOST_DEVIATION:e} units; here it gives {units:.3e}"
            );
            return Err(Violation::new("noise", rule, self.settings.noise));
        }
        Ok(())
    }
}

impl PrivacyMechanism for Noise {
    fn is_identity(&self) -> bool {
        false
    }

    fn clip(&self, representation: Tensor<3>, active: usize) -> Tensor<3> {
        clip_blocks(representation, self.settings.clip / active as f64)
    }

    fn add_noise(&self, mut values: Vec<f32>, release: &mut Release<'_>) -> Share {
        let Release { active, summed, block, noise } = release;
        // `clip` has done this on the device; the released values must not rely on it.
        blank_unbounded(&mut values, *block);
        let deviation = self.deviation(*active, *summed);
        let bound = self.settings.clip / *active as f64;
        if !self.integer {
            for value in &mut values {
                let unit: f32 = StandardNormal.sample(noise);
                *value += deviation as f32 * unit;
            }
            return Share::Floats(values);
        }
        let scale = scale(self.settings.clip, *active, *block);
        // `prepare` checked the expected parties. With fewer active parties, a deviation may be too small to
        // sample. The smallest possible deviation then replaces it, with more noise than the account counts.
        // `check_parties` has refused a deviation that is too large.
        let units = (deviation * scale).max(LEAST_DEVIATION);
        let sampler = DiscreteGaussian::new(units).expect("`check_parties` refuses a larger deviation");
        let mut units = vec![0i32; values.len()];
        sampler.fill(&mut units, *noise);
        units.par_chunks_mut(*block).zip(values.par_chunks(*block)).for_each(|(units, values)| {
            // The device clipped in 32-bit floats, whose sums round. Here the norm is computed in doubles,
            // and rounding towards zero can only shorten the block.
            let norm = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let factor = if norm > bound { bound / norm * (1.0 - 1e-12) } else { 1.0 };
            for (unit, &value) in units.iter_mut().zip(values) {
                *unit += (f64::from(value) * factor * scale) as i32;
            }
        });
        Share::Integers { values: units, scale }
    }

    fn form(&self, active: usize, block: usize) -> Option<Form> {
        let NoiseSettings { clip, colluding, .. } = self.settings;
        // Together, all shares exceed the noise for ε, because they provide for colluders.
        let shares = active.saturating_sub(colluding).max(1);
        let noise = self.settings.noise * clip * (active as f64 / shares as f64).sqrt();
        let scale = self.integer.then(|| scale(clip, active, block));
        Some(Form { bound: clip, noise, scale })
    }

    fn selection(&self) -> Selection {
        Selection { rate: self.settings.sample_rate, occurrences: self.settings.max_occurrences }
    }

    fn freezes_secondaries(&self) -> bool {
        self.settings.learning == Learning::Frozen
    }

    fn colluding(&self) -> usize {
        self.settings.colluding
    }

    fn claims_amplification(&self) -> bool {
        self.settings.amplification
    }

    fn prepare(&mut self, schedule: &Releases) -> Result<(), Violation> {
        let colluding = self.settings.colluding;
        let fewest = schedule.train_active.min(schedule.active);
        if colluding >= fewest {
            let rule =
                format!("must leave at least one honest party among the {fewest} that take part in a step");
            return Err(Violation::new("colluding", rule, colluding));
        }
        let target = self.settings.target_epsilon;
        if target > 0.0 {
            let ledger = self.ledger(schedule);
            let planned = ledger.planned();
            let slack = ledger.slack(&planned);
            let (delta, extra) = if self.integer {
                (slack.delta_left(self.settings.delta, target + EPSILON_MARGIN), slack.epsilon())
            } else {
                (self.settings.delta, 0.0)
            };
            // The noise is a millionth larger than needed, so that ε computed from it cannot exceed the
            // target by rounding.
            let noise = noise_for(target - extra, delta, |noise| {
                ledger.events(noise, &planned, ReleaseView::AsAgreed)
            });
            let noise = noise.map_err(|error| {
                Violation::new("target_epsilon", format!("cannot be met ({error})"), target)
            })?;
            self.settings.noise = noise * (1.0 + 1e-6);
        }
        self.check_deviation(schedule.train_active, schedule, LEAST_DEVIATION)?;
        self.check_deviation(schedule.active, schedule, LEAST_DEVIATION)
    }

    fn check_parties(&self, releases: &Releases, active: usize) -> Result<(), Violation> {
        self.check_deviation(active, releases, 0.0)
    }

    fn spent(&self, schedule: &Releases, tallies: &[Tally]) -> Spent {
        let ledger = self.ledger(schedule);
        let noise = self.settings.noise;
        let fewest = tallies.iter().filter_map(Tally::fewest).min().unwrap_or(schedule.train_active);
        let (epsilon, by_rdp) = ledger.cost(noise, tallies, ReleaseView::AsAgreed);
        let if_sum_fails = ledger.if_sum_fails(noise, tallies, epsilon);
        let epsilon_by_colluding = ledger.by_colluding(noise, tallies, epsilon);
        let assumptions = ledger.assumptions(if_sum_fails, &epsilon_by_colluding);
        let events = ledger.events(noise, tallies, ReleaseView::AsAgreed);
        let until = |epoch: usize| ledger.cost(noise, &tallies[..epoch], ReleaseView::AsAgreed).0;
        let epsilon_by_epoch = (1..=tallies.len())
            .map(|epoch| if epoch == tallies.len() { epsilon } else { until(epoch) })
            .collect();
        let delta = self.settings.delta;
        let guarantee = Guarantee {
            mechanism: self.kind().to_string(),
            clip: self.settings.clip,
            noise,
            noise_multiplier: ledger.multiplier(noise, fewest, ReleaseView::AsAgreed),
            neighbouring: self.settings.neighbouring,
            learning: self.settings.learning,
            occurrences: ledger.occurrences(),
            sample_rate: self.settings.sample_rate,
            amplification: self.settings.amplification,
            secure_sum: schedule.summed,
            colluding: self.settings.colluding,
            releases: events.iter().map(|event| event.steps).sum(),
            epsilon_if_sum_fails: if_sum_fails.filter(|epsilon| epsilon.is_finite()),
            epsilon_by_colluding,
            randomness: schedule.randomness,
            epsilon_by_rdp: by_rdp,
            epsilon_by_epoch,
            assumptions,
        };
        if !epsilon.is_finite() {
            // From an ε of about 20 on, e^ε times the probability outside the sampling tables exceeds δ.
            let statement = "no guarantee: the noise is too small for a meaningful ε".to_string();
            return Spent { epsilon: None, delta, statement, guarantee: Some(guarantee) };
        }
        let statement = format!("(ε = {epsilon:.4}, δ = {delta:e}): {}", guarantee.assumptions.join("; "));
        Spent { epsilon: Some(epsilon), delta, statement, guarantee: Some(guarantee) }
    }

    fn epsilon(&self, schedule: &Releases, tallies: &[Tally]) -> f64 {
        self.ledger(schedule).cost(self.settings.noise, tallies, ReleaseView::AsAgreed).0
    }

    fn epsilon_at(&self, schedule: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        self.ledger(schedule).cost_at(self.settings.noise, tallies, ReleaseView::AsAgreed, delta).0
    }

    fn ideal_epsilon_at(&self, schedule: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        self.ledger(schedule).ideal_cost_at(self.settings.noise, tallies, ReleaseView::AsAgreed, delta).0
    }

    fn is_idealised(&self) -> bool {
        !self.integer
    }

    fn loss(&self, schedule: &Releases, tallies: &[Tally]) -> Loss {
        self.ledger(schedule).loss(self.settings.noise, tallies)
    }

    fn target(&self) -> Option<f64> {
        Some(self.settings.target_epsilon).filter(|&target| target > 0.0)
    }
}
