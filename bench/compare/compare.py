"""Compares entrain's training step with PyTorch's on this machine. See README.md.

    python3 bench/compare/compare.py
    python3 bench/compare/compare.py --models 10m --threads 2 --turns 5

Needs Python 3.11 or newer, Go, and for what PyTorch compiles a C++ compiler.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TORCH = "2.15.0"

# Steps measured in one process, after those that warm up.
STEPS = {"nano": 40, "10m": 8, "50m": 3, "124m": 2}

# What entrain in binary32 is compared with: itself in 8 bits, and PyTorch in several ways.
RIVALS = ("exact8", "installed", "installed-compile", "eager", "compile", "bf16-eager", "bf16-compile")

# Settings from outside that choose kernels or threads for a library, or how a program gets its memory.
FOREIGN = (
    "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_", "VECLIB_", "NUMEXPR_", "OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH",
    "PYTORCH_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOFLAGS", "GOEXPERIMENT", "GOAMD64",
)

# MKL, with which PyTorch is built, uses its AVX-512 kernels only where this function says that the processor is Intel's.
SHIM = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"


def say(text):
    print(text, file=sys.stderr, flush=True)


def clean_environment():
    """The environment without settings that would favour or cripple anyone."""
    dropped = [name for name in os.environ if name.startswith(FOREIGN)]
    if dropped:
        say("unset: " + " ".join(sorted(dropped)))
    return {name: value for name, value in os.environ.items() if name not in dropped}


def install_torch(venv, env):
    """Makes a virtual environment with PyTorch and returns its interpreter.

    The index has no build without CUDA for Linux on x86-64: the libraries that it is linked with must be there, even where no GPU is. What only
    GPUs need beside them, triton and cuda-bindings, is left out.
    """
    python = venv / "bin" / "python"
    have = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], env=env, capture_output=True, text=True) if python.exists() else None
    if have and have.stdout.startswith(TORCH):
        return python
    say(f"installing PyTorch {TORCH} in {venv}: about 1.5 GB to download, 5 GB on disk")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, env=env)
    pip = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", f"torch=={TORCH}"], check=True, env=env)
    needed = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print('\\n'.join(m.requires('torch')))"], check=True, env=env, capture_output=True, text=True
    ).stdout.splitlines()
    needed = [r for r in needed if "extra ==" not in r and not r.startswith(("triton", "cuda-bindings"))]
    subprocess.run([*pip, "numpy", *needed], check=True, env=env)
    return python


def build(where, env):
    """Builds entrain as a user would, and the shim, if there is a C compiler. Returns their paths."""
    program = where / "entrain"
    subprocess.run(["go", "build", "-buildvcs=auto", "-o", program, "./cmd/entrain"], check=True, cwd=ROOT, env=env | {"CGO_ENABLED": "0"})
    compiler = shutil.which("cc")
    if not compiler:
        return program, None
    shim = where / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", shim], input=SHIM, check=True, text=True, env=env)
    return program, shim


def busy_seconds():
    """Seconds that all processors have worked since the machine started."""
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(patience):
    """Waits for a second in which nothing else ran, for at most so many seconds."""
    deadline = time.monotonic() + patience
    while True:
        before, start = busy_seconds(), time.monotonic()
        time.sleep(1)
        if busy_seconds() - before < 0.05 * (time.monotonic() - start) or time.monotonic() > deadline:
            return


def measure(command, env, processors, patience):
    """Runs a command pinned to processors. Returns its JSON, with its peak memory, and the share of the machine that others used meanwhile."""
    wait_until_idle(patience)
    before, start = busy_seconds(), time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdout=out, stderr=err, env=env, cwd=HERE, preexec_fn=lambda: os.sched_setaffinity(0, processors)
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{err.read().decode()}")
        result = json.loads(out.read().splitlines()[-1])
    wall = time.monotonic() - start
    result["peak_bytes"] = usage.ru_maxrss * 1024
    result["others"] = max(0, busy_seconds() - before - usage.ru_utime - usage.ru_stime) / (wall * os.cpu_count())
    return result


class Contestant:
    """A way to do the step: its command, and what it measured."""

    def __init__(self, name, command, env):
        self.name, self.command, self.env = name, command, env
        self.runs = []

    def seconds(self):
        """The median step, of the runs that nobody disturbed if there are such."""
        calm = [r for r in self.runs if r["others"] < 0.05] or self.runs
        return statistics.median(s for r in calm for s in r["seconds"])

    def processor(self):
        """The least processor time of a step: with one thread, what it takes when nobody else computes."""
        return min(s for r in self.runs for s in r["processor_seconds"])

    def peak(self):
        return statistics.median(r["peak_bytes"] for r in self.runs)


def contestants(model, threads, o, program, python, shim, env):
    steps = str(o.steps or STEPS[model])
    shape = [model, "--batch", str(o.batch), "--sequence", str(o.sequence), "--workers", str(threads), "--steps", steps]
    # PyTorch's memory in huge pages: 15 % faster here.
    torch_env = env | {"OMP_NUM_THREADS": str(threads), "THP_MEM_ALLOC_ENABLE": "1"}
    step = [python, HERE / "torch_step.py", *shape, "--mode"]
    all_of = {
        "entrain": Contestant("entrain", [program, "bench", *shape, "--json"], env),
        "exact8": Contestant("entrain, exact8", [program, "bench", model + ",exact8", *shape[1:], "--json"], env),
        "installed": Contestant("PyTorch as installed, eager", [*step, "eager"], torch_env),
        "installed-compile": Contestant("PyTorch as installed, torch.compile", [*step, "compile"], torch_env),
        "eager": Contestant("PyTorch, MKL at AVX-512, eager", [*step, "eager"], torch_env | {"LD_PRELOAD": str(shim)}),
        "compile": Contestant("PyTorch, MKL at AVX-512, torch.compile", [*step, "compile"], torch_env | {"LD_PRELOAD": str(shim)}),
    }
    for name in ("eager", "compile"):
        all_of["bf16-" + name] = Contestant(
            f"PyTorch, bf16, MKL at AVX-512, {name}", [*step, name, "--bf16"], torch_env | ({"LD_PRELOAD": str(shim)} if shim else {})
        )
    if not shim:
        del all_of["eager"], all_of["compile"]
    return [c for name, c in all_of.items() if name == "entrain" or name in o.against]


def compare(model, threads, o, parts):
    """Measures one model with so many threads, and returns the rows of the table."""
    field = contestants(model, threads, o, *parts)
    processors = sorted(os.sched_getaffinity(0))[:threads]
    for turn in range(o.turns):
        for c in field:
            say(f"{model}, {threads} threads, turn {turn + 1} of {o.turns}: {c.name}")
            c.runs.append(measure(c.command, c.env, processors, o.patience))
    params = {r["params"] for c in field for r in c.runs}
    if len(params) != 1:
        raise SystemExit(f"{model}: the models have different numbers of parameters: {params}")
    return field, params.pop()


def table(rows, o):
    tokens = o.batch * o.sequence
    for (model, threads), (field, params) in rows.items():
        ours = field[0]
        print(f"\n{model}, {params:,} parameters, {o.batch} x {o.sequence} tokens, {threads} thread{'s' if threads > 1 else ''}")
        print(f"{'':42} {'tokens/s':>10} {'entrain is':>11} {'by processor time':>18} {'peak MiB':>9} {'entrain':>8} {'others':>7}")
        for c in field:
            speed, memory = c.seconds() / ours.seconds(), ours.peak() / c.peak()
            others = max(r["others"] for r in c.runs)
            processor = c.processor() / ours.processor()
            print(f"{c.name:42} {tokens / c.seconds():10.0f} {speed:10.2f}x {processor:17.2f}x {c.peak() / 2**20:9.0f} {memory:7.2f}x {others:7.1%}")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--models", default="10m,50m,124m", help="presets")
    a.add_argument("--threads", default="1,2", help="numbers of threads")
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--sequence", type=int, default=256)
    a.add_argument("--steps", type=int, default=0, help="steps measured in one process (default: by model)")
    a.add_argument("--turns", type=int, default=3, help="how often each is run, in turn")
    a.add_argument("--against", default=",".join(RIVALS), help="what to compare with entrain in binary32")
    a.add_argument("--patience", type=float, default=60, help="seconds to wait for an idle machine before each run")
    a.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "entrain-compare")
    a.add_argument("--json", type=pathlib.Path, help="file for all measurements")
    o = a.parse_args()
    o.against = o.against.split(",")
    unknown = set(o.against) - set(RIVALS)
    if unknown:
        a.error(f"--against: there is no {', '.join(sorted(unknown))}")

    env = clean_environment()
    python = install_torch(o.venv.absolute(), env)
    rows = {}
    with tempfile.TemporaryDirectory() as where:
        program, shim = build(pathlib.Path(where), env)
        subprocess.run([program, "--version"], check=True, env=env)
        parts = (program, python, shim, env)
        for model in o.models.split(","):
            for threads in map(int, o.threads.split(",")):
                rows[model, threads] = compare(model, threads, o, parts)
                table({(model, threads): rows[model, threads]}, o)
                sys.stdout.flush()
    if o.json:
        o.json.write_text(json.dumps([
            {"model": model, "threads": threads, "name": c.name, "runs": c.runs} for (model, threads), (field, _) in rows.items() for c in field
        ], indent=1))


if __name__ == "__main__":
    main()
