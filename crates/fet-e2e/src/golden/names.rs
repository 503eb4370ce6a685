//! Maps this program's parameter names to the names in the authors' programs.

/// Returns the reference's name for parameter `ours` of `party` (0 is the primary). The reference stores
/// matrices transposed.
pub(super) fn reference(method: &str, party: usize, ours: &str) -> Option<String> {
    if method == "fedsim" { fedsim(party, ours) } else { fet(party, ours) }
}

fn fedsim(party: usize, ours: &str) -> Option<String> {
    let parts: Vec<&str> = ours.split('.').collect();
    let name = match parts.as_slice() {
        ["local", "layers", layer, leaf] if party == 0 => {
            format!("split.local_models.0.fc_layers.{layer}.{leaf}")
        }
        ["network", "layers", layer, leaf] if party > 0 => {
            format!("split.local_models.{party}.fc_layers.{layer}.{leaf}")
        }
        ["pair", "layers", layer, leaf] => format!("split.agg_model.fc_layers.{layer}.{leaf}"),
        ["gate", "layers", layer, leaf] => format!("sim.fc_layers.{layer}.{leaf}"),
        ["convolution", leaf] => format!("merge.conv1.{leaf}"),
        ["merge", "layers", layer, leaf] => format!("merge.fc{}.{leaf}", layer.parse::<usize>().ok()? + 1),
        _ => return None,
    };
    Some(name)
}

/// Returns the name in FeT's reference, where a chain shares one layer norm.
fn fet(party: usize, ours: &str) -> Option<String> {
    let parts: Vec<&str> = ours.split('.').collect();
    let name = match parts.as_slice() {
        ["embedding", "input", leaf] => format!("data_embeddings.{party}.{leaf}"),
        ["embedding", "position", "frequencies"] => format!("positional_encodings.{party}.Wr.weight"),
        ["embedding", "position", layer, leaf] => {
            format!("positional_encodings.{party}.mlp.{}.{leaf}", sequential(layer)?)
        }
        ["mask", layer, leaf] => format!("dynamic_mask_layers.{party}.{}.{leaf}", sequential(layer)?),
        ["output", leaf] if party == 0 => format!("output_layer.{leaf}"),
        ["chain", "blocks", block, "feed_forward", layer, leaf] => {
            let layer = if *layer == "hidden" { "linear1" } else { "linear2" };
            format!("{}.ffn_blocks.{block}.{layer}.{leaf}", chain(party))
        }
        ["chain", "blocks", block, attention, layer, leaf] => {
            let blocks = match *attention {
                "attention" => "attn_blocks",
                "self_attention" => "self_attn_blocks",
                "memory_attention" => "agg_attn_blocks",
                _ => return None,
            };
            let leaf = match (*layer, *leaf) {
                ("projection", leaf) => format!("in_proj_{leaf}"),
                ("output", leaf) => format!("out_proj.{leaf}"),
                _ => return None,
            };
            format!("{}.{blocks}.{block}.attn.{leaf}", chain(party))
        }
        ["chain", norms, "each", "0", leaf] => {
            let norm = match *norms {
                "attention_norms" => "attn_norm",
                "self_norms" => "attn_norm1",
                "memory_norms" => "attn_norm2",
                "feed_forward_norms" => "ffn_norm",
                _ => return None,
            };
            let leaf = if *leaf == "gamma" { "weight" } else { "bias" };
            format!("{}.{norm}.{leaf}", chain(party))
        }
        _ => return None,
    };
    Some(name)
}

fn chain(party: usize) -> String {
    if party == 0 { "agg_attn".to_string() } else { format!("self_attns.{party}") }
}

/// Returns the index of a layer in a `Sequential` of linear, GELU, linear.
fn sequential(layer: &str) -> Option<usize> {
    match layer {
        "hidden" => Some(0),
        "output" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::reference;

    #[test]
    fn names_match_the_reference() {
        let check =
            |party, ours, theirs: &str| assert_eq!(reference("fet", party, ours).as_deref(), Some(theirs));
        check(2, "embedding.input.weight", "data_embeddings.2.weight");
        check(0, "embedding.position.frequencies", "positional_encodings.0.Wr.weight");
        check(1, "embedding.position.output.bias", "positional_encodings.1.mlp.2.bias");
        check(3, "mask.hidden.weight", "dynamic_mask_layers.3.0.weight");
        check(0, "output.bias", "output_layer.bias");
        check(
            1,
            "chain.blocks.2.attention.projection.weight",
            "self_attns.1.attn_blocks.2.attn.in_proj_weight",
        );
        check(
            0,
            "chain.blocks.0.memory_attention.output.bias",
            "agg_attn.agg_attn_blocks.0.attn.out_proj.bias",
        );
        check(0, "chain.blocks.1.feed_forward.hidden.bias", "agg_attn.ffn_blocks.1.linear1.bias");
        check(0, "chain.memory_norms.each.0.gamma", "agg_attn.attn_norm2.weight");
        check(1, "chain.attention_norms.each.0.beta", "self_attns.1.attn_norm.bias");
        assert_eq!(reference("fet", 1, "something.else"), None);
        let fedsim = |party, ours| reference("fedsim", party, ours);
        assert_eq!(fedsim(0, "merge.layers.0.bias").as_deref(), Some("merge.fc1.bias"));
        assert_eq!(fedsim(0, "convolution.weight").as_deref(), Some("merge.conv1.weight"));
        assert_eq!(
            fedsim(1, "network.layers.1.weight").as_deref(),
            Some("split.local_models.1.fc_layers.1.weight")
        );
        assert_eq!(fedsim(1, "local.layers.1.weight"), None);
    }
}
