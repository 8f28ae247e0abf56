"""Writes what Hugging Face's tokenizers library makes of byte-level BPE tokenizers.

pip install tokenizers   (made with 0.23.3)
python3 bpe.py train TEXT > bpe.json    trains 600 tokens on a file (Newton's Opticks, from the Go source tree: src/testdata/Isaac.Newton-Opticks.txt)
python3 bpe.py ids bpe.json SEED > bpe_ids.json
    ids of random texts by bpe.json, with each of the known split patterns: those in "ids", where absent those of gpt2; with special
    tokens taken as text those in "ordinary", where absent the same. SEED 1 is checked in; others make more and larger texts.
python3 bpe.py learn VOCAB TEXT > FILE  what is learnt from the lines of a file
python3 bpe.py families TEXT SEED STEP [MB]  tokenizers built as those of Llama 2, Mistral, Gemma, Llama 3, Qwen and others, trained on a file, a
    line of JSON each; then the ids of every STEPth of random texts and of the file's paragraphs by all of them. With MB: tokenizers
    trained on that many megabytes of mixed text (mixed), and the ids of all of it, of one also by tiktoken and of one by sentencepiece,
    where they are installed ("others")
"""
import collections
import glob
import io
import json
import os
import random
import subprocess
import sys
import unicodedata

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
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")


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


