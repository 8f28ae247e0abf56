"""Writes conversations in the forms that people have, and the tokens that transformers makes of them with which of those the assistant says.

pip install transformers datasets pyarrow   (made with 5.23.0, 5.2.0 and 26.0.1)
python3 chat.py

chat/ holds directories of tokenizers (bytes, sentence, marked: one whose template marks what the assistant says), the files, and ids.json:
for each tokenizer the tokens of the conversations and of the pairs, each with 1 in "said" where it is the assistant's. In "marked" this is
return_assistant_tokens_mask; in the others what a message adds to the text rendered without it, up to the special token.
"""
import json
import os
import random
import shutil

import pyarrow
from datasets import Dataset
from datasets.table import InMemoryTable
from pyarrow import parquet
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]"]
CHATML = """{% for m in messages %}
{% if loop.first and m.role != 'system' %}
{{ '<|im_start|>system\\nYou are of help.<|im_end|>\\n' }}
{% endif %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
INST = """{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% elif m.role == 'assistant' %}{{ ' ' + m.content|trim + eos_token }}{% endif %}{% endfor %}"""
MARKED = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}"""

rng = random.Random(7)
WORDS = "the a of light colours prism and glass rays refracted which being é 漢字 🙂 \n  12 345 don't x=1; <b> Ωμέγα".split(" ") + ["\n\n", "  ", "\t", "It is", "2"]


def say(n):
    return " ".join(rng.choice(WORDS) for _ in range(n))


conversations = []
for i in range(40):
    messages = [{"role": "system", "content": say(5)}] if i % 4 == 1 else []
    for _ in range(rng.randrange(1, 4)):
        messages += [{"role": "user", "content": say(rng.randrange(1, 20))}, {"role": "assistant", "content": say(rng.randrange(0, 30))}]
    conversations.append(messages)
conversations[3] = []
conversations[5] = [{"role": "user", "content": "It is 2?"}, {"role": "assistant", "content": "It is 2?"}]
pairs = [{"instruction": say(6), "input": say(4) if i % 2 else "", "output": say(9)} for i in range(20)]
answered = [[{"role": "user", "content": p["instruction"] + ("\n\n" + p["input"] if p["input"].strip() else "")}, {"role": "assistant", "content": p["output"]}] for p in pairs]

shutil.rmtree("chat", ignore_errors=True)
os.mkdir("chat")


def tokenizer(name, file, template):
    t = PreTrainedTokenizerFast(tokenizer_object=file, bos_token="<s>", eos_token="</s>")
    t.chat_template = template
    t.save_pretrained("chat/" + name)
    for extra in ("chat_template.json", "special_tokens_map.json"):
        if os.path.exists("chat/%s/%s" % (name, extra)):
            os.remove("chat/%s/%s" % (name, extra))
    return t


def sentence():
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)], show_progress=False)
    t.train_from_iterator([m["content"] for c in conversations for m in c], trainer)
    # What are bytes must not be matched in texts.
    file = json.loads(t.to_str())
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(file))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    return t


def level():
    t = Tokenizer.from_file("../../tokenizer/testdata/bpe.json")
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    return t


def learn(t, messages):
    """Tokens of a conversation, and of each 1 if the assistant says it."""
    if "{% generation" in t.chat_template:
        out = t.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        return out["input_ids"], out["assistant_masks"]
    text = t.apply_chat_template(messages, tokenize=False)
    spans = []
    for i, m in enumerate(messages):
        if m["role"] == "assistant":
            before = t.apply_chat_template(messages[:i], tokenize=False, add_generation_prompt=True)
            after = t.apply_chat_template(messages[:i + 1], tokenize=False)
            assert text.startswith(before) and text.startswith(after), (before, after, text)
            start = len(before)
            if "INST" in t.chat_template:
                start += 1 # the template's space
            spans.append((start, len(after.rstrip("\n"))))
    out = t(text, add_special_tokens=False, return_offsets_mapping=True)
    assert out["input_ids"] == t.apply_chat_template(messages, tokenize=True, return_dict=True)["input_ids"]
    return out["input_ids"], [int(any(a < to and b > start for start, to in spans)) for a, b in out["offset_mapping"]]


ids = {}
for t, name in [(tokenizer("bytes", level(), CHATML), "bytes"), (tokenizer("sentence", sentence(), INST), "sentence"), (tokenizer("marked", level(), MARKED), "marked")]:
    ids[name] = {}
    for what, list_ in [("conversations", conversations), ("pairs", answered)]:
        tokens, said = [], []
        for messages in list_:
            if name == "sentence":
                messages = [m for m in messages if m["role"] != "system"]
            if messages:
                a, b = learn(t, messages)
                tokens, said = tokens + a, said + b
        ids[name][what] = {"ids": tokens, "said": "".join(map(str, said))}
with open("chat/ids.json", "w") as f:
    json.dump(ids, f)

FROM = {"system": "system", "user": "human", "assistant": "gpt"}
shared = [[{"from": FROM[m["role"]], "value": m["content"]} for m in c] for c in conversations]
lines = {
    "messages.jsonl": [{"messages": c, "id": i} for i, c in enumerate(conversations)],
    "shared.jsonl": [{"conversations": c} for c in shared],
    "split.jsonl": [{"conversations": c[1:], "system": c[0]["value"]} if c and c[0]["from"] == "system" else {"conversations": c} for c in shared],
    "pairs.jsonl": pairs,
    "answers.jsonl": [{"question": a[0]["content"], "answer": a[1]["content"]} for a in answered],
    "prompts.jsonl": [{"prompt": a[:1], "completion": a[1:]} for a in answered],
}
for name, rows in lines.items():
    with open("chat/" + name, "w") as f:
        f.writelines(json.dumps(r, ensure_ascii=len(name) % 2 == 0) + "\n" for r in rows)
with open("chat/shared.json", "w") as f:
    json.dump([{"id": str(i), "conversations": c} for i, c in enumerate(shared)], f, indent=2)
with open("chat/pairs.json", "w") as f:
    json.dump(pairs, f, indent=4)

# Columns that some rows lack are null in a table.
calls = pyarrow.list_(pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string()), ("tool_calls", pyarrow.list_(pyarrow.struct([("name", pyarrow.string())])))]))
table = pyarrow.table({"n": range(40), "blob": [[1.5, None]] * 40, "messages": pyarrow.array(conversations, type=calls)})
parquet.write_table(table, "chat/messages.parquet", row_group_size=13, data_page_size=500, compression="zstd")
large = pyarrow.large_list(pyarrow.struct([("from", pyarrow.large_string()), ("value", pyarrow.large_string())]))
table = pyarrow.table({"x": pyarrow.array([None, True, False, True] * 10), "conversations": pyarrow.array(shared, type=large)})
with pyarrow.ipc.new_file("chat/file.arrow", table.schema) as w:
    w.write_table(table, max_chunksize=7)
with pyarrow.ipc.new_stream("chat/stream.arrow", table.schema) as w:
    w.write_table(table, max_chunksize=17)
for split, rows in [("train", [{"tags": ["a"], "messages": c} for c in conversations]), ("test", pairs)]:
    table = InMemoryTable(pyarrow.Table.from_pylist(rows))
    Dataset(table, fingerprint="0" * 16).save_to_disk("chat/saved/" + split, num_shards=2)
