"""Solana's virtual machine for tests: litesvm behind lines of JSON, one question and one answer each. See svm.go."""

import base64, hashlib, json, sys

from solders.account import Account
from solders.clock import Clock
from solders.hash import Hash
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.transaction import Transaction

svm = LiteSVM()
sysvars = Pubkey.from_string("Sysvar1111111111111111111111111111111111111")


def key(text):
    return Pubkey.from_string(text)


def put(q):
    data = base64.b64decode(q.get("data") or "")
    svm.set_account(key(q["key"]), Account(q["lamports"], data, key(q["owner"]), False))
    return {}


def get(q):
    a = svm.get_account(key(q["key"]))
    if a is None or a.lamports == 0:
        return {}
    r = {"lamports": a.lamports, "owner": str(a.owner), "sum": hashlib.sha256(bytes(a.data)).hexdigest(), "bytes": len(a.data)}
    if q.get("whole"):
        r["data"] = base64.b64encode(bytes(a.data)).decode()
    return r


def program(q):
    svm.add_program(key(q["key"]), open(q["file"], "rb").read())
    return {}


def send(q):
    tx = Transaction.from_bytes(base64.b64decode(q["tx"]))
    r = svm.send_transaction(tx)
    seen = {"account": get(q)} if "key" in q else {}
    if not hasattr(r, "meta"):
        return seen | {"units": r.compute_units_consumed(), "logs": r.logs(), "error": ""}
    meta, err = r.meta(), r.err()
    inner = getattr(err, "err", None)
    return seen | {"units": meta.compute_units_consumed(), "logs": meta.logs(), "error": str(err), "code": getattr(inner, "code", 0) if inner else 0}


def clock(q):
    c = svm.get_clock()
    svm.warp_to_slot(q["slot"])
    c.slot, c.unix_timestamp = q["slot"], q["unix"]
    svm.set_clock(c)
    svm.set_slot_hashes([(q["slot"] - 1, Hash.from_bytes(bytes.fromhex(q["hash"])))])
    return {}


def unlimited(q):
    """Lifts the limit of compute units, to see what would be needed."""
    global svm
    from solders.compute_budget import ComputeBudget

    b = ComputeBudget(False)
    b.compute_unit_limit = 1 << 40
    b.heap_size = 1 << 18
    svm = svm.with_compute_budget(b)
    return {}


def unsigned(q):
    global svm
    svm = svm.with_sigverify(False).with_blockhash_check(False).with_transaction_history(0)
    return {}


def blockhash(q):
    svm.expire_blockhash()
    return {"hash": str(svm.latest_blockhash())}


ops = {f.__name__: f for f in (put, get, program, send, clock, unlimited, unsigned, blockhash)}
for line in sys.stdin:
    q = json.loads(line)
    try:
        a = ops[q["op"]](q)
    except Exception as e:  # the test that asked says what it did
        a = {"failed": f"{type(e).__name__}: {e}"}
    print(json.dumps(a), flush=True)
