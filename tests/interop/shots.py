"""Prints the prompts that lm-evaluation-harness makes with examples: {task: {shots: [[[context, continuation], ...], ...]}}.

    python3 shots.py RECORDS > shots.json

RECORDS is a directory of files such as hellaswag.jsonl; examples come from hellaswag.examples.jsonl, or the same file.
"""
import json
import os
import sys

import datasets
from lm_eval.tasks import TaskManager

records = sys.argv[1]
paths = {"Rowan/hellaswag": "hellaswag", "allenai/ai2_arc": "arc_easy", "allenai/winogrande": "winogrande", "cais/mmlu": "mmlu", "aps/super_glue": "boolq"}


def rows(name):
    with open(os.path.join(records, name + ".jsonl")) as f:
        return datasets.Dataset.from_list([json.loads(line) for line in f])


def local(path, name=None, **_):
    """Stands in for datasets.load_dataset."""
    key = paths[path]
    data = rows(key)
    examples = rows(key + ".examples") if os.path.exists(os.path.join(records, key + ".examples.jsonl")) else data
    if key == "mmlu":
        data, examples = (d.filter(lambda r: r["subject"] == name) for d in (data, examples))
    return datasets.DatasetDict({"validation": data, "test": data, "train": examples, "dev": examples})


datasets.load_dataset = local
datasets.disable_progress_bar()
out = {}
for name, shots in [("arc_easy", [1, 3, 8]), ("hellaswag", [2]), ("winogrande", [1]), ("boolq", [1]), ("mmlu_conceptual_physics", [2])]:
    task = TaskManager().load([name])["tasks"][name]
    for n in shots:
        task.set_config("num_fewshot", n)
        task.set_fewshot_seed(1234)
        task.build_all_requests(limit=None, rank=0, world_size=1)
        docs = {}
        for i in task.instances:
            docs.setdefault(i.doc_id, []).append(list(i.args[:2]))
        out.setdefault("mmlu" if name.startswith("mmlu") else name, {})[n] = [docs[k] for k in sorted(docs)]
json.dump(out, sys.stdout, indent=1, ensure_ascii=False)
