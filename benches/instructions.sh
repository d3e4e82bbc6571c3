#!/usr/bin/env bash
# Instructions a decoded token takes, counted by valgrind: a regression shows without a quiet machine. Prints a row to
# compare with benches/instructions.md. valgrind has no AVX-512, so what is counted is the AVX2 level.
#   benches/instructions.sh            (some minutes; needs valgrind, and the starter model pulled)
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
mettle=target/release/mettle

count() { # MODEL TOKENS → instructions of the whole run
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$mettle" run "$1" "Write a very long story about a cat." \
    --temperature 0 --max-tokens "$2" --threads 1 --offline 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

# The difference of two runs that differ in 8 tokens only.
row() { # NAME MODEL
  local short long
  short=$(count "$2" 4) long=$(count "$2" 12)
  echo "| $1 | $(((long - short) / 8)) |"
}

echo "| decode | instructions a token |"
echo "|---|---|"
row "starter (SmolLM2-135M Q4_1): kernels and all" "$("$mettle" pull smollm2-135m 2>/dev/null | sed 's/.* is here: //')"
row "tests/data/models/llama.gguf, a tiny model: mostly what lies around the kernels" tests/data/models/llama.gguf
