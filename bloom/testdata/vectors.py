"""Prints the vectors of bloom_test.go, from the package comment alone (Python 3, no packages)."""
import hashlib, struct


def bits(salt, item, size, hashes):
    domain, out, j = b"entrain/bloom", [], 0
    while len(out) < hashes:
        d = hashlib.sha256(bytes([len(domain)]) + domain + bytes([len(salt)]) + salt + item + bytes([j])).digest()
        out += [x * size >> 32 for x in struct.unpack("<8I", d)]
        j += 1
    return out[:hashes]


print("bits  ", bits(bytes([1] * 32), bytes(range(32)), 1024, 20))
f = bytearray(16)
for i in range(3):
    for b in bits(b"ann", hashlib.sha256(bytes([i])).digest(), 128, 10):
        f[b // 8] |= 1 << b % 8
print("filter", f.hex())
