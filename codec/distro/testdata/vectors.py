#!/usr/bin/env python3
"""Writes vectors.json: what package distro must do, computed a second time.

Run it with Python 3 and numpy, in this directory, without arguments. It shares no code with the Go package, computes in binary64 from the
method's formulas, and keeps the momentum among the weights, as the method's authors do, where the Go package keeps it among the coefficients.
The payloads are made here too, with Python's integers and binomials.

Numbers are compared with a tolerance, payloads byte for byte. So that rounding decides nothing, cases whose coefficients or directions come
near a tie are left out: the seed is counted up until there is none.
"""

import hashlib
import json
import math
import struct

import numpy as np

MASK = (1 << 64) - 1


def splitmix(seed, n):
    """n numbers in [-1, 1), multiples of 2^-23, so exact in binary32: the top 24 bits of splitmix64's outputs."""
    out, state = [], seed & MASK
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append(((z >> 40) - (1 << 23)) / (1 << 23))
    return np.array(out)


def gradient(case, round_, member, n):
    """Half of a gradient is common to all members and rounds, a quarter each is noise of the round and of the member."""
    common = splitmix(case["seed"] * 1000003, n)
    noise = splitmix(case["seed"] * 1000003 + 7919 * round_ + member + 1, n)
    return (common / 2 + noise / 2) * 2.0 ** case["exponent"]


def dct_matrix(n):
    x = np.arange(n)
    c = np.cos(np.pi * (2 * x[None, :] + 1) * x[:, None] / (2 * n)) * math.sqrt(2 / n)
    c[0] = math.sqrt(1 / n)
    return c


