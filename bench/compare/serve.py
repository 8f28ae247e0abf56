"""Compares the tokens a second of `entrain model serve` with llama.cpp's on this machine. See README.md.

    python3 bench/compare/serve.py
    python3 bench/compare/serve.py --models 10m --threads 2 --turns 5

Needs Python 3.11 or newer, Go, CMake and a C++ compiler.
"""

import argparse
import array
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import random
import resource
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

from compare import ROOT, busy_seconds, clean_environment, say, wait_until_idle

# The source distribution of these bindings on the Python package index holds llama.cpp.
BINDINGS = "llama_cpp_python==0.3.36"

# Shapes of the presets: vocabulary, hidden, layers, heads, heads of keys, size of a head, feed-forward, context, whether the head is the embedding.
MODELS = {
    "10m": (8192, 256, 6, 8, 4, 32, 768, 256, False),
    "50m": (50257, 512, 8, 8, 4, 64, 1408, 1024, True),
    "124m": (50257, 768, 12, 12, 12, 64, 2048, 1024, True),
}
PROMPT, ANSWER = 32, 128  # tokens


def build_llama(home, env):
    """Builds llama.cpp's own benchmark and returns its path."""
    program = home / "build" / "bin" / "llama-batched-bench"
    if program.exists():
        return program
    say(f"building llama.cpp from {BINDINGS} in {home}")
    home.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", BINDINGS, "-d", home], check=True, env=env)
    with tarfile.open(next(home.glob("*.tar.gz"))) as t:
        t.extractall(home, filter="data")
    source = next(home.glob("*/vendor/llama.cpp"))
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_OPENSSL=OFF"]
    options += [f"-DLLAMA_{part}=OFF" for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_SERVER", "BUILD_APP", "USE_PREBUILT_UI")]
    subprocess.run(["cmake", "-S", source, "-B", home / "build", *options], check=True, env=env, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", home / "build", "--target", "llama-batched-bench"], check=True, env=env, stdout=subprocess.DEVNULL)
    return program


def write_model(name, where):
    """Writes a model of random weights in Hugging Face's layout."""
    vocab, hidden, layers, heads, kv, size, ffn, context, tied = MODELS[name]
    shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not tied:
        shapes["lm_head.weight"] = (vocab, hidden)
    for i in range(layers):
        layer = {
            "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "self_attn.q_proj": (heads * size, hidden),
            "self_attn.k_proj": (kv * size, hidden), "self_attn.v_proj": (kv * size, hidden), "self_attn.o_proj": (hidden, heads * size),
            "mlp.gate_proj": (ffn, hidden), "mlp.up_proj": (ffn, hidden), "mlp.down_proj": (hidden, ffn),
        }
        shapes |= {f"model.layers.{i}.{part}.weight": shape for part, shape in layer.items()}
    header, at = {}, 0
    for key, shape in shapes.items():
        size_of = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size_of]}
        at += size_of
    where.mkdir()
    source = random.Random(1)
    noise = array.array("f", (source.gauss(0, 0.05) for _ in range(1 << 18))).tobytes()
    with open(where / "model.safetensors", "wb") as f:
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        f.write(struct.pack("<Q", len(text)) + text)
        for key, shape in shapes.items():
            if len(shape) == 1:
                f.write(array.array("f", [1]).tobytes() * shape[0])
                continue
            left, start = 4 * shape[0] * shape[1], 4 * source.randrange(1 << 16)
            while left:
                f.write(part := noise[start:start + left])
                left, start = left - len(part), 0
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": size, "intermediate_size": ffn, "max_position_embeddings": context,
        "rope_theta": 10000, "rms_norm_eps": 1e-5, "tie_word_embeddings": tied, "hidden_act": "silu", "torch_dtype": "float32", "eos_token_id": 256,
    }
    (where / "config.json").write_text(json.dumps(config))
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    symbols = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (where / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "added_tokens": [{"id": 256, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                  "byte_fallback": False, "vocab": {symbols[b]: b for b in range(256)} | {"<|endoftext|>": 256}, "merges": []},
    }))


def start(command, env, processors):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True, preexec_fn=lambda: os.sched_setaffinity(0, processors))


