"""Scores a served model with lm-evaluation-harness over OpenAI's API, 64 requests at once, and compares with the model in transformers.

    python3 served.py URL CHECKPOINT RECORDS
"""
import json
import os
import sys

import datasets
import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.models.openai_completions import LocalCompletionsAPI
from openai import OpenAI

url, checkpoint, records = sys.argv[1:]
os.environ.setdefault("OPENAI_API_KEY", "none")


def local(path, name=None, **_):
    """Stands in for datasets.load_dataset: the records of the task whose data set it is."""
    key = {"Rowan/hellaswag": "hellaswag", "baber/piqa": "piqa"}[path]
    with open(os.path.join(records, key + ".jsonl")) as f:
        data = datasets.Dataset.from_list([json.loads(line) for line in f])
    return datasets.DatasetDict({"validation": data, "test": data, "train": data})


datasets.load_dataset = local
name = OpenAI(base_url=url, api_key="none").models.list().data[0].id
served = LocalCompletionsAPI(
    base_url=url + "/completions", model=name, tokenizer=checkpoint, tokenizer_backend="huggingface", num_concurrent=64, max_length=512,
)
direct = HFLM(pretrained=checkpoint, device="cpu", dtype="float32", batch_size=1)
worst = count = 0
for task in ["hellaswag", "piqa"]:
    ours, theirs = [
        lm_eval.simple_evaluate(model=m, tasks=[task], log_samples=True, bootstrap_iters=0)["samples"][task] for m in (served, direct)
    ]
    for a, b in zip(*(sorted(s, key=lambda s: s["doc_id"]) for s in (ours, theirs)), strict=True):
        for x, y in zip(a["resps"], b["resps"], strict=True):
            worst = max(worst, abs(x[0][0] - y[0][0]))
            count += 1
assert worst < 1e-3, f"log-likelihoods differ by {worst}"
print(f"lm-evaluation-harness: {count} log-likelihoods of the served model differ from transformers' by at most {worst:.1e}")
