"""A node of Solana for tests: the JSON-RPC that ledger/solana uses, on litesvm. It makes a block every few milliseconds.

    rpc.py PROGRAM-ADDRESS FILE.so MILLISECONDS SLOTS

SLOTS is how many blocks a blockhash is good for. It prints its port.
"""

import base64, json, os, sys, threading, time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from solders.account import Account
from solders.hash import Hash
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

program, file, milliseconds, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
svm = LiteSVM().with_blockhash_check(False).with_transaction_history(0)
svm.add_program(Pubkey.from_string(program), open(file, "rb").read())
genesis = Hash.hash(b"entrain")
lock = threading.RLock()
slot = 1000
queue, statuses, hashes = [], OrderedDict(), OrderedDict()
owned = set()  # accounts that transactions have named
lose = 0  # transactions to lose


def block():
    """Makes a block of what waits."""
    global slot
    slot += 1
    svm.warp_to_slot(slot)
    clock = svm.get_clock()
    clock.slot, clock.unix_timestamp = slot, int(time.time())
    svm.set_clock(clock)
    newest = Hash(os.urandom(32))
    svm.set_slot_hashes([(slot - 1, newest)])
    hashes[str(newest)] = slot
    while len(hashes) > slots:
        hashes.popitem(last=False)
    for tx in queue:
        signature = str(tx.signatures[0])
        if signature in statuses or str(tx.message.recent_blockhash) not in hashes:
            continue
        owned.update(tx.message.account_keys)
        error, _, _ = outcome(svm.send_transaction(tx))
        statuses[signature] = {"slot": slot, "confirmations": 1, "err": error, "confirmationStatus": "confirmed"}
    queue.clear()


def outcome(result):
    """The error as RPC shows it, the compute units and the log."""
    if not hasattr(result, "err"):
        meta = result.meta() if hasattr(result, "meta") else result
        return None, meta.compute_units_consumed(), meta.logs()
    e, meta = result.err(), result.meta()
    code = getattr(getattr(e, "err", None), "code", None)
    if hasattr(e, "index") and code is not None:
        return {"InstructionError": [e.index, {"Custom": code}]}, meta.compute_units_consumed(), meta.logs()
    if hasattr(e, "index"):
        return {"InstructionError": [e.index, str(e.err).split(".")[-1]]}, meta.compute_units_consumed(), meta.logs()
    return str(e).split(".")[-1], meta.compute_units_consumed(), meta.logs()


def show(a, options):
    if a is None or a.lamports == 0:
        return None
    data = bytes(a.data)
    part = options.get("dataSlice")
    if part:
        data = data[part["offset"] : part["offset"] + part["length"]]
    return {"lamports": a.lamports, "owner": str(a.owner), "data": [base64.b64encode(data).decode(), "base64"], "executable": False,
            "rentEpoch": 0, "space": len(bytes(a.data))}


def context(value):
    return {"context": {"slot": slot}, "value": value}


def matches(data, filters):
    for f in filters:
        m = f["memcmp"]
        want = bytes(Pubkey.from_string(m["bytes"])) if m.get("encoding") != "base64" else base64.b64decode(m["bytes"])
        if data[m["offset"] : m["offset"] + len(want)] != want:
            return False
    return True


def programAccounts(of, options):
    found = []
    for k in list(owned):
        a = svm.get_account(k)
        if a is not None and a.lamports > 0 and str(a.owner) == of and matches(bytes(a.data), options.get("filters", [])):
            found.append({"pubkey": str(k), "account": show(a, options)})
    return found


def read(text):
    return VersionedTransaction.from_bytes(base64.b64decode(text))


def simulate(text, options):
    error, units, logs = outcome(svm.simulate_transaction(read(text)))
    return context({"err": error, "unitsConsumed": units, "logs": logs})


def send(text, options):
    global lose
    tx = read(text)
    if str(tx.message.recent_blockhash) not in hashes:
        raise ValueError("Blockhash not found")
    if lose > 0:
        lose -= 1
    else:
        queue.append(tx)
    return str(tx.signatures[0])


def airdrop(to, lamports):
    a = svm.get_account(Pubkey.from_string(to))
    svm.set_account(Pubkey.from_string(to), Account(lamports + (a.lamports if a else 0), b"", Pubkey.default(), False))
    return "1"


def put(at, owner, lamports, data):
    svm.set_account(Pubkey.from_string(at), Account(lamports, base64.b64decode(data), Pubkey.from_string(owner), False))


def forget(n):
    global lose
    lose = n


def newest(options=None):
    return context({"blockhash": next(reversed(hashes)), "lastValidBlockHeight": slot + slots - 1})


methods = {
    "getGenesisHash": lambda: str(genesis),
    "getLatestBlockhash": newest,
    "getBlockHeight": lambda options=None: slot,
    "getMultipleAccounts": lambda keys, options: context([show(svm.get_account(Pubkey.from_string(k)), options) for k in keys]),
    "getProgramAccounts": programAccounts,
    "getMinimumBalanceForRentExemption": lambda n, options=None: svm.minimum_balance_for_rent_exemption(n),
    "getRecentPrioritizationFees": lambda keys=None: [{"slot": slot, "prioritizationFee": 0}],
    "simulateTransaction": simulate,
    "sendTransaction": send,
    "getSignatureStatuses": lambda signatures, options=None: context([statuses.get(s) for s in signatures]),
    "requestAirdrop": airdrop,
    "testLose": forget,
    "testPut": put,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet
    disable_nagle_algorithm = True

    def do_POST(self):
        q = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"jsonrpc": "2.0", "id": q["id"]}
        try:
            with lock:
                answer["result"] = methods[q["method"]](*q.get("params", []))
        except Exception as e:  # the client that asked says what it did
            answer["error"] = {"code": -32000, "message": str(e) or type(e).__name__}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def blocks():
    while True:
        time.sleep(milliseconds / 1000)
        with lock:
            block()


with lock:
    block()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=blocks, daemon=True).start()
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()  # until the test that started it ends
