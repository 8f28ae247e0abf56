"""Writes what Hugging Face's tokenizers library makes of byte-level BPE tokenizers.

pip install tokenizers   (made with 0.23.3)
python3 bpe.py train TEXT > bpe.json    trains 600 tokens on a file (Newton's Opticks, from the Go source tree: src/testdata/Isaac.Newton-Opticks.txt)
python3 bpe.py ids bpe.json SEED > bpe_ids.json
    ids of random texts by bpe.json, with each of the known split patterns: those in "ids", where absent those of gpt2; with special
    tokens taken as text those in "ordinary", where absent the same. SEED 1 is checked in; others make more and larger texts.
python3 bpe.py learn VOCAB TEXT > FILE  what is learnt from the lines of a file
python3 bpe.py families TEXT SEED STEP  tokenizers built as those of Llama 2, Mistral, Llama 3 and Qwen, trained on a file, a line of JSON
    each; then the ids of every STEPth of random texts and of the file's paragraphs by all of them
"""
import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = GPT4.replace("{1,3}", "")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])


def byte_level(regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), byte_level(False)])


PATTERNS = {
    "gpt2": byte_level(True),
    "llama3": split(GPT4),
    "qwen2": split(QWEN),
    "gpt4o": split(O200K),
    "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)]),
    "numbers": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), byte_level(True)]),
    "whole": byte_level(False),
}


def blank():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = byte_level(True)
    t.decoder = decoders.ByteLevel(add_prefix_space=False)
    return t


def learn(vocab, texts, specials):
    t = blank()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab, min_frequency=2, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


ALPHABET = ("etaoinshrdlu" * 3 + "ETAOINSHRDLU" + "     \n\n\r\t\u00a0\u2003\u3000\u0085\u2028\u200b" + "0123456789\u0663\u00bd\u2167\u1369"
            + "''''’,.;:!?-_/()[]{}<>|#@\\\"" + "\u017f\u0130\u0131\u01c5\u02b0\u00aa\u00df\u1e9e\u0301\u0308\u20dd\u093f\u0e33"
            + "\u65e5\u672c\u8a9e\uac00\u05d0\u0627\U0001f469\u200d\U0001f467\U00020000\ufeff\ufffd\x00\x1c\x7f\u180e\u1680")
WORDS = ["the ", " light", "'s", "'S", "'ll", "'LL", "'re", "'\u017f", "'t ", " 'd", "don't", "WE'VE", "HELLOworld", "camelCase", "iPhone's", "  ", "\n\n", " \n ",
         "1234567", " 12", "...\n", "</div>\r\n", "//\n", "<|endoftext|>", "<|tool|>", "<|end", "  <mask>  ", "a<mask>b", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", "!!!!!!!!!"]


def texts(seed):
    r = random.Random(seed)
    yield ""
    for word in WORDS:
        yield word
    last = 0x300 if seed == 1 else 0xd800
    for c in range(0, last, 64):  # characters with letters between them
        yield "".join("x" + chr(i) for i in range(c, c + 64))
    for n in range(40 if seed == 1 else 2000):
        yield "".join(r.choice(ALPHABET) if r.random() < 0.7 else r.choice(WORDS) for _ in range(r.randrange(1, 40)))
    for n in range(5):
        yield "".join(r.choice("eeetttaaa th") for _ in range(r.randrange(100, 1000))).replace(" ", "")


def sentence(texts, normalizer, pre_tokenizer, late):
    """A BPE in SentencePiece's manner, with a token for each byte."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{c:02X}>" for c in range(256)]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=2000, special_tokens=specials, show_progress=False, max_token_length=16))
    d = json.loads(t.to_str())
    d["added_tokens"] = [dict(a, normalized=late) for a in d["added_tokens"] if a["id"] < 3]
    # Merges across words, which only vocabularies made without cutting have.
    vocab, merges = d["model"]["vocab"], d["model"]["merges"]
    for a, b in (("▁", "▁"), ("▁▁", "▁▁"), ("e", "▁"), ("e▁", "t")):
        if a in vocab and b in vocab and a + b not in vocab:
            vocab[a + b] = len(vocab)
            merges.append([a, b])
    t = Tokenizer.from_str(json.dumps(d))
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    t.add_tokens([AddedToken("<|tool|>", normalized=late), AddedToken("word", single_word=True, normalized=False)])
    return t


def families(lines):
    legacy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "llama2", sentence(lines, legacy, None, False)
    yield "llama2, normalized", sentence(lines, legacy, None, True)
    yield "mistral", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), False)
    yield "always", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), False)
    yield "never", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="never", split=True), True)
    for name, pattern in ("llama3", GPT4), ("qwen", QWEN):
        t = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
        t.pre_tokenizer, t.decoder = split(pattern), decoders.ByteLevel()
        if name == "qwen":
            t.normalizer = normalizers.NFC()
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=2000, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                         special_tokens=["<|endoftext|>", "<|im_start|>"]))
        yield name, t


if sys.argv[1] == "families":
    source = open(sys.argv[2], encoding="utf-8").read()
    made = dict(families(source.splitlines(keepends=True)))
    for name, t in made.items():
        print(json.dumps({"name": name, "tokenizer": t.to_str()}))
    marks = ["<s>", "</s>", "<|tool|>", "a word ", "<|im_start|>", " <s> x", "e\u0301 ", "\u212b", "\u1e9b\u0323", "\uac00\u11a8", "▁", "\u0958"]
    r = random.Random(int(sys.argv[3]))
    mixed = ["".join(r.choice(marks + WORDS) for _ in range(8)) for _ in range(300)]
    for text in [*texts(int(sys.argv[3])), *mixed, *source.split("\n\n")][::int(sys.argv[4])]:
        case = {"text": text, "ids": {}, "ordinary": {}}
        for name, t in made.items():
            t.encode_special_tokens = False
            case["ids"][name] = t.encode(text, add_special_tokens=False).ids
            t.encode_special_tokens = True
            case["ordinary"][name] = t.encode(text, add_special_tokens=False).ids
        print(json.dumps(case, separators=(",", ":")))
elif sys.argv[1] == "train":
    lines = open(sys.argv[2], encoding="utf-8").read().splitlines(keepends=True)
    t = learn(600, lines, [AddedToken("<|endoftext|>", special=True, normalized=False)])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    t.add_tokens([AddedToken("<|tool|>", normalized=True), AddedToken("   ", normalized=False), AddedToken("word", single_word=True)])
    print(t.to_str(pretty=False))
elif sys.argv[1] == "learn":
    lines = open(sys.argv[3], encoding="utf-8").read().splitlines(keepends=True)
    print(learn(int(sys.argv[2]), lines, [AddedToken("<|endoftext|>", special=True, normalized=False)]).to_str(pretty=True))
else:
    source = open(sys.argv[2], encoding="utf-8").read()
    made = {name: Tokenizer.from_str(source) for name in PATTERNS}
    for name, p in PATTERNS.items():
        made[name].pre_tokenizer = p
    for text in texts(int(sys.argv[3])):
        case = {"text": text, "ids": {}, "ordinary": {}}
        for name, t in made.items():
            t.encode_special_tokens = False
            ids = t.encode(text, add_special_tokens=False).ids
            if ids != case["ids"].get("gpt2"):
                case["ids"][name] = ids
            t.encode_special_tokens = True
            ordinary = t.encode(text, add_special_tokens=False).ids
            if ordinary != ids:
                case["ordinary"][name] = ordinary
        print(json.dumps(case, separators=(",", ":")))
