"""Prints the vectors of committee_test.go, from the package comment alone (Python 3, no packages)."""
import hashlib, struct

sha256 = lambda b: hashlib.sha256(b).digest()


def position(role_seed, n, i):
    for r in range(90):
        r = bytes([r])
        pivot = int.from_bytes(sha256(role_seed + r)[:8], "little") % n
        flip = (pivot + n - i) % n
        at = max(i, flip)
        decisions = sha256(role_seed + r + struct.pack("<I", at // 256))
        if decisions[at % 256 // 8] >> at % 8 & 1:
            i = flip
    return i


seed = sha256(struct.pack("<Q", 12345))
for role in ("committee", "witness", "verifier"):
    role_seed = sha256(seed + role.encode())
    print(role)
    print("  n = 10   ", [position(role_seed, 10, i) for i in range(10)])
    print("  n = 257  ", [position(role_seed, 257, i) for i in (0, 1, 255, 256)])
    print("  n = 10000", [position(role_seed, 10000, i) for i in (0, 1, 255, 256, 257, 9999)])
