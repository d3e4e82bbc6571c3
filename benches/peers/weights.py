"""Checkpoints for comparisons: the same weights in MLX's 4 bits, and random weights in the shapes of real models."""

import json

import gguf
import numpy as np

# config.json of the models whose shapes are taken; embeddings are the output head as well.
SHAPES = {
    "qwen3-0.6b": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28},
    "qwen3-1.7b": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28},
}
for shape in SHAPES.values():
    shape.update(
        model_type="qwen3", num_attention_heads=16, num_key_value_heads=8, head_dim=128, vocab_size=151936,
        max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=True, hidden_act="silu",
    )

# Their names in a GGUF and in MLX's checkpoints.
NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "token_embd": "embed_tokens", "output_norm": "norm",
}


def mlx_name(name):
    parts = name.removesuffix(".weight").split(".")
    layer = f"layers.{parts[1]}." if parts[0] == "blk" else ""
    return f"model.{layer}{NAMES[parts[-1]]}"


def tensors(config):
    """The names in a GGUF and shapes of all weights; vectors are norms."""
    dim, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    yield "token_embd", (config["vocab_size"], dim)
    yield "output_norm", (dim,)
    for layer in range(config["num_hidden_layers"]):
        for name, shape in [
            ("attn_norm", (dim,)), ("attn_q", (q, dim)), ("attn_k", (kv, dim)), ("attn_v", (kv, dim)),
            ("attn_output", (dim, q)), ("attn_q_norm", (head,)), ("attn_k_norm", (head,)), ("ffn_norm", (dim,)),
            ("ffn_gate", (inner, dim)), ("ffn_up", (inner, dim)), ("ffn_down", (dim, inner)),
        ]:  # fmt: skip
            yield f"blk.{layer}.{name}", shape


def write_safetensors(folder, config, arrays):
    """One file, a tensor at a time: `arrays` gives names and arrays, twice the same."""
    folder.mkdir(exist_ok=True)
    kinds = {"float32": "F32", "float16": "F16", "uint32": "U32"}
    header, at = {}, 0
    for name, array in arrays():
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    header = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for _, array in arrays():
            array.tofile(file)
    # Last, so that a folder with a config is complete.
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def random_mlx(config, folder, group=64):
    def arrays():
        random = np.random.default_rng(1)
        for name, shape in tensors(config):
            name = mlx_name(name)
            if len(shape) == 1:
                yield f"{name}.weight", np.ones(shape, np.float16)
                continue
            rows, inputs = shape
            yield f"{name}.weight", random.integers(0, 1 << 32, (rows, inputs // 8), np.uint32)
            yield f"{name}.scales", np.full((rows, inputs // group), 0.005, np.float16)
            yield f"{name}.biases", np.full((rows, inputs // group), -0.0375, np.float16)

    write_safetensors(folder, {**config, "quantization": {"group_size": group, "bits": 4}}, arrays)


def random_gguf(config, path):
    writer = gguf.GGUFWriter(path.with_suffix(".part"), "qwen3")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    random = np.random.default_rng(1)
    for name, shape in tensors(config):
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", np.ones(shape, np.float32))
            continue
        rows, inputs = shape
        # Q4_0: a scale in f16 and 16 bytes of nibbles for every 32 numbers.
        blocks = random.integers(0, 256, (rows, inputs // 32, 18), np.uint8)
        blocks[:, :, :2] = np.frombuffer(np.float16(0.005).tobytes(), np.uint8)
        writer.add_tensor(f"{name}.weight", blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".part").rename(path)


def mlx_of_gguf(path, folder, group):
    """A llama GGUF of floats as MLX's affine 4 bits."""
    reader = gguf.GGUFReader(path)
    field = lambda name: reader.fields[f"llama.{name}"].contents()  # noqa: E731
    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    config = {
        "model_type": "llama", "hidden_size": field("embedding_length"), "num_hidden_layers": field("block_count"),
        "intermediate_size": field("feed_forward_length"), "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "rms_norm_eps": field("attention.layer_norm_rms_epsilon"),
        "rope_theta": field("rope.freq_base"), "max_position_embeddings": field("context_length"),
        "vocab_size": int(next(t for t in reader.tensors if t.name == "token_embd.weight").shape[1]),
        "tie_word_embeddings": True, "hidden_act": "silu", "quantization": {"group_size": group, "bits": 4},
    }  # fmt: skip

    def arrays():
        for tensor in reader.tensors:
            name, array = mlx_name(tensor.name), np.asarray(tensor.data, np.float32)
            if array.ndim == 1:
                yield f"{name}.weight", array
                continue
            # A GGUF has the two halves that rope turns together beside each other.
            for part, count in [("q_proj", heads), ("k_proj", kv_heads)]:
                if name.endswith(part):
                    array = array.reshape(count, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
            for kind, quantised in zip(["weight", "scales", "biases"], affine(array, group)):
                yield f"{name}.{kind}", quantised

    write_safetensors(folder, config, arrays)


def affine(array, group):
    """MLX's affine 4 bits: words of eight numbers, scales and biases a group."""
    rows, inputs = array.shape
    groups = array.reshape(rows, inputs // group, group)
    low, high = groups.min(2), groups.max(2)
    scales = np.maximum((high - low) / 15, 1e-7).astype(np.float16)
    biases = low.astype(np.float16)
    steps = (groups - biases[..., None].astype(np.float32)) / scales[..., None].astype(np.float32)
    numbers = np.clip(np.rint(steps), 0, 15).astype(np.uint32).reshape(rows, inputs // 8, 8)
    words = (numbers << (4 * np.arange(8, dtype=np.uint32))).sum(2, dtype=np.uint32)
    return words, scales, biases
