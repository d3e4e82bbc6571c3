"""Random blocks and a vocabulary for the GGUFs that make.py writes."""

import gguf
import numpy as np


def k_blocks(kind, rows: int, columns: int, random) -> np.ndarray:
    """Random K-quant blocks: any bits are valid; the scales make the values about 1/16 in size."""
    count = rows * columns // 256
    small = lambda low, high: random.uniform(low, high, (count, 1)).astype(np.float16).view(np.uint8)
    bits = lambda size: random.integers(0, 256, (count, size), dtype=np.uint8)
    if kind == gguf.GGMLQuantizationType.Q6_K:
        scales = random.integers(-128, 128, (count, 16), dtype=np.int8).view(np.uint8)
        parts = [bits(128), bits(64), scales, small(3e-5, 6e-5)]
    else:
        size = 128 if kind == gguf.GGMLQuantizationType.Q4_K else 160
        # The minimum is the middle of what the quants can be.
        middle = 7.5 if kind == gguf.GGMLQuantizationType.Q4_K else 15.5
        scale = random.uniform(2e-4, 3e-4, (count, 1)) * 7.5 / middle
        parts = [scale.astype(np.float16).view(np.uint8), (middle * scale).astype(np.float16).view(np.uint8), bits(12), bits(size)]
    return np.concatenate(parts, axis=1).reshape(rows, -1)


def byte_vocabulary() -> tuple[list[str], list[int], list[str]]:
    """256 tokens of byte-level BPE: bytes that UTF-8 never has make room for two merges and two control tokens."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + i) for i, byte in enumerate(byte for byte in range(256) if byte not in shown)}
    tokens, types = [letters[byte] for byte in range(256)], [1] * 256
    tokens[0xFA:0xFC] = ["th", "the"]
    tokens[0xFC:0xFE], types[0xFC:0xFE] = ["<|start|>", "<|end|>"], [3, 3]
    return tokens, types, ["t h", "th e"]
