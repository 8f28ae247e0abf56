"""Prints the vectors of committee_test.go, from the package comments of committee and prng alone (Python 3, no packages)."""
import hashlib, os, runpy, struct

prng = runpy.run_path(os.path.join(os.path.dirname(__file__), "../../prng/testdata/vectors.py"))


def line(seed, role, n):
    choices, line = prng["source"](seed, role), list(range(n))
    for p in range(n - 1):
        q = p + prng["below"](choices, n - p)
        line[p], line[q] = line[q], line[p]
    return line


seed = hashlib.sha256(struct.pack("<Q", 12345)).digest()
for role in (b"committee", b"witness", b"verifier"):
    print(role.decode())
    print("  n = 10   ", line(seed, role, 10))
    for n in (257, 10000):
        whole = line(seed, role, n)
        print("  n =", n, [whole[p] for p in (0, 1, 255, n - 1)])
