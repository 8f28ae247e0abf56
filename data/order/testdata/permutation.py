"""Writes permutation.json: orders of sequences computed from the documentation of Permutation, prng and wire.Sum alone.

python3 permutation.py > permutation.json
"""
import hashlib
import json
import sys

M = (1 << 64) - 1


def wire_sum(domain, *parts):
    return hashlib.sha256(bytes([len(domain)]) + domain.encode() + b"".join(parts)).digest()


def rotl(x, k):
    return (x << k | x >> 64 - k) & M


class Source:
    def __init__(self, seed, label):
        h = wire_sum("entrain/prng", seed, label.encode())
        self.s = [int.from_bytes(h[8 * i : 8 * i + 8], "little") for i in range(4)]

    def uint64(self):
        s = self.s
        out = rotl(s[1] * 5 & M, 7) * 9 & M
        t = s[1] << 17 & M
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return out

    def uint64n(self, n):
        while True:
            x = self.uint64() * n
            if x & M >= (1 << 64) % n:
                return x >> 64


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def at(seed, number, n, x):
    source = Source(seed, f"data/pass/{number}")
    for _ in range(90):
        k, m = source.uint64n(n), source.uint64()
        p = (k - x) % n
        if mix(max(x, p) ^ m) >> 63:
            x = p
    return x


cases = []
for seed, number, n in [(bytes(32), 0, 10), (bytes(32), 1, 10), (bytes(range(32)), 0, 4432), (bytes(range(32)), M, (1 << 63) + 5)]:
    values = [at(seed, number, n, x) for x in range(10)] + [at(seed, number, n, n - 1)]
    # as text: JSON readers make floats of numbers beyond 2^53
    cases.append({"seed": seed.hex(), "pass": str(number), "n": str(n), "values": [str(v) for v in values]})
json.dump(cases, sys.stdout, indent=1)
print()
