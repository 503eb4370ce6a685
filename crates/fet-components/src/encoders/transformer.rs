//! `transformer`: the paper's secondary encoder, with embedding, dynamic mask and self-attention over the K
//! neighbours (paper, section 4; figure 2).

mod fused;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::fused::FusedTransformer;
use crate::model::{BlockChain, DynamicMask, Embedding, Init, padding_mask};
use fet_core::encoder::{Encoder, EncoderContext, LocalModel, NeighbourBatch, Network};
use fet_core::model::MOST_BLOCKS;
use fet_core::model::Pass;
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `transformer` (paper, section 4).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerSettings {
    /// Number of pre-norm blocks of self-attention over the K neighbours.
    #[schemars(range(min = 1, max = MOST_BLOCKS))]
    pub blocks: usize,
    /// True if a learned mask, computed from the neighbours' keys, weights the links (paper, section 4.3).
    pub dynamic_mask: bool,
}

impl Default for TransformerSettings {
    fn default() -> Self {
        Self { blocks: 1, dynamic_mask: true }
    }
}

impl Recipe<dyn Encoder> for TransformerSettings {
    fn build(&self, context: &EncoderContext<'_>) -> Result<Box<dyn Encoder>, Violation> {
        if context.key_columns == 0 {
            let rule =
                "must be one that works without keys, such as \"mlp\": the method does not pass keys to it";
            return Err(Violation::new("kind", rule, "\"transformer\""));
        }
        let module = Transformer::new(self, context);
        Ok(if context.computation.fused {
            Box::new(FusedTransformer::new(module, context))
        } else {
            Box::new(LocalModel::new(module, context))
        })
    }
}

inventory::submit! {
    Plugin::<dyn Encoder>::new::<TransformerSettings>(
        "transformer",
        "self-attention over the neighbours, with a learned mask",
    )
}

#[derive(Module, Debug)]
struct Transformer {
    embedding: Embedding,
    mask: Option<DynamicMask>,
    chain: BlockChain,
}

impl Transformer {
    fn new(settings: &TransformerSettings, context: &EncoderContext<'_>) -> Self {
        let mut init = Init::new(context.weights.clone(), context.device);
        let (keys, features) = (context.key_columns, context.feature_columns);
        Self {
            embedding: Embedding::new(&mut init, keys, features, context.shape),
            mask: settings.dynamic_mask.then(|| DynamicMask::new(&mut init, keys, context.neighbours)),
            chain: BlockChain::new(&mut init, context.device, settings.blocks, context.shape),
        }
    }
}

impl Transformer {
    /// Returns the inputs of the blocks: the distinct records, embedded, [U, H]; and the mask, [B, K].
    fn enter(&self, batch: &NeighbourBatch) -> (Tensor<2>, Option<Tensor<2>>) {
        let (rows, neighbours) = (batch.rows, batch.neighbours);
        let records = self.embedding.forward(batch.keys.clone(), batch.features.clone());
        let learned = self.mask.as_ref().map(|mask| {
            let key_columns = batch.keys.dims()[1];
            let slots = batch.listed.as_ref().map_or(&batch.slots, |listed| &listed.slots);
            let length = slots.dims()[0] / rows;
            let keys = batch.keys.clone().select(0, slots.clone());
            let learned = mask.forward(keys.reshape([rows, length * key_columns]));
            match &batch.listed {
                None => learned,
                Some(listed) => {
                    let places: Vec<i32> = listed.places.iter().map(|&place| place as i32).collect();
                    let places = TensorData::from(places.as_slice());
                    learned.select(1, Tensor::<1, Int>::from_data(places, &batch.slots.device()))
                }
            }
        });
        let padding = padding_mask(rows, neighbours, batch.available, &batch.keys.device());
        let mask = match (learned, padding) {
            (Some(learned), Some(padding)) => Some(learned + padding),
            (learned, padding) => learned.or(padding),
        };
        (records, mask)
    }
}

impl Network for Transformer {
    fn forward(&self, batch: &NeighbourBatch, pass: &mut Pass) -> Tensor<3> {
        let (records, mask) = self.enter(batch);
        self.chain.forward(records, batch.slots.clone(), batch.rows, mask, pass)
    }
}
