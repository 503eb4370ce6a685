//! Layers of the transformer as a Burn module.

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};

use crate::model::{BlockChain, DynamicMask, Embedding, Init, padding_mask};
use fet_core::encoder::{EncoderContext, NeighbourBatch, Network};
use fet_core::model::Pass;

/// Embedding, dynamic mask and blocks.
#[derive(Module, Debug)]
pub(super) struct Transformer {
    embedding: Embedding,
    pub(super) mask: Option<DynamicMask>,
    chain: BlockChain,
}

impl Transformer {
    /// Returns a model with `blocks` blocks, with a learned mask if `masked`.
    pub(super) fn new(blocks: usize, masked: bool, context: &EncoderContext<'_>) -> Self {
        let mut init = Init::new(context.weights.clone(), context.device);
        let (keys, features) = (context.key_columns, context.feature_columns);
        Self {
            embedding: Embedding::new(&mut init, keys, features, context.shape),
            mask: masked.then(|| DynamicMask::new(&mut init, keys, context.neighbours)),
            chain: BlockChain::new(&mut init, context.device, blocks, context.shape),
        }
    }

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
