"""Scores a checkpoint on records with EleutherAI's lm-evaluation-harness and compares the log-likelihood of every choice with ours.

    python3 harness.py CHECKPOINT RECORDS OURS.json
    python3 harness.py CHECKPOINT RECORDS > contexts.json

RECORDS is a directory of files such as hellaswag.jsonl. The tasks are the harness's own; only where their records come from is replaced.
OURS.json is what `entrain model eval --json` printed. Without it the contexts of the tasks' prompts are printed.
"""
import json
import os
import sys

import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
import datasets

checkpoint, records = sys.argv[1:3]

def local(path, name=None, **_):
    """Stands in for datasets.load_dataset: the records of the task whose data set it is."""
    key = {"Rowan/hellaswag": "hellaswag", "allenai/ai2_arc": "arc_easy", "baber/piqa": "piqa", "aps/super_glue": "boolq", "allenai/openbookqa": "openbookqa", "allenai/sciq": "sciq",
           "tau/commonsense_qa": "commonsense_qa", "lighteval/siqa": "social_iqa", "allenai/winogrande": "winogrande"}.get(path, "mmlu")
    with open(os.path.join(records, key + ".jsonl")) as f:
        rows = [json.loads(line) for line in f]
    data = datasets.Dataset.from_list(rows)
    return datasets.DatasetDict({"validation": data, "test": data, "train": data, "dev": data})


datasets.load_dataset = local
with open(os.path.join(checkpoint, "config.json")) as f:
    end = json.load(f)["eos_token_id"]
model = HFLM(pretrained=checkpoint, device="cpu", dtype="float32", batch_size=1, prefix_token_id=end)
ours = {}
if len(sys.argv) > 3:
    with open(sys.argv[3]) as f:
        ours = {r["task"]: r for r in json.load(f)}
contexts = {}
worst = count = 0
for task in ["hellaswag", "arc_easy", "piqa", "boolq", "openbookqa", "sciq", "commonsense_qa", "social_iqa", "winogrande", "mmlu_high_school_world_history"]:
    result = lm_eval.simple_evaluate(model=model, tasks=[task], log_samples=True, bootstrap_iters=0)
    key = "mmlu" if task.startswith("mmlu") else task
    samples = sorted(result["samples"][task], key=lambda s: s["doc_id"])
    contexts[key] = [s["arguments"][0][0] for s in samples]
    if not ours or key == "mmlu":  # MMLU's prompt names one subject here, and that of each record there
        continue
    for s, mine in zip(samples, ours[key]["scores"], strict=True):
        for response, score in zip(s["resps"], mine, strict=True):
            worst = max(worst, abs(response[0][0] - score))
            count += 1
    metrics = result["results"][task]
    for name, mine in [("acc,none", ours[key]["acc"]), ("acc_norm,none", ours[key]["acc_norm"])]:
        assert name not in metrics or abs(metrics[name] - mine) < 1e-12, f"{key}: {name} is {metrics[name]}, ours {mine}"
if not ours:
    json.dump(contexts, sys.stdout, indent=1, ensure_ascii=False)
else:
    assert worst < 1e-3, f"log-likelihoods differ by {worst}"
    print(f"lm-evaluation-harness: accuracies of {len(contexts) - 1} tasks equal, {count} log-likelihoods differ by at most {worst:.1e}")
