//! `transformer`: the paper's secondary encoder, with embedding, dynamic mask and self-attention over the K
//! neighbours (paper, section 4; figure 2).

mod fused;
mod layers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::fused::FusedTransformer;
use self::layers::Transformer;
use fet_core::encoder::{Encoder, EncoderContext, LocalModel};
use fet_core::model::MOST_BLOCKS;
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
        let module = Transformer::new(self.blocks, self.dynamic_mask, context);
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