def clocks(pid):
    """Seconds on the clock, and those that processors have worked for a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return time.monotonic(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def entrain(program, checkpoint, texts, env, processors):
    """Seconds on the clock and of processors in which entrain answers as many requests at a time, over HTTP, beyond those for answers of a single
    token, and how many more tokens these are."""
    server = start([program, "model", "serve", checkpoint, "--parallel", str(texts), "--addr", "127.0.0.1:0"], env, processors)
    try:
        line = server.stderr.readline()
        if "http://" not in line:
            raise SystemExit(line + server.stderr.read())
        host = line.split("http://")[1].split("/")[0]

        def ask(seed, most):
            client = http.client.HTTPConnection(host)
            source = random.Random(seed)
            body = {"prompt": [source.randrange(256) for _ in range(PROMPT)], "max_tokens": most, "temperature": 1, "top_k": 40, "seed": seed}
            client.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = json.load(client.getresponse())
            return answer["usage"]["completion_tokens"]

        with concurrent.futures.ThreadPoolExecutor(texts) as pool:

            def answers(most):
                before = clocks(server.pid)
                tokens = sum(pool.map(lambda seed: ask(seed, most), range(texts)))
                after = clocks(server.pid)
                return after[0] - before[0], after[1] - before[1], tokens

            answers(ANSWER)  # warms up
            long, short = answers(ANSWER + 1), answers(1)
            return tuple(a - b for a, b in zip(long, short))
    finally:
        server.terminate()
        server.communicate()


def llama(program, gguf, texts, env, processors):
    """The same of llama.cpp, which draws no tokens and goes through no server."""
    threads = str(len(processors))

    def run(tokens):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [program, "-m", gguf, "-c", str(texts * 256), "-npp", str(PROMPT), "-ntg", str(tokens), "-npl", str(texts),
                   "-t", threads, "-tb", threads, "--output-format", "jsonl"]
        for _ in range(5):  # it sometimes ends well and prints nothing
            process = start(command, env, processors)
            out, err = process.communicate()
            lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            if process.returncode or lines:
                break
        if process.returncode < 0 or not process.returncode and not lines:  # a signal as with Q8_0 on processors with AMX
            say(f"{gguf.name}: llama.cpp " + (f"ended by signal {-process.returncode}" if process.returncode else "printed nothing, five times"))
            return math.nan, math.nan
        if process.returncode:
            raise SystemExit(f"{command} ended with {process.returncode}: {err[-2000:]}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return lines[-1]["t_pp"] + lines[-1]["t_tg"], now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime

    long, short = run(ANSWER + 1), run(1)
    return long[0] - short[0], long[1] - short[1], texts * ANSWER


def own_seconds():
    """Seconds that this program and those it started and waited for have worked."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--models", default=",".join(MODELS), help="presets")
    a.add_argument("--threads", default="1,2", help="numbers of threads")
    a.add_argument("--texts", default="1,8", help="numbers of requests at a time")
    a.add_argument("--turns", type=int, default=3, help="how often each is run, in turn")
    a.add_argument("--patience", type=float, default=60, help="seconds to wait for an idle machine before each run")
    a.add_argument("--processors", action="store_true", help="count seconds of processors, not of the clock: for a busy machine, and one thread")
    a.add_argument("--home", type=pathlib.Path, default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "entrain-compare" / "llama.cpp")
    o = a.parse_args()
    env = clean_environment()
    bench = build_llama(o.home, env)
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        program = work / "entrain"
        subprocess.run(["go", "build", "-o", program, "./cmd/entrain"], check=True, cwd=ROOT, env=env | {"CGO_ENABLED": "0"})

        def run(*arguments):
            done = subprocess.run([program, *arguments], env=env, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{arguments} ended with {done.returncode}: {done.stderr}")

        print(f"tokens a second of {'processors' if o.processors else 'the clock'}")
        print(f"{'':6} {'threads':>7} {'texts':>5} {'entrain':>8} {'exact8':>8} {'F32':>8} {'Q8_0':>8} {'F32 is':>8} {'8 bits':>8} {'GB/s':>6} {'others':>7}")
        for model in o.models.split(","):
            write_model(model, work / model)
            written = time.monotonic()
            run("model", "import", work / model, "-o", work / f"{model}-f32")
            say(f"{model}: imported in {time.monotonic() - written:.1f} s")
            config = json.loads((work / model / "config.json").read_text())
            (work / model / "config.json").write_text(json.dumps(config | {"numerics": "exact8"}))
            run("model", "import", work / model, "-o", work / f"{model}-8")
            run("model", "export", work / f"{model}-f32", "-o", work / f"{model}.gguf", "--type", "f32")
            run("model", "export", work / f"{model}-f32", "-o", work / f"{model}-8.gguf", "--type", "q8_0")
            vocab, hidden = MODELS[model][:2]
            weights = (work / model / "model.safetensors").stat().st_size - (0 if MODELS[model][-1] else 4 * vocab * hidden)  # read for a token
            for threads in map(int, o.threads.split(",")):
                processors = sorted(os.sched_getaffinity(0))[:threads]
                for texts in map(int, o.texts.split(",")):
                    speeds, others = [[], [], [], []], 0
                    for _ in range(o.turns):
                        for i, (how, file) in enumerate([(entrain, f"{model}-f32"), (entrain, f"{model}-8"), (llama, f"{model}.gguf"), (llama, f"{model}-8.gguf")]):
                            wait_until_idle(o.patience)
                            busy, own, at = busy_seconds(), own_seconds(), time.monotonic()
                            clock, worked, tokens = how(program if how is entrain else bench, work / file, texts, env, processors)
                            speeds[i].append(tokens / (worked if o.processors else clock))
                            others = max(others, (busy_seconds() - busy - own_seconds() + own) / (time.monotonic() - at))
                    f32, eight, their32, their8 = map(statistics.median, speeds)
                    rate = f32 / texts * weights / 1e9
                    print(
                        f"{model:6} {threads:7} {texts:5} {f32:8.0f} {eight:8.0f} {their32:8.0f} {their8:8.0f} {f32 / their32:7.2f}x {eight / their8:7.2f}x "
                        f"{rate:6.1f} {others:7.1f}", flush=True,
                    )


if __name__ == "__main__":
    main()
