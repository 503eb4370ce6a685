//! `fet`: the Federated Transformer (Wu, Hou, Diao, He; NeurIPS 2024).
//!
//! Secondaries encode their neighbours; the primary's decoder attends from its own record to the aggregate.

mod fused;

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::fused::FusedDecoder;
use crate::model::{Decoder, DecoderShape, Embedding, Init, padding_mask};
use fet_core::encoder::{Encoder, EncoderContext};
use fet_core::method::{
    Averaged, Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::{MOST_BLOCKS, MOST_WIDTH};
use fet_core::model::{ModelShape, Pass};
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};

/// Settings of `fet` (Wu, Hou, Diao, He 2024).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FetSettings {
    /// H, the width of every representation.
    #[schemars(range(min = 1, max = MOST_WIDTH), extend("x-rule" = "a multiple of `heads` and even with a positional encoding"))]
    pub hidden: usize,
    /// Number of attention heads in every block.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub heads: usize,
    /// Number of blocks of the primary's decoder.
    #[schemars(range(min = 1, max = MOST_BLOCKS))]
    pub agg_blocks: usize,
    /// Dropout rate within blocks; 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f64,
    /// Share of secondaries that each training step leaves out (party dropout); 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub party_dropout: f64,
    /// True if keys get a positional encoding of learnable Fourier features (paper, section 4.2).
    pub positional_encoding: bool,
    /// Standard deviation of the initial frequencies of the positional encoding (the authors' program: 400).
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub frequency_std: f64,
    /// Interval, in epochs, at which the parameters of all parties' positional encodings are averaged; 0 for
    /// never.
    #[schemars(extend("x-rule" = "0 without a positional encoding"))]
    pub pe_average_every: usize,
    /// True if the blocks of a model share their layer norms, as in the authors' program; otherwise each
    /// block has its own.
    pub shared_norm: bool,
    /// Optimiser of the primary's model and of every secondary's model.
    pub optimizer: OptimizerSettings,
}

impl Default for FetSettings {
    fn default() -> Self {
        Self {
            hidden: 100,
            heads: 4,
            agg_blocks: 1,
            dropout: 0.3,
            party_dropout: 0.0,
            positional_encoding: true,
            frequency_std: 20.0,
            pe_average_every: 0,
            shared_norm: false,
            optimizer: OptimizerSettings::lamb(),
        }
    }
}

impl Recipe<dyn Method> for FetSettings {
    fn check(&self) -> Result<(), Violation> {
        if !self.hidden.is_multiple_of(self.heads) {
            let rule = format!("must be a multiple of `heads` ({})", self.heads);
            return Err(Violation::new("hidden", rule, self.hidden));
        }
        if self.positional_encoding && !self.hidden.is_multiple_of(2) {
            return Err(Violation::new("hidden", "must be even for the positional encoding", self.hidden));
        }
        if self.pe_average_every > 0 && !self.positional_encoding {
            let rule = "must be 0 if `positional_encoding` is false: only its parameters are averaged";
            return Err(Violation::new("pe_average_every", rule, self.pe_average_every));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Fet { shape: self.shape(), settings: self.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<FetSettings>("fet", "the Federated Transformer")
}

impl FetSettings {
    fn shape(&self) -> ModelShape {
        ModelShape {
            hidden: self.hidden,
            heads: self.heads,
            dropout: self.dropout,
            positional_encoding: self.positional_encoding,
            frequency_std: self.frequency_std,
            shared_norm: self.shared_norm,
        }
    }
}

struct Fet {
    settings: FetSettings,
    shape: ModelShape,
}

impl Method for Fet {
    fn plan(&self) -> Plan {
        Plan {
            width: self.settings.hidden,
            optimizer: self.settings.optimizer.clone(),
            party_dropout: self.settings.party_dropout,
            any_neighbours: true,
            averaged: (self.settings.pe_average_every > 0).then_some(Averaged {
                prefix: Embedding::POSITION,
                every: self.settings.pe_average_every,
                setting: "pe_average_every",
            }),
            ..Plan::default()
        }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let mut init = Init::new(context.weights.clone(), context.device);
        let shape = DecoderShape {
            columns: (context.key_columns, context.feature_columns),
            blocks: self.settings.agg_blocks,
            outputs: context.objective.outputs,
            memory_width: context.memory_width,
        };
        let decoder = Decoder::new(&mut init, context.device, &shape, &self.shape);
        let optimizer = &self.settings.optimizer;
        Ok(if context.computation.fused {
            Box::new(FusedDecoder::new(decoder, &self.shape, optimizer, context))
        } else {
            Box::new(PrimaryModel::new(decoder, optimizer, context))
        })
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        encoder.build(&EncoderContext {
            device: context.device,
            weights: context.weights.clone(),
            neighbours: context.neighbours,
            key_columns: context.key_columns,
            feature_columns: context.feature_columns,
            computation: context.computation,
            shape: &self.shape,
            optimizer: &self.settings.optimizer,
        })
    }
}

impl PrimaryNetwork for Decoder {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries");
        let [rows, positions, _] = memory.tensor.dims();
        let mask = padding_mask(rows, positions, memory.available, &memory.tensor.device());
        self.decode(batch.keys.clone(), batch.features.clone(), memory.tensor.clone(), mask, pass)
    }
}
