"""Makes the tiny random BERT in `bert/` and what transformers makes of some rows in float32. README.md says how to run it.

The weights of the norms and the biases are random too, so that one left out shows.
"""

import json
from importlib.metadata import version
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel

FOLDER = Path(__file__).parent / "bert"
CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
    "vocab_size": 256,
    "pad_token_id": 0,
}
LENGTHS = [1, 2, 5, 31, 32, 33, 100]


def main() -> None:
    torch.manual_seed(1)
    model = BertModel(BertConfig(**CONFIG, attn_implementation="eager"), add_pooling_layer=True).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim == 1:
                value.copy_(torch.randn_like(value) * 0.2 + (1.0 if name.endswith("LayerNorm.weight") else 0.0))
            else:
                value.copy_(torch.randn_like(value) * (1.0 if "embeddings" in name else value.shape[1] ** -0.5))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    tensors["embeddings.position_ids"] = torch.arange(CONFIG["max_position_embeddings"]).unsqueeze(0)
    save_file(tensors, FOLDER / "model.safetensors", metadata={"format": "pt"})
    (FOLDER / "1_Pooling").mkdir(exist_ok=True)
    (FOLDER / "1_Pooling/config.json").write_text('{"word_embedding_dimension": 64, "pooling_mode_mean_tokens": true}\n')
    modules = ["Transformer", "Pooling"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(modules)
    ]
    (FOLDER / "modules.json").write_text(json.dumps(modules) + "\n")
    rows = []
    for length in LENGTHS:
        ids = torch.randint(1, CONFIG["vocab_size"], (length,))
        with torch.no_grad():
            hidden = model(ids.unsqueeze(0)).last_hidden_state[0]
        short = lambda vector: [float(f"{number:.7g}") for number in vector.tolist()]
        rows.append({"ids": ids.tolist(), "mean": short(hidden.mean(0)), "last": short(hidden[-1])})
    versions = ", ".join(f"{name} {version(name)}" for name in ("transformers", "torch"))
    lines = ",\n ".join(json.dumps(row, separators=(",", ":")) for row in rows)
    text = f'{{"made_by": "make_bert.py, {versions}", "rows": [\n {lines}\n]}}\n'
    (FOLDER / "hidden.json").write_text(text)


main()
