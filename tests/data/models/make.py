"""Makes the tiny random checkpoints in this folder and what mlx-lm answers for them in float32. README.md says how.

Every folder is written first and then loaded by mlx-lm's own loader, so that the answers are mlx-lm's reading of the
very files. The GGUFs are read by the gguf package. Only answers with a clear margin are kept: the seed is the first
whose 32 greedy tokens each lead by 0.05 or more and are no loop.
"""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import gguf
import gguf_llama
import gguf_parts
import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm import utils
from mlx_lm.models import cache, llama, qwen3, qwen3_5, qwen3_moe

HERE = Path(__file__).parent
VOCABULARY, GREEDY, LAST = 256, 32, 4
PROMPT = 40
# Longer than a page of keys and values.
PROMPTS = {"llama-bf16": 300, "qwen3_5-q4": 300, "llama-window": 300}
MARGIN, DISTINCT = 0.05, 10

# Queries and keys that tell positions apart, layers that outweigh the embedding they add to, logits of some size.
GAINS = {"q_proj": 1.5, "k_proj": 1.5, "o_proj": 3.0, "down_proj": 3.0, "out_proj": 3.0, "lm_head": 4.0}

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 1024,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}
QWEN3 = LLAMA | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "intermediate_size": 64,
    "attention_bias": False,
    "rope_theta": 1000000,
    "use_sliding_window": False,
    "max_window_layers": 2,
}
QWEN3_MOE = QWEN3 | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [1],
    "norm_topk_prob": True,
}
QWEN = {
    "model_type": "qwen3_5_text",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "full_attention_interval": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "attn_output_gate": True,
    "attention_bias": False,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [2, 1, 1],
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    },
}


def whole(text: dict) -> dict:
    """The config of the whole Qwen 3.5 around its text part."""
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text,
        "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 16},
        "tie_word_embeddings": False,
    }


gather_qmm = mx.gather_qmm


def gather_qmm_as_it_is(*arguments, global_scale=None, **named):
    """mlx-lm 0.32.2 passes a scale that mlx 0.32.2 does not know yet. None of these checkpoints has one."""
    assert global_scale is None
    return gather_qmm(*arguments, **named)


mx.gather_qmm = gather_qmm_as_it_is


# ---- weights ----


def weights(model, config: dict, seed: int) -> dict[str, np.ndarray]:
    """Random values for every parameter, spread so that each layer, each position and each gate matters."""
    random, made = np.random.default_rng(seed), {}
    for name, parameter in sorted(tree_flatten(model.parameters())):
        shape, kind = parameter.shape, name.split(".")[-1]
        normal = random.standard_normal(shape)
        if kind == "A_log":
            value = np.log(random.uniform(0.02, 2.0, shape))
        elif kind == "dt_bias":
            value = random.uniform(-2.0, 1.0, shape)
        elif kind == "bias":
            value = 0.5 * normal
        elif "norm" in name:
            # Steps of 1/128 near 1, which bfloat16 holds with and without the 1.
            value = 1.0 + np.clip(np.round(20 * normal), -60, 60) / 128
        elif "embed_tokens" in name:
            # Where it is the output head too, larger values keep the logits apart.
            value = normal * (0.6 if tied(config) else 1.0)
        elif "conv1d" in name:
            value = 0.5 * normal
        else:
            value = GAINS.get(name.split(".")[-2], 1.0) * normal / np.sqrt(shape[-1])
        made[name] = value.astype(np.float32)
    return made


def tied(config: dict) -> bool:
    return config.get("tie_word_embeddings", False)


def classes(config: dict):
    # mlx-lm's module for each model_type of FOLDERS.
    architectures = {"llama": llama, "mistral": llama, "qwen3": qwen3, "qwen3_moe": qwen3_moe, "qwen3_5": qwen3_5}
    architecture = architectures[config["model_type"]]
    return architecture.Model, architecture.ModelArgs


def random_model(config: dict, seed: int, dtype):
    model_class, arguments = classes(config)
    model = model_class(arguments.from_dict(json.loads(json.dumps(config))))
    made = weights(model, config, seed)
    # As the published checkpoints have it, A_log stays in float32.
    model.load_weights(
        [(name, mx.array(value).astype(mx.float32 if name.endswith("A_log") else dtype)) for name, value in made.items()]
    )
    return model


def save(folder: Path, config: dict, tensors: dict[str, mx.array], shards: int = 1) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    names = sorted(tensors)
    if shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), tensors, metadata={"format": "mlx"})
        return
    places = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::shards]}
        mx.save_safetensors(str(folder / file), part, metadata={"format": "mlx"})
        places |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(tensor.nbytes for tensor in tensors.values())}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")


# ---- folders ----


