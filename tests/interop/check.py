"""Compares a checkpoint with what is not ours: transformers' model and tokenizer, and the safetensors package.

    python3 check.py CHECKPOINT TEXT OURS.json REWRITTEN

OURS.json is what ./logits printed. REWRITTEN is where the weights are written again by the safetensors package, for entrain to read.
"""
import json
import os
import shutil
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

checkpoint, text, ours_file, rewritten = sys.argv[1:]
with open(ours_file) as f:
    ours = json.load(f)

tokenizer = AutoTokenizer.from_pretrained(checkpoint)
ids = tokenizer(text, add_special_tokens=False)["input_ids"]
assert ids == ours["tokens"], f"tokens differ: {ids} and {ours['tokens']}"

model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
with torch.no_grad():
    theirs = model(torch.tensor([ids])).logits[0, -1]
mine = torch.tensor(ours["logits"])
worst = (theirs - mine).abs().max().item()
print(f"transformers: {len(ids)} equal tokens, logits differ by at most {worst:.2e} of {mine.abs().max().item():.2f}")
assert worst < 1e-4, "transformers' logits are not ours"

os.makedirs(rewritten, exist_ok=True)
for name in os.listdir(checkpoint):
    if name.endswith(".safetensors"):
        with safe_open(os.path.join(checkpoint, name), "pt") as f:
            tensors = {key: f.get_tensor(key) for key in f.keys()}
        save_file(tensors, os.path.join(rewritten, name), metadata={"format": "pt"})
    elif name != "manifest.json":
        shutil.copy(os.path.join(checkpoint, name), rewritten)
print("safetensors: read, and written again for entrain to read")
