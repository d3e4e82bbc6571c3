//! The architectures of GGUFs: one row each says what its files call tensors and in which order they store rows.

/// How the files of one architecture become a Hugging Face checkpoint.
pub(super) struct Architecture {
    /// `general.architecture`, which is the prefix of the metadata's keys too.
    pub name: &'static str,
    /// `model_type` of the config.json.
    pub model_type: &'static str,
    /// The first of `architectures` in the config.json.
    pub class: &'static str,
    /// A layer's parts: `blk.N.<left>.weight` is `model.layers.N.<right>.weight`.
    layer: &'static [(&'static str, &'static str)],
    /// The parts outside of layers.
    root: &'static [(&'static str, &'static str)],
    /// The layer's parts, by their own names, whose heads' rows are stored pair by pair.
    paired: &'static [&'static str],
}

/// Every architecture whose files are read.
const ARCHITECTURES: &[Architecture] = &[Architecture {
    // Mistral and smollm2 models call themselves so too.
    name: "llama",
    model_type: "llama",
    class: "LlamaForCausalLM",
    layer: &[
        ("attn_norm", "input_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ],
    root: &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")],
    paired: &["attn_q", "attn_k"],
}];

impl Architecture {
    /// The row of a `general.architecture`.
    pub fn find(name: &str) -> Option<&'static Architecture> {
        ARCHITECTURES.iter().find(|row| row.name == name)
    }

    /// The names of all rows, for messages.
    pub fn names() -> String {
        ARCHITECTURES.iter().map(|row| row.name).collect::<Vec<&str>>().join(", ")
    }

    /// The Hugging Face name of a tensor. A name that has none stays as it is, so that the model's loader reports it as
    /// unread.
    pub fn translate(&self, name: &str) -> String {
        self.known(name).unwrap_or_else(|| name.to_owned())
    }

    fn known(&self, name: &str) -> Option<String> {
        let find = |table: &[(&str, &'static str)], part: &str| table.iter().find(|row| row.0 == part).map(|row| row.1);
        let (path, kind) = name.rsplit_once('.')?;
        if kind != "weight" && kind != "bias" {
            return None;
        }
        match path.strip_prefix("blk.") {
            None => Some(format!("{}.{kind}", find(self.root, path)?)),
            Some(rest) => {
                let (layer, part) = rest.split_once('.')?;
                let layer: u32 = layer.parse().ok()?;
                Some(format!("model.layers.{layer}.{}.{kind}", find(self.layer, part)?))
            }
        }
    }

    /// Whether a tensor of this name has its heads' rows stored pair by pair.
    pub fn is_paired(&self, name: &str) -> bool {
        name.starts_with("blk.") && name.split('.').nth(2).is_some_and(|part| self.paired.contains(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::Architecture;

    #[test]
    fn names() {
        let llama = Architecture::find("llama").expect("a row");
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
            assert_eq!(llama.translate(gguf), expected);
        }
    }

    #[test]
    fn rows_that_are_paired() {
        let llama = Architecture::find("llama").expect("a row");
        for (name, expected) in [
            ("blk.0.attn_q.weight", true),
            ("blk.12.attn_k.bias", true),
            ("blk.0.attn_v.weight", false),
            ("blk.0.attn_q_norm.weight", false),
            ("output.weight", false),
            ("blk.0", false),
        ] {
            assert_eq!(llama.is_paired(name), expected, "{name}");
        }
    }
}