def plain(folder: Path, config: dict, seed: int, dtype, shards: int = 1) -> None:
    model = random_model(config, seed, dtype)
    save(folder, config, dict(tree_flatten(model.parameters())), shards)


def quantized(
    folder: Path, config: dict, seed: int, dtype, group: int, eight_bits: tuple[str, ...] = (), bits: int = 4, mode: str = "affine"
) -> None:
    """As `mlx_lm.convert -q` does it, the modules that end in one of `eight_bits` with 8 bits."""
    model = random_model(config, seed, dtype)

    def predicate(path, _):
        return {"group_size": 32, "bits": 8} if eight_bits and path.endswith(eight_bits) else True

    model, config = utils.quantize_model(model, config, group, bits, mode=mode, quant_predicate=predicate)
    config["quantization_config"] = config["quantization"]
    save(folder, config, dict(tree_flatten(model.parameters())))


def with_vision(folder: Path, config: dict, seed: int, dtype) -> None:
    """Qwen 3.5 as MLX's checkpoints of the whole model have it: a vision tower beside the text model."""
    tensors = dict(tree_flatten(random_model(config, seed, dtype).parameters()))
    tensors["vision_tower.patch_embed.proj.weight"] = mx.ones((16, 2, 2, 2, 3), dtype)
    save(folder, config, tensors)


def as_transformers_has_it(folder: Path, config: dict, seed: int, dtype) -> None:
    """The same values under transformers' names: convolutions [channels, 1, width], most norms less one."""
    tensors = {}
    for name, value in tree_flatten(random_model(config, seed, dtype).parameters()):
        name = name.replace("language_model.model", "model.language_model").removeprefix("language_model.")
        if "conv1d" in name:
            value = value.moveaxis(2, 1)
        elif name.endswith("norm.weight") and "linear_attn" not in name:
            value = value - 1.0
        tensors[name] = mx.contiguous(value)
    tensors["model.visual.patch_embed.proj.weight"] = mx.ones((16, 3, 2, 2, 2), dtype)
    tensors["mtp.fc.weight"] = mx.ones((64, 128), dtype)
    save(folder, config, tensors)


def experts_apart(folder: Path, config: dict, seed: int, dtype) -> None:
    """A mixture as transformers has it: every expert's matrices on their own."""
    tensors = {}
    for name, value in tree_flatten(random_model(config, seed, dtype).parameters()):
        before, stacked, after = name.partition("switch_mlp.")
        if stacked:
            tensors |= {f"{before}experts.{expert}.{after}": mx.contiguous(part) for expert, part in enumerate(value)}
        else:
            tensors[name] = value
    save(folder, config, tensors)


def scaled(**scaling) -> dict:
    return LLAMA | {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 64, "rope_scaling": scaling}


