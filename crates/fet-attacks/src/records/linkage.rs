//! `linkage`: infers if a row was linked to a record that belongs to it. The primary knows the similarity of
//! the nearest record for some rows, and classifies the other rows by the messages it receives for them.

use std::collections::BTreeSet;

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Target};
use fet_core::data::Matrix;
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::ridge::Decoder;
use crate::tools::scores::auc;
use crate::tools::transcript::Transcript;
use crate::tools::{by_record, join_columns};

/// Settings of `linkage`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkageSettings {
    /// Number of the attacked secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Share of training rows for which the attacker knows the similarity of the nearest record.
    #[schemars(range(min = 0.05, max = 0.95))]
    pub known: f64,
}

impl Default for LinkageSettings {
    fn default() -> Self {
        Self { party: 1, known: 0.5 }
    }
}

impl Recipe<dyn Attack> for LinkageSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Linkage(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<LinkageSettings>("linkage", "links to close records, from the messages to the primary")
}

struct Linkage(LinkageSettings);

impl Attack for Linkage {
    fn about(&self) -> About {
        About { attacker: Attacker::Primary, target: Target::Links, party: self.0.party }
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let party = self.0.party;
        let (seen, trained) = Transcript::train(environment, party)?;
        let training: BTreeSet<usize> = trained.rows()[0].iter().copied().collect();
        let kept: Vec<usize> = (0..seen.rows.len()).filter(|&at| training.contains(&seen.rows[at])).collect();
        let rows: Vec<usize> = kept.iter().map(|&at| seen.rows[at]).collect();
        let Some(similarity) = trained.similarity(party, &rows)? else {
            let rule = "must give similarities: this attack needs them to find close links";
            return Err(Violation::new("linker.kind", rule, "another").into());
        };
        let mut sorted = similarity.clone();
        sorted.sort_by(f32::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let close: Vec<bool> = similarity.iter().map(|&value| value > median).collect();
        let own = trained.own_columns(&rows);
        let values = seen.values.select_rows(&kept);
        let mut rng = stream(environment.setting().seed, 0, Purpose::Attack, 3);
        let order = by_record(&trained.nearest(party, &rows)?, &mut rng);
        let known = (order.len() as f64 * self.0.known).round() as usize;
        let (known, hidden) = order.split_at(known.min(order.len()));
        let (known, hidden) = (known.concat(), hidden.concat());
        let found = area(&join_columns(&values, &own), &close, &known, &hidden);
        let baseline = area(&own, &close, &known, &hidden).max(0.5);
        Ok(vec![Measure::new("AUC, for links closer than the median", found, baseline, 1.0)])
    }
}

fn area(inputs: &Matrix<f32>, close: &[bool], known: &[usize], hidden: &[usize]) -> f64 {
    let (select, fit) = known.split_at(known.len() / 5);
    if select.is_empty() || hidden.is_empty() {
        return 0.5;
    }
    let target =
        |rows: &[usize]| Matrix::new(1, rows.iter().map(|&row| f32::from(u8::from(close[row]))).collect());
    let part = |rows: &[usize]| (inputs.select_rows(rows), target(rows));
    let (fit, select) = (part(fit), part(select));
    let decoder = Decoder::fit((&fit.0, &fit.1), (&select.0, &select.1));
    let scores = decoder.predict(&inputs.select_rows(hidden));
    let scores: Vec<f64> = scores.values().iter().map(|&score| f64::from(score)).collect();
    auc(&scores, |at| close[hidden[at]])
}
