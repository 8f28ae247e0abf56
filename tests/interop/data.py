"""Prepares data sets from what other programs write, and compares every token, and what is learnt, with what Python reads: shards of
Megatron-LM, llm.c and nanoGPT, directories that Hugging Face's datasets saves, parquet, and JSON lines of texts, messages, Alpaca and
ShareGPT. Then it cuts and spoils the files, which must be refused by name.

    python3 data.py ENTRAIN CORPUS
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

entrain, corpus = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
work = tempfile.TemporaryDirectory()
os.chdir(work.name)
r = random.Random(1)
datasets.disable_progress_bars()

words = Tokenizer(models.BPE())
words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
words.decoder = decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
words.train([corpus], trainers.BpeTrainer(vocab_size=800, special_tokens=special, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|endoftext|>")
tokenizer.chat_template = open(os.path.join(here, "../../tokenizer/chat/testdata/training.jinja"), encoding="utf-8").read()
tokenizer.save_pretrained("tokenizer")
end = tokenizer.eos_token_id

text = open(corpus, encoding="utf-8").read()
texts = ["", "é", "\n", "a <|im_end|> that is text"] + [text[i:i + r.randrange(1, 3000)] for i in range(0, 400_000, 2500)]
words.encode_special_tokens = True
tokens_of_texts = [t for s in texts for t in [*words.encode(s, add_special_tokens=False).ids, end] if s]
talks = []
for i in range(300):
    talk = [{"role": "system", "content": f"Be brief {i}."}] if i % 3 == 0 else []
    for k in range(1 + i % 4):
        at = r.randrange(len(text) - 500)
        talk += [{"role": "user", "content": text[at:at + r.randrange(1, 200)]}, {"role": "assistant", "content": text[at + 200:at + 200 + r.randrange(1, 200)]}]
    talks.append(talk)


def rendered(conversations):
    """The tokens of conversations, with the highest bit of 16 where they are not learnt."""
    out = []
    for talk in conversations:
        one = tokenizer.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True)
        out += [t if m else t | 0x8000 for t, m in zip(one["input_ids"], one["assistant_masks"])]
    return out


def run(name, files, *flags):
    out = f"prepared-{name.replace('/', '-')}"
    p = subprocess.run([entrain, "data", "prepare", "-o", out, "--held-out", "0", *flags, *files], capture_output=True, text=True, timeout=300)
    return out, p


def prepared(name, files, want, *flags):
    """Prepares files and compares the tokens."""
    out, p = run(name, files, "--tokenizer", "tokenizer", *flags)
    assert p.returncode == 0, f"{name}: {p.stderr}"
    manifest = json.load(open(os.path.join(out, "manifest.json")))
    got = np.concatenate([np.fromfile(os.path.join(out, f), dtype=np.uint16) for f in sorted(os.listdir(out)) if f.endswith(".bin") and f.startswith("train")] or [np.zeros(0, np.uint16)])
    want = np.array(want, dtype=np.uint16)
    assert len(got) == len(want) and (got == want).all(), f"{name}: {len(got)} tokens, want {len(want)}; the first that differs is {np.argmax(got[:min(len(got), len(want))] != want[:min(len(got), len(want))])}; {manifest}"
    learnt = f", {(want < 0x8000).sum()} of them learnt" if (want >= 0x8000).any() else ""
    print(f"data: {name}: {len(got)} tokens are those that Python reads{learnt}")


# Shards of tokens.
shards = [tokens_of_texts[:70_000], tokens_of_texts[70_000:]]


def megatron(name, sequences, dtype, code):
    """As megatron/core/datasets/indexed_dataset.py writes them."""
    with open(name + ".bin", "wb") as f:
        for s in sequences:
            f.write(np.array(s, dtype=dtype).tobytes())
    lengths = np.array([len(s) for s in sequences], dtype=np.int32)
    size = np.dtype(dtype).itemsize
    pointers = np.concatenate([[0], np.cumsum(lengths[:-1].astype(np.int64) * size)]).astype(np.int64)
    with open(name + ".idx", "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(sequences), len(sequences) + 1))
        f.write(lengths.tobytes() + pointers.tobytes() + np.arange(len(sequences) + 1, dtype=np.int64).tobytes())


documents, one = [], []
for t in tokens_of_texts:
    one.append(t)
    if t == end:
        documents.append(one)
        one = []
megatron("meg16", documents, np.uint16, 8)
megatron("meg32", documents, np.int32, 4)
for i, s in enumerate(shards):
    np.array(s, dtype=np.uint16).tofile(f"nano{i}.bin")
    header = np.zeros(256, dtype=np.int32)
    header[:3] = 20240520, 1, len(s)
    with open(f"llmc{i}.bin", "wb") as f:
        f.write(header.tobytes() + np.array(s, dtype=np.uint16).tobytes())
    header[:3] = 20240801, 7, len(s)
    with open(f"llama{i}.bin", "wb") as f:
        f.write(header.tobytes() + np.array(s, dtype=np.uint32).tobytes())
prepared("Megatron, uint16", ["meg16.bin"], tokens_of_texts)
prepared("Megatron, int32", ["meg32.idx"], tokens_of_texts)
prepared("llm.c of GPT-2", ["llmc0.bin", "llmc1.bin"], tokens_of_texts)
prepared("llm.c of Llama 3", ["llama0.bin", "llama1.bin"], tokens_of_texts)
prepared("nanoGPT", ["nano0.bin", "nano1.bin"], tokens_of_texts, "--format", "uint16")

# What datasets saves, and tables.
rows = datasets.Dataset.from_dict({"id": list(range(len(texts))), "text": texts, "score": [0.5] * len(texts)})
rows.save_to_disk("saved", num_shards=3)
prepared("save_to_disk", ["saved"], tokens_of_texts)
datasets.DatasetDict({"train": rows, "test": rows.select(range(3))}).save_to_disk("dict")
prepared("save_to_disk of splits", ["dict"], tokens_of_texts)
messages = datasets.Dataset.from_list([{"messages": t} for t in talks])
messages.save_to_disk("talks")
prepared("save_to_disk of messages", ["talks"], rendered(talks))
rows.cast(datasets.Features(rows.features | {"text": datasets.Value("large_string")})).save_to_disk("large")
prepared("save_to_disk of large strings", ["large"], tokens_of_texts)
for codec in ["none", "snappy", "gzip", "zstd", "brotli"]:
    pq.write_table(rows.data.table, f"{codec}.parquet", compression=codec, row_group_size=50, data_page_size=1000, use_dictionary=codec != "zstd", version="2.6", data_page_version="2.0" if codec in ("zstd", "none") else "1.0")
    prepared(f"parquet, {codec}", [f"{codec}.parquet"], tokens_of_texts)
os.mkdir("repository")
os.mkdir("repository/data")
messages.select(range(200)).to_parquet("repository/data/train-00000-of-00002.parquet")
messages.select(range(200, 300)).to_parquet("repository/data/train-00001-of-00002.parquet")
messages.select(range(5)).to_parquet("repository/data/test-00000-of-00001.parquet")
prepared("parquet of a repository, messages", ["repository"], rendered(talks))

# JSON lines.
rows.to_json("texts.jsonl")
prepared("JSON lines of texts", ["texts.jsonl"], tokens_of_texts)
messages.to_json("messages.jsonl", force_ascii=False)
prepared("JSON lines of messages", ["messages.jsonl"], rendered(talks))
with open("sharegpt.json", "w") as f:
    json.dump([{"id": str(i), "conversations": [{"from": {"user": "human", "assistant": "gpt", "system": "system"}[m["role"]], "value": m["content"]} for m in t]} for i, t in enumerate(talks)], f)
prepared("ShareGPT, one list", ["sharegpt.json"], rendered(talks))
alpaca, same = [], []
for i, t in enumerate(talks):
    question, answer = [m["content"] for m in t if m["role"] != "system"][:2]
    extra = text[i * 10:i * 10 + 50] if i % 2 else ""
    alpaca.append({"instruction": question, "input": extra, "output": answer})
    same.append([{"role": "user", "content": question + ("\n\n" + extra if extra else "")}, {"role": "assistant", "content": answer}])
with open("alpaca.jsonl", "w") as f:
    f.writelines(json.dumps(a) + "\n" for a in alpaca)
prepared("Alpaca", ["alpaca.jsonl"], rendered(same))
tools = [{"messages": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"town": "Zürich"}}}]},
                       {"role": "tool", "content": "sun"}, {"role": "assistant", "content": "Sun."}],
          "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"town": {"type": "string"}}}}}]}]
with open("tools.jsonl", "w") as f:
    f.writelines(json.dumps(t) + "\n" for t in tools * 50)
one = tokenizer.apply_chat_template(tools[0]["messages"], tools=tools[0]["tools"], return_dict=True, return_assistant_tokens_mask=True)
prepared("messages with tools", ["tools.jsonl"], [t if m else t | 0x8000 for t, m in zip(one["input_ids"], one["assistant_masks"])] * 50)

# What is cut or spoilt is refused, with the name of the file.
refused = 0

def refuses(name, files, *flags, contains=""):
    global refused
    out, p = run("bad", files, "--tokenizer", "tokenizer", *flags)
    assert p.returncode == 1 and "panic" not in p.stderr and "goroutine" not in p.stderr, f"{name}: {p.returncode}: {p.stderr}"
    said = p.stderr.strip()
    assert os.path.basename(files[0]).rsplit(".", 1)[0] in said and contains in said, f"{name}: {said}"
    if os.environ.get("VERBOSE"):
        print(f"  {name}: {said}")
    subprocess.run(["rm", "-rf", out], check=True)
    refused += 1


def spoilt(path, change, ending=None):
    b = bytearray(open(path, "rb").read())
    b = b if (changed := change(b)) is None else changed
    bad = "spoilt" + (ending or os.path.splitext(path)[1])
    with open(bad, "wb") as f:
        f.write(b)
    return bad


def cut(at):
    return lambda b: b[:int(len(b) * at) if isinstance(at, float) else at]


def put(at, b):
    def change(all):
        all[at:at + len(b)] = b
    return change


for path in ["llmc0.bin", "llama0.bin", "none.parquet", "snappy.parquet", "saved/data-00000-of-00003.arrow"]:
    for at in [0, 3, 100, 0.3, 0.7, 0.99, -1]:
        refuses(f"{path} cut at {at}", [spoilt(path, cut(at))], *(["--format", "llm.c"] if path.startswith("ll") else []))
for at in [0.5, -3]:
    refuses(f"messages.jsonl cut at {at}", [spoilt("messages.jsonl", cut(at))])
    refuses(f"sharegpt.json cut at {at}", [spoilt("sharegpt.json", cut(at))])
open("spoilt.bin", "wb").write(open("meg16.bin", "rb").read())
for name, change in [("cut", cut(0.5)), ("without end", cut(-8)), ("many sequences", put(18, struct.pack("<Q", 1 << 60))), ("many documents", put(26, struct.pack("<Q", 1 << 60))), ("type", put(17, b"\x07")),
                     ("version", put(9, b"\x02")), ("length", put(34, struct.pack("<i", -5))), ("long", put(34, struct.pack("<i", 1 << 30))), ("pointer", put(34 + 4 * len(documents) + 8, struct.pack("<q", 1 << 40)))]:
    spoilt("meg16.idx", change)
    refuses(f"Megatron: {name}", ["spoilt.bin"])
spoilt("meg16.idx", lambda b: None)
spoilt("meg16.bin", cut(-2))
refuses("Megatron: tokens cut", ["spoilt.bin"])
os.remove("spoilt.idx")
pq.write_table(rows.data.table, "spoilt.parquet", compression="lz4")
refuses("LZ4", ["spoilt.parquet"], contains="LZ4")
refuses("Megatron: no index", ["spoilt.bin"], "--format", "megatron")
refuses("a token beyond the vocabulary", [spoilt("nano0.bin", put(100, b"\xff\xff"))], "--format", "uint16", contains="65535")
refuses("a negative token", [spoilt("llama0.bin", put(1024 + 40, struct.pack("<i", -1)))])
refuses("half a token", [spoilt("nano0.bin", cut(101))], "--format", "uint16")
refuses("llm.c: another version", [spoilt("llmc0.bin", put(4, b"\x09"))], "--format", "llm.c")
refuses("llm.c: more tokens than there are", [spoilt("llmc0.bin", put(8, b"\xff\xff\xff\x7f"))])
for place in range(0, 4000, 97):
    for path in ["snappy.parquet", "saved/data-00000-of-00003.arrow"]:
        bad = spoilt(path, lambda b: put(len(b) - place - 20 if path.endswith("parquet") else place, bytes(r.randrange(256) for _ in range(8)))(b))
        out, p = run("flipped", [bad], "--tokenizer", "tokenizer")  # what is text in it may be another
        assert p.returncode in (0, 1) and "panic" not in p.stderr and "goroutine" not in p.stderr, f"{path} flipped at {place}: {p.stderr}"
        assert p.returncode == 0 or "spoilt" in p.stderr, p.stderr
        subprocess.run(["rm", "-rf", out], check=True)
print(f"data: {refused} files that were cut or spoilt are refused by name, and none of 84 with random bytes ends in a crash")
