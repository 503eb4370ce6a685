//! `faulty-party`: performance of the model if a secondary fails after training. Its records of test rows are
//! uninformative, or belong to other rows.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Target};
use fet_core::data::Task;
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{numbers, overwritten};
use crate::tools::scaling;

/// Settings of `faulty-party`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultyPartySettings {
    /// Number of the failing secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Fault of the secondary after training.
    pub fault: Fault,
}

/// Fault of a secondary after training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The records of test rows contain the mean of each column.
    #[default]
    Missing,
    /// The records of test rows contain the values of other rows.
    Mixed,
}

impl Default for FaultyPartySettings {
    fn default() -> Self {
        Self { party: 1, fault: Fault::Missing }
    }
}

impl Recipe<dyn Attack> for FaultyPartySettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Faulty(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<FaultyPartySettings>("faulty-party", "a secondary that fails after training")
}

struct Faulty(FaultyPartySettings);

impl Attack for Faulty {
    fn about(&self) -> About {
        About { attacker: Attacker::Secondary, target: Target::Predictions, party: self.0.party }
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let FaultyPartySettings { party, fault } = self.0;
        let trained = environment.train(Run::default())?;
        let clean = trained.metric();
        let [train, _, test] = trained.rows().map(<[usize]>::to_vec);
        let mut records: Vec<usize> = trained.nearest(party, &test)?.into_iter().flatten().collect();
        drop(trained);
        records.sort_unstable();
        records.dedup();
        // The party has correct records during training and fails afterwards.
        let features = numbers(&environment.data().secondaries[party - 1])?;
        let failing = match fault {
            Fault::Missing => {
                let means: Vec<f32> = scaling(features).into_iter().map(|(mean, _)| mean as f32).collect();
                overwritten(features, &records, |_| means.clone())
            }
            Fault::Mixed => {
                let mut others = records.clone();
                others.shuffle(&mut stream(environment.setting().seed, 0, Purpose::Attack, 5));
                overwritten(features, &records, |place| features.row(others[place]).to_vec())
            }
        };
        let faulty = environment.train(Run { tested: Some((party, failing)), ..Run::default() })?.metric();
        let (name, worst) = match environment.setting().task {
            // Error of predicting the mean of the training labels.
            Task::Regression => ("RMSE", deviation(&environment.data().labels, &train, &test)),
            Task::Binary | Task::Multiclass => ("accuracy", 1.0 / environment.setting().classes as f64),
        };
        Ok(vec![Measure::new(name, faulty, clean, worst)])
    }
}

fn deviation(labels: &[f64], train: &[usize], test: &[usize]) -> f64 {
    let mean = train.iter().map(|&row| labels[row]).sum::<f64>() / train.len().max(1) as f64;
    let squares = test.iter().map(|&row| (labels[row] - mean).powi(2)).sum::<f64>();
    (squares / test.len().max(1) as f64).sqrt()
}
