//! The names of a GGUF's tensors, in a Hugging Face checkpoint's words.

/// A layer's parts: `blk.N.<left>.weight` is `model.layers.N.<right>.weight`.
const LLAMA_LAYER: &[(&str, &str)] = &[
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

const LLAMA_ROOT: &[(&str, &str)] =
    &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")];

/// The Hugging Face name of a llama's tensor. A name that has none stays as it is, so that the model's loader reports
/// it as unread.
pub(super) fn llama(name: &str) -> String {
    translate(name).unwrap_or_else(|| name.to_owned())
}

fn translate(name: &str) -> Option<String> {
    let find = |table: &[(&str, &'static str)], part: &str| table.iter().find(|row| row.0 == part).map(|row| row.1);
    let (path, kind) = name.rsplit_once('.')?;
    if kind != "weight" && kind != "bias" {
        return None;
    }
    match path.strip_prefix("blk.") {
        None => Some(format!("{}.{kind}", find(LLAMA_ROOT, path)?)),
        Some(rest) => {
            let (layer, part) = rest.split_once('.')?;
            let layer: u32 = layer.parse().ok()?;
            Some(format!("model.layers.{layer}.{}.{kind}", find(LLAMA_LAYER, part)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::llama;

    #[test]
    fn names() {
        for (gguf, expected) in [
            ("token_embd.weight", "model.embed_tokens.weight"),
            ("output.weight", "lm_head.weight"),
            ("output_norm.weight", "model.norm.weight"),
            ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
            ("blk.17.attn_k.bias", "model.layers.17.self_attn.k_proj.bias"),
            ("blk.3.ffn_norm.weight", "model.layers.3.post_attention_layernorm.weight"),
            ("blk.3.attn_output.weight", "model.layers.3.self_attn.o_proj.weight"),
            ("rope_freqs.weight", "rope_freqs.weight"),
            ("blk.3.ffn_gate_exps.weight", "blk.3.ffn_gate_exps.weight"),
            ("blk.x.attn_q.weight", "blk.x.attn_q.weight"),
            ("", ""),
        ] {
            assert_eq!(llama(gguf), expected);
        }
    }
}
