"""One training step of a Llama in PyTorch: the counterpart of "entrain bench PRESET".

    python torch_step.py PRESET --batch 8 --sequence 256 --workers 2 --steps 5 --mode eager

Prints one JSON object. The model is written with what PyTorch has fastest for each part: fused scaled dot-product attention with grouped
heads, its own RMSNorm and cross-entropy, one product for queries, keys and values and one for gate and up, fused AdamW.
"""

import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

# vocab, hidden, layers, heads, heads of keys and values, head_dim, ffn, tied: package llama's presets.
PRESETS = {
    "nano": (256, 128, 5, 4, 2, 32, 352, False),
    "10m": (8192, 256, 6, 8, 4, 32, 768, False),
    "50m": (50257, 512, 8, 8, 4, 64, 1408, True),
    "124m": (50257, 768, 12, 12, 12, 64, 2048, True),
    "350m": (50257, 1024, 24, 16, 16, 64, 2816, True),
    "1b": (32000, 2048, 22, 32, 4, 64, 5632, False),
}


class Block(nn.Module):
    def __init__(self, hidden, heads, kv, dim, ffn):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, dim
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv) * dim, bias=False)
        self.o = nn.Linear(heads * dim, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, -1, self.dim).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv, self.kv), 1)
        y = F.scaled_dot_product_attention(
            self.rotate(q, cos, sin), self.rotate(k, cos, sin), v, is_causal=True, enable_gqa=self.heads != self.kv
        )
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, vocab, hidden, layers, heads, kv, dim, ffn, tied, length):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, kv, dim, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, vocab, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        if tied:
            self.head.weight = self.embed.weight
        angles = torch.outer(torch.arange(length), 10000.0 ** -(torch.arange(0, dim, 2) / dim))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens):
        x = self.embed(tokens[:, :-1])
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("preset", choices=PRESETS)
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--sequence", type=int, default=256)
    a.add_argument("--workers", dest="threads", type=int, default=1)
    a.add_argument("--steps", type=int, default=5)
    a.add_argument("--bf16", action="store_true", help="forward and backward under autocast to bfloat16")
    a.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    a.add_argument("--mode", choices=("eager", "compile"), default="eager")
    o = a.parse_args()

    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # binary32 is what it says
    model = Llama(*PRESETS[o.preset], o.sequence).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)
    tokens = torch.randint(0, PRESETS[o.preset][0], (o.batch, o.sequence + 1), device=o.device)
    loss_of = torch.compile(model) if o.mode == "compile" else model

    def step():
        with torch.autocast(o.device, torch.bfloat16, enabled=o.bf16):
            loss = loss_of(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(2):  # to warm up: compile, allocate
        step()
    seconds, processor = [], []
    for _ in range(o.steps):
        start, used = time.perf_counter(), time.process_time()
        loss = step()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    print(json.dumps({
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "params": sum(p.numel() for p in model.parameters()),
        "device": torch.cuda.get_device_name() if o.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "seconds": seconds,
        "processor_seconds": processor,
        "loss": loss,
        "tokens_per_second": o.batch * o.sequence / sorted(seconds)[len(seconds) // 2],
        "memory_bytes": torch.cuda.max_memory_allocated() if o.device == "cuda" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