def sentence(texts, normalizer, pre_tokenizer, late, vocab_size):
    """A BPE in SentencePiece's manner, with a token for each byte."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{c:02X}>" for c in range(256)]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=specials, show_progress=False, max_token_length=16, limit_alphabet=600))
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


def families(lines, vocab_size=2000):
    legacy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "llama2", sentence(lines, legacy, None, False, vocab_size)
    yield "llama2, normalized", sentence(lines, legacy, None, True, vocab_size)
    yield "mistral", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), False, vocab_size)
    yield "always", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), False, vocab_size)
    yield "never", sentence(lines, None, pre_tokenizers.Metaspace(prepend_scheme="never", split=True), True, vocab_size)
    yield "gemma", sentence(lines, normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), False, vocab_size)
    for name, cut in [("llama3", split(GPT4)), ("qwen", split(QWEN)), ("tekken", split(TEKKEN)),
                      *[(name, PATTERNS[name]) for name in ("gpt2", "digits", "gpt4o")]]:
        t = Tokenizer(models.BPE(ignore_merges=name in ("llama3", "tekken")))
        t.pre_tokenizer, t.decoder = cut, decoders.ByteLevel()
        if name == "qwen":
            t.normalizer = normalizers.NFC()
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                         special_tokens=["<|endoftext|>", "<|im_start|>"]))
        yield name, t


def with_sentencepiece(lines):
    """A model that sentencepiece trained as Llama 2's was, and what converts to: the library's tokenizer of the same pieces."""
    import sentencepiece

    seen = collections.Counter(c for line in lines for c in line)
    lines = ["".join(c for c in line if seen[c] > 20) for line in lines]  # every other character would be a piece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line.rstrip("\n") for line in lines), model_writer=out, model_type="bpe", vocab_size=8000, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True,
        character_coverage=0.99, minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    vocab = {sp.id_to_piece(i): i for i in range(len(sp))}
    merges = []
    for piece, rank in vocab.items():
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        if not sp.is_byte(rank) and not sp.is_control(rank) and not sp.is_unknown(rank):
            merges += [(rank, vocab[a], vocab[b], a, b) for a, b in pairs]
    t = Tokenizer(models.BPE(vocab, [m[3:] for m in sorted(merges)], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t, sp.encode


def with_tiktoken(t):
    """tiktoken with the vocabulary of t, which is one of Llama 3."""
    import tiktoken

    back = {c: i for i, c in enumerate_bytes()}
    vocab, special = t.get_vocab(), {a.content: i for i, a in t.get_added_tokens_decoder().items()}
    ranks = sorted((i, bytes(back[c] for c in piece)) for piece, i in vocab.items() if piece not in special)
    return tiktoken.Encoding("x", pat_str=GPT4, mergeable_ranks={b: i for i, b in ranks}, special_tokens=special)


def enumerate_bytes():
    """The bytes with the characters that spell them."""
    visible = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [c for c in range(256) if c not in visible]
    return [(c, chr(c)) for c in visible] + [(c, chr(0x100 + i)) for i, c in enumerate(hidden)]


def mixed(size, seed):
    """Texts of that many bytes together: English and code that come with Go and Python, words of other scripts, emoji, combining marks,
    right-to-left text, control characters, and any characters at all."""
    r = random.Random(seed)
    root = subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    books = [root + "/src/testdata/Isaac.Newton-Opticks.txt", root + "/src/compress/testdata/Mark.Twain-Tom.Sawyer.txt"]
    code = [*sorted(glob.glob(root + "/src/*/*.go")), *sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))]
    r.shuffle(code)
    files = [f for f in books if os.path.exists(f)] + code
    plain = []
    for f in files:
        try:
            plain.append(open(f, encoding="utf-8", newline="").read())
        except UnicodeDecodeError:
            pass
    scripts = [(0x4e00, 0x9fff), (0x3041, 0x3096), (0x30a1, 0x30fa), (0xac00, 0xd7a3), (0x5d0, 0x5ea), (0x621, 0x64a), (0x671, 0x6d3), (0x904, 0x939),
               (0xe01, 0xe3a), (0x391, 0x3c9), (0x410, 0x44f), (0x10a0, 0x10ff), (0x1200, 0x1248), (0x1f300, 0x1f64f), (0x1f900, 0x1f9ff), (0x20000, 0x20100)]
    words = []
    for low, high in scripts:
        for _ in range(300):
            word = "".join(chr(int(low + (high - low) * r.random() ** 2)) for _ in range(1 + int(r.expovariate(0.5))))
            words.append(word)
    joined = ["\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\U0001f44d\U0001f3fd", "e\u0301", "\u1e9b\u0323", "\u0938\u094d\u0924\u0947", "\u202e\u05d0\u202c", "\u200f", "\u0e01\u0e33"]
    marks = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)).startswith("M")]
    control = [chr(c) for c in [*range(32), *range(0x7f, 0xa0), 0xad, 0x600, 0x200b, 0x2028, 0x2029, 0xfeff, 0xfffd, 0xffff, 0xe0001]]

    def anything():  # but for characters that a newer Unicode than Python's may have: libraries differ in which they know
        while True:
            c = chr(r.randrange(0x110000))
            if unicodedata.category(c) not in ("Cs", "Cn") or ord(c) >= 0x40000:
                return c

    def foreign(n):
        return "".join(words[int(len(words) * r.random())] + r.choice(["", "", " ", "、", "。", ", ", "\n"]) for _ in range(n))

    kinds = [
        lambda n: foreign(n // 8),
        lambda n: "".join(r.choice(joined + words) for _ in range(n // 12)),
        lambda n: "".join(r.choice(plain[0]) + r.choice(marks) * (r.random() < 0.5) for _ in range(n // 3)),
        lambda n: "".join(r.choice(control) if r.random() < 0.3 else r.choice(WORDS) for _ in range(n // 5)),
        lambda n: "".join(anything() for _ in range(n // 4)),
        lambda n: "".join(r.choice(ALPHABET) for _ in range(n)),
        lambda n: "".join(r.choice(plain[i % len(plain)].split(" ")) + r.choice([" ", " ", "\n", "\t", words[i % len(words)]]) for i in range(n // 6)),
    ]
    done = at = 0
    while done < size:
        n = int(20 * 10 ** (3 * r.random()))  # 20 to 20,000 bytes
        if r.random() < 0.5:  # half of all: what people wrote, in order
            text = plain[0][at:at + n]
            at += n
            if at >= len(plain[0]):
                plain.append(plain.pop(0))
                at = 0
        else:
            text = r.choice(kinds)(n)
        if text:
            done += len(text.encode())
            yield text


if sys.argv[1] == "families":
    marks = ["<s>", "</s>", "<|tool|>", "a word ", "<|im_start|>", " <s> x", "e\u0301 ", "\u212b", "\u1e9b\u0323", "\uac00\u11a8", "▁", "\u0958"]
    r = random.Random(int(sys.argv[3]))
    special = ["".join(r.choice(marks + WORDS) for _ in range(8)) for _ in range(300)]
    if len(sys.argv) > 5:
        several = [*mixed(int(float(sys.argv[5]) * 1e6), int(sys.argv[3])), *special]
        lines = [line for text in several[::4] for line in text.splitlines(keepends=True)]
    else:
        source = open(sys.argv[2], encoding="utf-8").read()
        lines = source.splitlines(keepends=True)
        several = [*texts(int(sys.argv[3])), *special, *source.split("\n\n")][::int(sys.argv[4])]
    made = dict(families(lines, 8000 if len(sys.argv) > 5 else 2000))
    others = {}  # what is not this library
    if len(sys.argv) > 5:
        try:
            tik = with_tiktoken(made["llama3"])
            others["llama3"] = lambda text: tik.encode(text, disallowed_special=())
        except ImportError:
            print("without tiktoken, which is not installed", file=sys.stderr)
        try:
            made["sentencepiece"], others["sentencepiece"] = with_sentencepiece(lines)
        except ImportError:
            print("without sentencepiece, which is not installed", file=sys.stderr)
    for name, t in made.items():
        print(json.dumps({"name": name, "tokenizer": t.to_str()}))
    for text in several:
        case = {"text": text, "ids": {}, "ordinary": {}, "others": {name: f(text) for name, f in others.items()}}
        for name, t in made.items():
            t.encode_special_tokens = False
            case["ids"][name] = t.encode(text, add_special_tokens=False).ids
            t.encode_special_tokens = True
            ordinary = t.encode(text, add_special_tokens=False).ids
            if ordinary != case["ids"][name]:
                case["ordinary"][name] = ordinary
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