def pieces(size, chunk):
    """A dimension as a list of (from, to): as few pieces as chunk allows, sizes as equal as can be, the longer first."""
    count = -(-size // chunk)
    sizes = [size // count + (1 if i < size % count else 0) for i in range(count)]
    ends = np.cumsum(sizes)
    return [(int(e - s), int(e)) for s, e in zip(sizes, ends)]


def blocks(case):
    """The blocks of all tensors in order: index arrays (h, w) into the flat parameters."""
    out, offset = [], 0
    for t in case["tensors"]:
        size = math.prod(t["shape"])
        rows, cols = ([1, 1] + t["shape"])[-2:]
        index = np.arange(offset, offset + size).reshape(-1, rows, cols)
        for matrix in index:
            for r0, r1 in pieces(rows, case["chunk"]):
                for c0, c1 in pieces(cols, case["chunk"]):
                    out.append(matrix[r0:r1, c0:c1])
        offset += size
    return out


def forward(block):
    return dct_matrix(block.shape[0]) @ block @ dct_matrix(block.shape[1]).T


def inverse(block):
    return dct_matrix(block.shape[0]).T @ block @ dct_matrix(block.shape[1])


class Tie(Exception):
    """Two numbers are too near to each other for their order to be a vector."""


def top(coefficients, k):
    """Positions and signs (+1, -1) of the k coefficients of the greatest magnitude, by position."""
    flat = coefficients.ravel()
    order = np.argsort(-np.abs(flat), kind="stable")
    if k < len(flat) and abs(flat[order[k - 1]]) < abs(flat[order[k]]) * 1.0001:
        raise Tie
    if abs(flat[order[k - 1]]) < 1e-6 * np.abs(flat).max():
        raise Tie  # of the size of rounding errors
    return [(int(p), 1 if flat[p] > 0 else -1) for p in sorted(order[:k])]


def code(chosen, n, k):
    """The number of a set of positions and signs, and the width of such numbers in bits."""
    j = len(chosen)
    first = sum(math.comb(n, i) << i for i in range(j))
    rank = sum(math.comb(p, i + 1) for i, (p, _) in enumerate(chosen))
    signs = sum(1 << i for i, (_, s) in enumerate(chosen) if s < 0)
    total = sum(math.comb(n, i) << i for i in range(k + 1))
    return first + (rank << j) + signs, (total - 1).bit_length()


def header(case):
    b = struct.pack("<III", 2, case["chunk"], case["topk"])
    for t in case["tensors"]:
        name = t["name"].encode()
        b += struct.pack("<I", len(name)) + name + struct.pack("<I", len(t["shape"]))
        b += b"".join(struct.pack("<Q", d) for d in t["shape"])
    domain = b"entrain/codec"
    return b"eDT1" + hashlib.sha256(bytes([len(domain)]) + domain + b"eDT1" + b).digest()[:8]


def encode(case, delta, grad, lr):
    """One member's round: changes delta, the momentum among the weights, and returns payload and choices."""
    norm = math.sqrt(float(np.sum(grad * grad)))
    if case["clip"] > 0 and norm > case["clip"]:
        grad = grad * (case["clip"] / norm)
    delta *= case["decay"]
    delta += lr * grad
    stream, width, chosen = 0, 0, []
    for index in blocks(case):
        coefficients = forward(delta[index])
        k = min(case["topk"], index.size)
        picks = top(coefficients, k)
        sent = np.zeros(index.size)
        for p, _ in picks:
            sent[p] = coefficients.ravel()[p]
        delta[index] -= inverse(sent.reshape(index.shape))
        number, bits = code(picks, index.size, k)
        stream |= number << width
        width += bits
        chosen.append(picks)
    return header(case) + stream.to_bytes((width + 7) // 8, "little"), chosen


def apply(case, params, choices, lr):
    for i, index in enumerate(blocks(case)):
        votes = np.zeros(index.size)
        for chosen in choices:
            for p, s in chosen[i]:
                votes[p] += s
        votes = votes.reshape(index.shape)
        direction = inverse(votes)
        reach = np.abs(dct_matrix(index.shape[0])).T @ np.abs(votes) @ np.abs(dct_matrix(index.shape[1]))
        direction[reach < 1e-9] = 0  # all terms are zero, not only their sum
        if np.any((reach >= 1e-9) & (np.abs(direction) < 1e-4)):
            raise Tie
        params[index] = params[index] * (1 - lr * case["weight_decay"]) - lr * np.sign(direction)


def play(case):
    n = sum(math.prod(t["shape"]) for t in case["tensors"])
    params = splitmix(case["seed"], n)
    deltas = [np.zeros(n) for _ in range(case["members"])]
    rounds = []
    for r, lr in enumerate(case["lrs"]):
        sent = [encode(case, deltas[m], gradient(case, r, m, n), lr) for m in range(case["members"])]
        apply(case, params, [chosen for _, chosen in sent], lr)
        rounds.append({"payloads": [p.hex() for p, _ in sent], "params": [round(x, 8) for x in params]})
    case["rounds"] = rounds
    case["deltas"] = [[float(f"{x:.7g}") for x in d] for d in deltas]
    return case


def find(case):
    for seed in range(1, 100000):
        try:
            return play(dict(case, seed=seed))
        except Tie:
            pass
    raise SystemExit("every seed has a tie")


CASES = [
    {
        "name": "even blocks",
        "tensors": [{"name": "wq", "shape": [16, 8]}, {"name": "wo", "shape": [8, 24]}],
        "chunk": 8, "topk": 3, "decay": 0.75, "weight_decay": 0.125, "clip": 0, "exponent": 0,
        "members": 4, "lrs": [0.03125, 0.0625, 0.0625, 0.03125],
    },
    {
        "name": "uneven blocks, vectors, a stack of matrices and a scalar",
        "tensors": [{"name": "embed", "shape": [13, 11]}, {"name": "norm", "shape": [17]}, {"name": "experts", "shape": [2, 3, 10]},
                    {"name": "scale", "shape": []}],
        "chunk": 7, "topk": 4, "decay": 0.875, "weight_decay": 0.0625, "clip": 2.5, "exponent": 3,
        "members": 3, "lrs": [0.0625, 0.03125, 0.015625, 0.0078125, 0.0078125],
    },
    {
        "name": "one member, codes of several words",
        "tensors": [{"name": "w", "shape": [33, 64]}],
        "chunk": 64, "topk": 24, "decay": 0.5, "weight_decay": 0, "clip": 1, "exponent": -20,
        "members": 1, "lrs": [0.00390625, 0.00390625],
    },
]

if __name__ == "__main__":
    with open("vectors.json", "w") as f:
        json.dump({"written_by": "vectors.py", "cases": [find(c) for c in CASES]}, f, separators=(",", ":"))
        f.write("\n")
