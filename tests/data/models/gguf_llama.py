"""mlx-lm's own llama with the weights of a GGUF, dequantised to float32 by the gguf package. Used by both makers."""

import mlx.core as mx
import numpy as np
from gguf import GGUFReader, dequantize
from mlx_lm.models import llama

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}


def load(gguf: GGUFReader, rope_scaling: dict | None = None) -> llama.Model:
    """The model in `gguf`. Llama 3's rope scaling is a tensor there; here it is `rope_scaling`, as mlx-lm knows it."""

    def field(name):
        return gguf.fields[f"llama.{name}"].contents()

    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    weights = {}
    for tensor in gguf.tensors:
        if tensor.name == "rope_freqs.weight":
            continue
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        parts = tensor.name.removesuffix(".weight").split(".")
        name = NAMES[parts[-1]]
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{name}"
        if parts[-1] in ("attn_q", "attn_k"):
            # GGUF stores a head's rows pair by pair, mlx-lm in two halves.
            n = heads if parts[-1] == "attn_q" else kv_heads
            values = values.reshape(n, -1, 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
        weights[f"{name}.weight"] = mx.array(values)
    arguments = llama.ModelArgs(
        model_type="llama",
        hidden_size=field("embedding_length"),
        num_hidden_layers=field("block_count"),
        intermediate_size=field("feed_forward_length"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=weights["model.layers.0.self_attn.q_proj.weight"].shape[0] // heads,
        # The file has it as f32; the decimal that was meant is 1e-5, not 9.999999747378752e-6.
        rms_norm_eps=float(str(np.float32(field("attention.layer_norm_rms_epsilon")))),
        vocab_size=len(gguf.fields["tokenizer.ggml.tokens"].contents()),
        max_position_embeddings=field("context_length"),
        rope_theta=field("rope.freq_base"),
        rope_scaling=rope_scaling,
        tie_word_embeddings="lm_head.weight" not in weights,
    )
    model = llama.Model(arguments)
    model.load_weights(list(weights.items()), strict=True)
    mx.eval(model.parameters())
    return model
