//! `membership`: infers if the secondary has a record. The primary trains shadow runs with and without the
//! record, and compares the messages for the row that the record belongs to (Carlini et al. 2022, "Membership
//! Inference Attacks From First Principles"). The paper trains shadow models; this attack trains shadow
//! secondaries.
//!
//! The attacker is strong: it knows the record's key and values, and all other records of the party. Each run
//! leaves out a random half of the candidates. Shadow runs have no noise, because the presence and scale of
//! the noise are public.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Target};
use fet_core::data::{PartyTable, VerticalData};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_privacy::audit::membership::{Deviation, Separation, Shadow, likelihood_ratios};
use rand::RngExt;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::transcript::{ObservedRows, Transcript};

/// Settings of `membership` (Carlini et al. 2022).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MembershipSettings {
    /// Number of the attacked secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of shadow runs; each attacked record is in half of them.
    #[schemars(range(min = 4, max = 1_000), extend("x-rule" = "an even number"))]
    pub shadows: usize,
    /// Maximum number of attacked records.
    #[schemars(range(min = 20))]
    pub targets: usize,
}

impl Default for MembershipSettings {
    fn default() -> Self {
        Self { party: 1, shadows: 8, targets: 400 }
    }
}

impl Recipe<dyn Attack> for MembershipSettings {
    fn check(&self) -> Result<(), Violation> {
        if !self.shadows.is_multiple_of(2) {
            return Err(Violation::new("shadows", "must be an even number", self.shadows));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Membership(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<MembershipSettings>(
        "membership",
        "membership of a record in a secondary's table, by likelihood ratios from shadow runs",
    )
}

struct Membership(MembershipSettings);

/// Record and the row for which it is nearest.
struct Candidate {
    row: usize,
    record: usize,
}

impl Attack for Membership {
    fn about(&self) -> About {
        About { attacker: Attacker::Primary, target: Target::Membership, party: self.0.party }
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let MembershipSettings { party, shadows, targets } = self.0;
        let mut rng = stream(environment.setting().seed, 0, Purpose::Attack, 2);
        let (_, trained) = Transcript::train(environment, party)?;
        let mut rows = trained.rows()[0].to_vec();
        rows.shuffle(&mut rng);
        let mut candidates: Vec<Candidate> = Vec::new();
        for (&row, record) in rows.iter().zip(trained.nearest(party, &rows)?) {
            // No message depends on a record that is not shown for any row.
            let Some(record) = record else { continue };
            if candidates.len() < targets && candidates.iter().all(|other| other.record != record) {
                candidates.push(Candidate { row, record });
            }
        }
        drop(trained);
        // Each record is in a random half of the shadow runs.
        let inside = |rng: &mut ChaCha8Rng| {
            let mut half: Vec<bool> = (0..shadows).map(|shadow| shadow < shadows / 2).collect();
            half.shuffle(rng);
            half
        };
        let plan: Vec<Vec<bool>> = candidates.iter().map(|_| inside(&mut rng)).collect();
        let truth: Vec<bool> = candidates.iter().map(|_| rng.random()).collect();
        let mut seen = Vec::with_capacity(shadows);
        for shadow in 0..shadows {
            let out = candidates.iter().zip(&plan).filter(|(_, inside)| !inside[shadow]);
            let out: Vec<usize> = out.map(|(candidate, _)| candidate.record).collect();
            seen.push(self.run(environment, &out, true)?);
        }
        let out = candidates.iter().zip(&truth).filter(|(_, inside)| !**inside);
        let out: Vec<usize> = out.map(|(candidate, _)| candidate.record).collect();
        let attacked = self.run(environment, &out, false)?;
        let (mut observed, mut shadows) = (Vec::new(), Vec::new());
        for (candidate, inside) in candidates.iter().zip(&plan) {
            let vectors: Vec<&[f32]> = seen.iter().map(|seen| line(seen, candidate.row)).collect();
            let (value, shadow) = project(&vectors, inside, line(&attacked, candidate.row));
            observed.push(value);
            shadows.push(shadow);
        }
        let scores = likelihood_ratios(&observed, &shadows, Deviation::Pooled);
        let separation = Separation::from_scores(&scores, &truth);
        const ALPHA: f64 = 0.05;
        let mut measures = vec![Measure::new("AUC", separation.auc(ALPHA).value, 0.5, 1.0)];
        // A false-alarm rate below one absent record cannot be measured.
        let others = truth.iter().filter(|inside| !**inside).count();
        for (name, alarms) in
            [("true positives at 1 % false alarms", 0.01), ("true positives at 0.1 % false alarms", 0.001)]
        {
            if others as f64 * alarms >= 1.0 {
                let rate = separation.true_positives(alarms, ALPHA).value;
                measures.push(Measure::new(name, rate, alarms, 1.0));
            }
        }
        Ok(measures)
    }
}

impl Membership {
    /// Trains a run without some records of the attacked party, and returns the messages seen.
    fn run(
        &self,
        environment: &mut dyn AttackEnvironment,
        out: &[usize],
        quiet: bool,
    ) -> Result<ObservedRows, AttackError> {
        let mut data = environment.data().clone();
        leave_out(&mut data, self.0.party, out);
        Ok(Transcript::record(environment, self.0.party, Run { data: Some(data), quiet, ..Run::default() })?
            .0)
    }
}

fn leave_out(data: &mut VerticalData, party: usize, out: &[usize]) {
    if let Some(table) = data.secondaries.get_mut(party - 1) {
        let out: std::collections::BTreeSet<usize> = out.iter().copied().collect();
        let kept: Vec<usize> = (0..table.rows()).filter(|record| !out.contains(record)).collect();
        let (keys, features) = (table.keys.select_rows(&kept), table.features.select_rows(&kept));
        *table = PartyTable { keys, features, ..table.clone() };
    }
}

/// Returns the values seen for a row; empty if the row did not occur.
fn line(seen: &ObservedRows, row: usize) -> &[f32] {
    seen.rows.binary_search(&row).map_or(&[], |at| seen.values.row(at))
}

/// Projects each vector on the direction from the runs without the record to the runs with it. A shadow run's
/// own vector is excluded from the direction for its projection.
fn project(vectors: &[&[f32]], inside: &[bool], observed: &[f32]) -> (f64, Shadow) {
    let direction = |without: Option<usize>| {
        let mut sums = [vec![0.0f64; observed.len()], vec![0.0f64; observed.len()]];
        let mut counts = [0.0f64; 2];
        for (index, (vector, &inside)) in vectors.iter().zip(inside).enumerate() {
            if Some(index) != without && vector.len() == observed.len() {
                let side = usize::from(inside);
                sums[side].iter_mut().zip(*vector).for_each(|(sum, &x)| *sum += f64::from(x));
                counts[side] += 1.0;
            }
        }
        let mean = |side: usize, at: usize| sums[side][at] / counts[side].max(1.0);
        let difference = (0..observed.len()).map(|at| mean(1, at) - mean(0, at)).collect();
        crate::tools::clusters::unit(difference)
    };
    let along = |vector: &[f32], direction: &[f64]| {
        vector.iter().zip(direction).map(|(&x, d)| f64::from(x) * d).sum::<f64>()
    };
    let mut shadow = Shadow { inside: Vec::new(), outside: Vec::new() };
    for (index, (vector, &inside)) in vectors.iter().zip(inside).enumerate() {
        let value = along(vector, &direction(Some(index)));
        if inside { shadow.inside.push(value) } else { shadow.outside.push(value) }
    }
    (along(observed, &direction(None)), shadow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_measured_along_what_the_record_changes() {
        let (with, without) = ([1.0f32, 5.0], [0.0f32, 5.0]);
        let vectors = [&with[..], &with, &without, &without];
        let (value, shadow) = project(&vectors, &[true, true, false, false], &with);
        assert_eq!(value, 1.0);
        assert_eq!((shadow.inside, shadow.outside), (vec![1.0, 1.0], vec![0.0, 0.0]));
    }
}
