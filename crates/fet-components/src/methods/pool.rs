//! `fet-pool`: every party answers one vector for each row, the mean of its neighbours' representations,
//! weighted by the probability that a neighbour is the right record.
//!
//! FeT sends K vectors and averages over the parties neighbours of equal rank, which are different records.
//! Here a party weights its own neighbours before the parties' answers are averaged. Traffic, secure
//! aggregation and noise cover H numbers instead of K·H. The primary's model is a perceptron. The
//! contribution of the other parties' answer is added to its own output. That contribution is zero at the
//! start, so that training begins at the method without other parties.

mod network;
mod pooled;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::network::{Tower, TowerShape};
use self::pooled::{LINK_COLUMNS, Pooled};
use crate::model::{Init, KeyEncoding, NumberEncoding};
use fet_core::aggregator::Aggregator;
use fet_core::encoder::{Encoder, EncoderContext};
use fet_core::method::{Method, Plan, Primary, PrimaryContext, PrimaryModel, SecondaryContext, Slots};
use fet_core::model::MOST_WIDTH;
use fet_core::model::ModelShape;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};

/// Settings of `fet-pool`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PoolSettings {
    /// True if the primary queries the other parties. With false, the method is its own control variant: the
    /// difference is the contribution of the other parties.
    pub others: bool,
    /// Width of a party's answer.
    #[schemars(range(min = 1, max = MOST_WIDTH), extend("x-rule" = "even if keys are encoded"))]
    pub width: usize,
    /// Widths of the hidden layers, in order, through which the primary's own record passes.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)), length(min = 1))]
    pub hidden: Vec<usize>,
    /// Width of the hidden layer that sees both the primary's own record and the other parties' answer; with
    /// 0, the answer is only added.
    #[schemars(range(min = 0, max = MOST_WIDTH))]
    pub joint: usize,
    /// Soft bound on the absolute value of the inputs of the primary's model (Holzmüller et al. 2024); 0 for
    /// no bound.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub clip: f64,
    /// Dropout rate after each hidden layer, of every party; 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f64,
    /// Share of secondaries that each training step leaves out (party dropout); 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub party_dropout: f64,
    /// Factor on similarities before the softmax that weights a row's neighbours: 1 for probabilities of the
    /// linker `posterior`, 0 for the plain mean.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub sharpness: f64,
    /// True if a party's answer also follows from the similarities of a row's neighbours, such as the distance to
    /// the nearest record.
    pub similarity_inputs: bool,
    /// Encoding of the primary's own key. Its `width` also applies to every secondary's own keys.
    pub key_encoding: KeyEncoding,
    /// Encoding of the primary's own columns. `encoder.number_encoding` encodes those of the secondaries.
    pub number_encoding: NumberEncoding,
    /// Optimiser of the primary's model and of every secondary's model.
    pub optimizer: OptimizerSettings,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            others: true,
            width: 32,
            hidden: vec![256, 256],
            joint: 128,
            clip: 3.0,
            dropout: 0.0,
            party_dropout: 0.0,
            sharpness: 1.0,
            similarity_inputs: false,
            key_encoding: KeyEncoding::default(),
            number_encoding: NumberEncoding::default(),
            optimizer: OptimizerSettings::adamw(),
        }
    }
}

impl Recipe<dyn Method> for PoolSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.hidden.is_empty() {
            return Err(Violation::new("hidden", "must have at least one layer", "[]"));
        }
        if self.key_encoding.width > 0 && !self.width.is_multiple_of(2) {
            let rule = "must be even if keys are encoded: the encoding of a secondary's key has this width";
            return Err(Violation::new("width", rule, self.width));
        }
        self.key_encoding.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Pool(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<PoolSettings>(
        "fet-pool",
        "one vector of each party for a row: its neighbours weighted by the probability that each is \
         the right record",
    )
}

struct Pool(PoolSettings);