TALL = QWEN | {"num_hidden_layers": 8, "intermediate_size": 64, "layer_types": QWEN["layer_types"] * 2}
FOLDERS = {
    "llama-f32": (plain, LLAMA | {"intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1}, mx.float32),
    "llama-bf16": (plain, LLAMA, mx.bfloat16),
    "llama-untied": (
        plain,
        # An epsilon that is seen, as many key heads as query heads, and no word on heads but their number.
        {key: value for key, value in LLAMA.items() if key not in ("num_key_value_heads", "head_dim")}
        | {"tie_word_embeddings": False, "rms_norm_eps": 1e-2, "rope_theta": 500.0},
        mx.float16,
    ),
    "llama-sharded": (plain, LLAMA, mx.bfloat16, 2),
    "llama-bias": (plain, LLAMA | {"attention_bias": True, "mlp_bias": True}, mx.bfloat16),
    "llama-q4": (quantized, LLAMA | {"hidden_size": 128}, mx.float16, 32, ("embed_tokens", "1.self_attn.v_proj")),
    "llama-q4-g64": (quantized, LLAMA | {"hidden_size": 128, "intermediate_size": 128}, mx.bfloat16, 64, ("down_proj",)),
    "llama-q3": (quantized, LLAMA | {"hidden_size": 128}, mx.bfloat16, 32, (), 3),
    "llama-q6": (quantized, LLAMA | {"intermediate_size": 128}, mx.float16, 64, (), 6),
    "llama-mxfp4": (quantized, LLAMA | {"hidden_size": 128}, mx.bfloat16, 32, ("k_proj",), 4, "mxfp4"),
    "llama-nvfp4": (quantized, LLAMA | {"hidden_size": 96}, mx.bfloat16, 16, (), 4, "nvfp4"),
    "llama-mxfp8": (quantized, LLAMA, mx.float16, 32, (), 8, "mxfp8"),
    "llama-window": (
        plain,
        LLAMA | {"num_hidden_layers": 3, "sliding_window": 12}
        | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
        mx.bfloat16,
    ),
    "llama-rope-linear": (plain, scaled(rope_type="linear", factor=2.5), mx.float16),
    "llama-rope-llama3": (
        plain,
        # The wavelengths of the 16 pairs lie on both sides of 16 and 64 positions.
        scaled(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
        mx.bfloat16,
    ),
    "llama-rope-yarn": (
        plain,
        scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0),
        mx.bfloat16,
    ),
    "llama-rope-longrope": (
        plain,
        scaled(
            rope_type="longrope",
            original_max_position_embeddings=256,
            short_factor=[1.0 + 0.05 * pair for pair in range(16)],
            long_factor=[1.0 + 0.4 * pair for pair in range(16)],
        ),
        mx.bfloat16,
    ),
    "mistral": (
        plain,
        LLAMA | {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 24, "tie_word_embeddings": False},
        mx.bfloat16,
    ),
    "qwen3": (plain, QWEN3, mx.bfloat16),
    "qwen3_moe": (plain, QWEN3_MOE, mx.bfloat16),
    "qwen3_moe-hf": (experts_apart, QWEN3_MOE | {"norm_topk_prob": False, "mlp_only_layers": [0]}, mx.float16),
    "qwen3_moe-q4": (quantized, QWEN3_MOE | {"hidden_size": 96, "mlp_only_layers": [], "tie_word_embeddings": False}, mx.bfloat16, 32),
    "qwen3_moe-mxfp4": (quantized, QWEN3_MOE | {"mlp_only_layers": [], "decoder_sparse_step": 2, "tie_word_embeddings": False}, mx.bfloat16, 32, (), 4, "mxfp4"),
    "qwen3_5": (with_vision, whole(QWEN), mx.bfloat16),
    "qwen3_5-hf": (as_transformers_has_it, whole(QWEN), mx.bfloat16),
    "qwen3_5-q4": (quantized, whole(TALL), mx.bfloat16, 64, ("in_proj_a", "in_proj_b", "lm_head")),
    "qwen3_5-q4-g32": (quantized, whole(QWEN | {"hidden_size": 96}), mx.float16, 32, ("embed_tokens",)),
}  # fmt: skip


def load(folder: Path):
    """The model as mlx-lm reads it from the folder, with everything that is a float in float32."""
    model, config = utils.load_model(folder)
    model.set_dtype(mx.float32)
    if config["model_type"] == "mistral":
        # mlx-lm knows no window of all layers; its llama has one for layers that are marked so.
        model.model.sliding_window, model.model.swa_idx = config["sliding_window"], 0
        for layer in model.layers:
            layer.use_sliding = True
    return model


# ---- GGUF ----


def write_gguf(path: Path, config: dict, formats: dict[str, str], seed: int, extra: dict[str, np.ndarray]) -> None:
    """A llama in GGUF, each tensor in the format that `formats` names; those it does not name are F32."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    heads, kv_heads, head = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    dim, inner = config["hidden_size"], config["intermediate_size"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(dim)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(head)
    tokens, types, merges = gguf_parts.byte_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0xFC)
    writer.add_eos_token_id(0xFD)
    writer.add_add_bos_token(False)
    writer.add_chat_template(
        "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    shapes = {"token_embd": (VOCABULARY, dim), "output_norm": (dim,), "output": (VOCABULARY, dim)}
    for layer in range(config["num_hidden_layers"]):
        shapes |= {
            f"blk.{layer}.attn_norm": (dim,),
            f"blk.{layer}.attn_q": (heads * head, dim),
            f"blk.{layer}.attn_k": (kv_heads * head, dim),
            f"blk.{layer}.attn_v": (kv_heads * head, dim),
            f"blk.{layer}.attn_output": (dim, heads * head),
            f"blk.{layer}.ffn_norm": (dim,),
            f"blk.{layer}.ffn_gate": (inner, dim),
            f"blk.{layer}.ffn_up": (inner, dim),
            f"blk.{layer}.ffn_down": (dim, inner),
        }
    for name, shape in shapes.items():
        kind = gguf.GGMLQuantizationType[formats.get(name, "F32")]
        gain = GAINS.get(gguf_llama.NAMES[name.split(".")[-1]].split(".")[-1], 1.0)
        if len(shape) == 1:
            value = (1.0 + 0.15 * random.standard_normal(shape)).astype(np.float32)
            writer.add_tensor(f"{name}.weight", value)
        elif kind.name.endswith("_K"):
            writer.add_tensor(f"{name}.weight", gguf_parts.k_blocks(kind, *shape, random), raw_dtype=kind)
        else:
            scale = 1.0 if name == "token_embd" else gain / np.sqrt(shape[1])
            value = (scale * random.standard_normal(shape)).astype(np.float32)
            writer.add_tensor(f"{name}.weight", gguf.quantize(value, kind), raw_dtype=kind)
    for name, value in extra.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


LLAMA3 = FOLDERS["llama-rope-llama3"][1]["rope_scaling"]


def rope_freqs() -> np.ndarray:
    """Llama 3's scaling as a GGUF has it: by how much each pair's frequency is divided."""
    pairs = LLAMA["head_dim"] // 2
    plain = 10000.0 ** (np.arange(pairs) / pairs)
    rope = llama.initialize_rope(2 * pairs, 10000.0, False, LLAMA3, LLAMA["max_position_embeddings"])
    return (np.array(rope._freqs, dtype=np.float64) / plain).astype(np.float32)


# The rows of K-quants are multiples of 256 long; ffn_down's and attn_output's are not.
MIXED = {"token_embd": "Q8_0", "output": "Q6_K"}
MIXED |= dict(zip((f"blk.0.{n}" for n in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")),
                  ("Q4_K", "F16", "F32", "Q4_0", "Q5_K", "Q4_1", "Q5_0")))  # fmt: skip
MIXED |= dict(zip((f"blk.1.{n}" for n in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")),
                  ("Q4_0", "BF16", "Q6_K", "Q5_1", "Q8_0", "Q4_K", "Q4_1")))  # fmt: skip
ALL = ("token_embd", "output", *(f"blk.0.{n}" for n in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")))
WIDE = LLAMA | {"hidden_size": 256, "intermediate_size": 96, "num_key_value_heads": 1}
GGUFS = {
    "llama.gguf": (WIDE, MIXED, {}),
    "llama-rope-freqs.gguf": (
        scaled() | {"num_hidden_layers": 1, "rope_scaling": LLAMA3},
        dict.fromkeys(ALL, "Q8_0"),
        {"rope_freqs.weight": rope_freqs()},
    ),
}


# ---- answers ----


def answers(model, seed: int, length: int) -> tuple[dict, float]:
    """What the model makes of a random prompt, and by how much the closest greedy token led."""
    prompt = [int(id) for id in np.random.default_rng(seed).integers(0, VOCABULARY, length)]
    memory = cache.make_prompt_cache(model)
    logits = model(mx.array([prompt]), cache=memory)[0]
    first, tokens, margin = np.array(logits[-LAST:]), [], np.inf
    last = first[-1]
    for _ in range(GREEDY):
        second, best = np.sort(last)[-2:]
        margin = min(margin, float(best - second))
        tokens.append(int(last.argmax()))
        last = np.array(model(mx.array([tokens[-1:]]), cache=memory)[0, -1])
    # The same without a cache: mlx-lm agrees with itself.
    again = np.array(model(mx.array([prompt + tokens]))[0])
    assert np.abs(again[-1] - last).max() < 1e-4 * np.abs(last).max(), "cached and not differ"
    assert (again[length - 1 : -1].argmax(axis=1) == tokens).all()
    logits = [[float(f"{logit:.8g}") for logit in row] for row in first]
    return {"prompt": prompt, "tokens": tokens, "logits": logits}, margin


def keep_the_first_good(write, read, golden: Path) -> None:
    for seed in range(1, 200):
        write(seed)
        answer, margin = answers(read(), seed, PROMPTS.get(golden.parent.name, PROMPT))
        if margin >= MARGIN and len(set(answer["tokens"])) >= DISTINCT:
            break
    else:
        raise SystemExit(f"{golden}: no seed is good")
    versions = ", ".join(f"{name} {version(name)}" for name in ("mlx", "mlx-lm", "gguf", "numpy"))
    answer = {"made_by": f"make.py, {versions}", "seed": seed, "margin": round(margin, 4), **answer}
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in answer.items())
    golden.write_text("{\n" + lines + "\n}\n")
    largest = max(abs(logit) for row in answer["logits"] for logit in row)
    print(f"{golden}: seed {seed}, margin {margin:.3f}, {len(set(answer['tokens']))} tokens, largest logit {largest:.1f}", flush=True)


def main(only: list[str]) -> None:
    chosen = lambda name: not only or name in only
    for name, (make, config, dtype, *rest) in FOLDERS.items():
        if not chosen(name):
            continue
        folder = HERE / name
        keep_the_first_good(
            lambda seed: make(folder, config, seed, dtype, *rest), lambda: load(folder), folder / "golden.json"
        )
    for name, (config, formats, extra) in GGUFS.items():
        if not chosen(name):
            continue
        path = HERE / name
        keep_the_first_good(
            lambda seed: write_gguf(path, config, formats, seed, extra),
            lambda: gguf_llama.load(gguf.GGUFReader(path), config.get("rope_scaling")),
            path.with_suffix(".golden.json"),
        )


main(sys.argv[1:])
