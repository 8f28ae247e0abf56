"""Prints the vectors of prng_test.go, from the published definitions alone (Python 3, no packages)."""
import hashlib, struct

MASK = (1 << 64) - 1


def xoshiro256starstar(s):
    rotl = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
    while True:
        yield rotl(s[1] * 5 & MASK, 7) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)


def source(seed, label):
    domain = b"entrain/prng"
    digest = hashlib.sha256(bytes([len(domain)]) + domain + seed + label).digest()
    return xoshiro256starstar(list(struct.unpack("<4Q", digest)))


def below(g, n):
    """Lemire's method, written with its rejection test always on."""
    while True:
        product = next(g) * n
        if product & MASK >= (1 << 64) % n:
            return product >> 64


def shuffle(g, n):
    a = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(g, i + 1)
        a[i], a[j] = a[j], a[i]
    return a


if __name__ == "__main__":
    seed = bytes(range(32))
    g = source(seed, b"shuffle")
    print("Uint64 ", [next(g) for _ in range(4)])
    print("Shuffle", shuffle(source(seed, b"shuffle"), 12))
    g = source(seed, b"")
    print("Uint64n(3<<62)", [below(g, 3 << 62) for _ in range(6)])