impl Method for Pool {
    fn plan(&self) -> Plan {
        Plan {
            secondaries: self.0.others,
            encoder: "mlp",
            width: self.0.width,
            pooled: true,
            any_neighbours: true,
            optimizer: self.0.optimizer.clone(),
            party_dropout: self.0.party_dropout,
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if slots.aggregator.uses_similarities() {
            let rule = "must be one that needs no similarities: a party sends one vector for all neighbours of a row";
            return Err(slots.refuse::<dyn Aggregator>(rule));
        }
        Ok(())
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let PoolSettings { hidden, joint, clip, dropout, key_encoding, number_encoding, optimizer, .. } =
            &self.0;
        let mut init = Init::new(context.weights.clone(), context.device);
        let shape = TowerShape {
            keys: context.key_columns,
            features: context.feature_columns,
            key_encoding,
            number_encoding,
            hidden,
            memory: if self.0.others { context.memory_width } else { self.0.width },
            asks: self.0.others,
            // A concatenation of the parties' answers is not a mean.
            parties: if context.memory_width == self.0.width { context.parties } else { 1 },
            joint: *joint,
            outputs: context.objective.outputs,
            clip: *clip,
            dropout: *dropout,
        };
        Ok(Box::new(PrimaryModel::new(Tower::new(&mut init, &shape), optimizer, context)))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        let PoolSettings { width, dropout, key_encoding, optimizer, sharpness, similarity_inputs, .. } =
            &self.0;
        let encoded = key_encoding.width > 0;
        let shape = ModelShape {
            hidden: *width,
            heads: 1,
            dropout: *dropout,
            positional_encoding: encoded,
            frequency_std: key_encoding.frequency_std,
            shared_norm: false,
        };
        let inner = encoder.build(&EncoderContext {
            device: context.device,
            weights: context.weights.clone(),
            // The encoder sees one record at a time; its representations are pooled afterwards.
            neighbours: 1,
            key_columns: if encoded { context.key_columns } else { 0 },
            feature_columns: context.feature_columns + if *similarity_inputs { LINK_COLUMNS } else { 0 },
            computation: context.computation,
            shape: &shape,
            optimizer,
        })?;
        Ok(Box::new(Pooled::new(inner, *sharpness, *similarity_inputs)))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor, TensorData};
    use fet_core::data::Task;
    use fet_core::encoder::Computation;
    use fet_core::method::{Memory, PrimaryBatch};
    use fet_core::objective::Objective;
    use fet_core::parameters::host;
    use fet_core::rng::{Purpose, stream};

    use super::*;

    fn predicted(settings: PoolSettings, rows: &[[f32; 5]], answer: f32) -> Vec<f32> {
        let device = Device::flex();
        let context = PrimaryContext {
            device: &device.clone().autodiff(),
            weights: stream(3, 0, Purpose::Weights, 0),
            key_columns: 2,
            feature_columns: 3,
            objective: Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 1.0 },
            parties: 2,
            positions: 1,
            memory_width: 4,
            computation: Computation { fused: false, recompute: false },
        };
        let others = settings.others;
        let primary = Pool(settings).primary(&context).expect("it fits");
        let columns = |range: std::ops::Range<usize>| {
            let width = range.len();
            let values: Vec<f32> = rows.iter().flat_map(|row| row[range.clone()].to_vec()).collect();
            Tensor::from_data(TensorData::new(values, [rows.len(), width]), &device)
        };
        let (labels, weights) = (Vec::new(), Vec::new());
        let batch = PrimaryBatch { keys: columns(0..2), features: columns(2..5), labels, weights };
        let tensor = Tensor::full([rows.len(), 1, 4], answer, &device);
        let memory = others.then_some(Memory { tensor, available: 1, similarities: Vec::new() });
        host(primary.predict(&batch, memory))
    }

    const ROWS: [[f32; 5]; 2] = [[0.1, -0.4, 1.0, 0.0, 3.0], [1.0, 2.0, -1.0, 0.5, 0.0]];

    fn settings(encoded: usize, others: bool) -> PoolSettings {
        let number_encoding = NumberEncoding { width: encoded, ..NumberEncoding::default() };
        PoolSettings { others, number_encoding, width: 4, hidden: vec![8], ..PoolSettings::default() }
    }

    /// At the start, the output does not depend on the answer: the control variant differs only by the other
    /// parties' contribution.
    #[test]
    fn training_begins_at_the_control() {
        for encoded in [0, 3] {
            let alone = predicted(settings(encoded, false), &ROWS, 0.0);
            assert_ne!(alone[0], alone[1]);
            assert_eq!(predicted(settings(encoded, true), &ROWS, 0.0), alone);
            assert_eq!(predicted(settings(encoded, true), &ROWS, 5.0), alone);
        }
    }

    #[test]
    fn a_row_has_the_same_prediction_alone_and_in_a_batch() {
        let rows: Vec<[f32; 5]> =
            (0..37).map(|row| std::array::from_fn(|at| (row * 5 + at) as f32).map(f32::sin)).collect();
        let together = predicted(settings(3, true), &rows, 0.7);
        let alone: Vec<f32> =
            rows.iter().flat_map(|row| predicted(settings(3, true), &[*row], 0.7)).collect();
        assert_eq!(alone, together);
    }
}
