"""What sentence-transformers makes of some texts with all-MiniLM-L6-v2, in float32. README.md says how to run it.

    make_minilm.py MODEL_FOLDER OUT.json
"""

import json
import sys
from importlib.metadata import version

from sentence_transformers import SentenceTransformer

TEXTS = [
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
    "a",
    "",
    "?!",
    "The QUICK brown fox, naïve café and résumé: ÀÉÎÕÜ.",
    "Der Überschallflug über die Straße dauert fünf Stunden.",
    "El rápido zorro marrón salta sobre el perro perezoso.",
    "Быстрая коричневая лиса перепрыгивает через ленивую собаку.",
    "今日はとても天気がいいですね。",
    "机器学习模型可以把句子变成向量。",
    "مرحبا بالعالم، كيف حالك اليوم؟",
    "नमस्ते दुनिया, आप कैसे हैं?",
    "안녕하세요, 오늘 날씨가 좋네요.",
    "🚀 to the moon! 😀👩‍👩‍👧‍👦",
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    "SELECT name, COUNT(*) FROM users WHERE age >= 21 GROUP BY name;",
    "https://example.org/a/b?c=d&e=f#g 192.168.0.1 user@example.org",
    "3.14159265358979323846264338327950288",
    "tab\tseparated\u00a0and  doubly  spaced \u200b zero width",
    "pneumonoultramicroscopicsilicovolcanoconiosis antidisestablishmentarianism",
    " ".join(f"Sentence number {number} of a text that fills most of what the model reads." for number in range(14)),
    "[CLS] special [SEP] tokens [MASK] in text [PAD]",
]


def main(folder: str, out: str) -> None:
    model = SentenceTransformer(folder, device="cpu")
    lengths = [len(ids) for ids in model.tokenizer(TEXTS)["input_ids"]]
    assert max(lengths) <= model.max_seq_length, lengths
    vectors = model.encode(TEXTS, batch_size=1)
    rows = [[float(f"{number:.6g}") for number in vector] for vector in vectors]
    names = ("sentence-transformers", "transformers", "tokenizers", "torch")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    texts = [
        json.dumps({"text": text, "tokens": tokens, "vector": row}, ensure_ascii=False, separators=(",", ":"))
        for text, tokens, row in zip(TEXTS, lengths, rows)
    ]
    head = json.dumps({"made_by": f"make_minilm.py, {versions}"})[:-1]
    with open(out, "w", encoding="utf-8") as file:
        file.write(head + ', "texts": [\n ' + ",\n ".join(texts) + "\n]}\n")


main(*sys.argv[1:])
