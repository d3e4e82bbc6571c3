"""mlx-lm's tokens/s for one workload: a model folder, then prefill=N, or context=N and answer=N."""

import sys
import time
from pathlib import Path

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.utils import load_model

folder, *settings = sys.argv[1:]
settings = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
model, config = load_model(Path(folder))
vocabulary = config["vocab_size"]
length, answer = settings.get("prefill") or max(settings["context"], 1), settings.get("answer", 1)
prompt = mx.random.randint(vocabulary // 4, 3 * vocabulary // 4, (length,))
mx.eval(prompt)
began = time.perf_counter()
times = [time.perf_counter() for _ in generate_step(prompt, model, max_tokens=answer)]
print(length / (times[0] - began) if "prefill" in settings else (answer - 1) / (times[-1] - times[0]))
