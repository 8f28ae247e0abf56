"""Writes ids.json: what Hugging Face's tokenizers library makes of some texts with Bytes' tokenizer.json, and the file's SHA-256.

pip install tokenizers   (made with 0.23.3)
python3 ids.py tokenizer.json > ids.json
"""
import hashlib
import json
import sys

from tokenizers import Tokenizer

TEXTS = [
    "Hi é",
    "  runs   of\t spaces \n\n\r\n and\u00a0odd\u2003ones ",
    "Ā Ġ are letters, not bytes 0 and 32",
    "don't split we'll 123 words",
    "naïve café 日本語 👩\u200d👩\u200d👧 \u200e\u0301",
    "".join(chr(c) for c in range(1, 0x180)),
    "",
]
path = sys.argv[1]
tokenizer = Tokenizer.from_file(path)
cases = []
for text in TEXTS:
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text, text
    cases.append({"text": text, "ids": ids})
with open(path, "rb") as f:
    digest = hashlib.sha256(f.read()).hexdigest()
json.dump({"sha256": digest, "vocab": tokenizer.get_vocab_size(), "cases": cases}, sys.stdout)
print()
