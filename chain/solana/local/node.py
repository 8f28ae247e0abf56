"""A cluster of Solana in one process, for one machine: the JSON-RPC and the subscriptions to accounts that
ledger/solana uses, on litesvm.

It prints a line of JSON when it listens, and ends when its standard input does. With --keep it
continues from what the file has, with all blockhashes expired.
"""

import argparse, base64, hashlib, json, os, socket, sqlite3, struct, sys, threading, time, traceback
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from solders.account import Account
from solders.hash import Hash
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

flags = argparse.ArgumentParser()
flags.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT")
flags.add_argument("--program", nargs=2, metavar=("ADDRESS", "FILE"), help="a program that is there from the beginning")
flags.add_argument("--block", type=int, default=400, metavar="MS", help="time between blocks")
flags.add_argument("--slots", type=int, default=150, metavar="N", help="blocks for which a blockhash is good")
flags.add_argument("--keep", default=":memory:", metavar="FILE", help="where accounts and outcomes are kept")
flags = flags.parse_args()

svm = LiteSVM().with_blockhash_check(False).with_transaction_history(0)
if flags.program:
    svm.add_program(Pubkey.from_string(flags.program[0]), open(flags.program[1], "rb").read())
genesis = Hash.hash(b"entrain")
lock = threading.RLock()
slot, slots = 1000, flags.slots
queue, statuses, hashes = [], OrderedDict(), OrderedDict()
owned = set()  # accounts that transactions have named
changed = set()  # accounts that are not kept yet
subscribed = []  # connection, number, address, options
lose = 0  # transactions to lose
mute = False  # no subscriptions
blind = 0  # questions about outcomes to answer as a node would that lags behind

# The process may be killed at any time, and then has what was committed. The machine must not be.
kept = sqlite3.connect(flags.keep, check_same_thread=False, isolation_level=None)
kept.executescript("""
    PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS slots (one INTEGER PRIMARY KEY, slot INTEGER);
    CREATE TABLE IF NOT EXISTS accounts (address TEXT PRIMARY KEY, lamports INTEGER, data BLOB, owner TEXT, executable INTEGER);
    CREATE TABLE IF NOT EXISTS statuses (signature TEXT PRIMARY KEY, status TEXT);
""")


def load():
    global slot
    for (last,) in kept.execute("SELECT slot FROM slots"):
        slot = last + slots
    for address, lamports, data, owner, executable in kept.execute("SELECT * FROM accounts ORDER BY executable"):
        at = Pubkey.from_string(address)
        svm.set_account(at, Account(lamports, data, Pubkey.from_string(owner), bool(executable)))
        owned.add(at)
    for signature, status in kept.execute("SELECT * FROM statuses"):
        statuses[signature] = json.loads(status)


def keep(outcomes):
    kept.execute("BEGIN")
    kept.execute("REPLACE INTO slots VALUES (1, ?)", (slot,))
    for at in changed:
        a = svm.get_account(at)
        if a is None or a.lamports == 0:
            kept.execute("DELETE FROM accounts WHERE address = ?", (str(at),))
        else:
            kept.execute("REPLACE INTO accounts VALUES (?, ?, ?, ?, ?)", (str(at), a.lamports, bytes(a.data), str(a.owner), a.executable))
    for signature in outcomes:
        kept.execute("REPLACE INTO statuses VALUES (?, ?)", (signature, json.dumps(statuses[signature])))
    kept.execute("COMMIT")
    changed.clear()


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
    outcomes = []
    for tx in queue:
        signature = str(tx.signatures[0])
        if signature in statuses or str(tx.message.recent_blockhash) not in hashes:
            continue
        keys, h = tx.message.account_keys, tx.message.header
        owned.update(keys)
        changed.update(keys[: h.num_required_signatures - h.num_readonly_signed_accounts])
        changed.update(keys[h.num_required_signatures : len(keys) - h.num_readonly_unsigned_accounts])
        error, _, _ = outcome(svm.send_transaction(tx))
        statuses[signature] = {"slot": slot, "confirmations": 1, "err": error, "confirmationStatus": "confirmed"}
        outcomes.append(signature)
    queue.clear()
    tell()
    keep(outcomes)


def tell():
    """Tells subscribers which accounts have changed."""
    for entry in list(subscribed):
        to, number, at, options = entry
        if at in changed:
            try:
                to.say({"jsonrpc": "2.0", "method": "accountNotification", "params": {
                    "result": context(show(svm.get_account(at), options)), "subscription": number}})
            except OSError:
                subscribed.remove(entry)


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
    return {"lamports": a.lamports, "owner": str(a.owner), "data": [base64.b64encode(data).decode(), "base64"], "executable": a.executable,
            "rentEpoch": 0, "space": len(bytes(a.data))}


def context(value):
    return {"context": {"slot": slot}, "value": value}


def unbase58(text):
    n = 0
    for c in text:
        n = n * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(c)
    return b"\0" * (len(text) - len(text.lstrip("1"))) + n.to_bytes((n.bit_length() + 7) // 8, "big")


def matches(data, filters):
    for f in filters:
        if "dataSize" in f:
            if len(data) != f["dataSize"]:
                return False
            continue
        m = f["memcmp"]
        want = unbase58(m["bytes"])
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
    at = Pubkey.from_string(to)
    a = svm.get_account(at)
    owned.add(at)
    changed.add(at)
    svm.set_account(at, Account(lamports + (a.lamports if a else 0), b"", Pubkey.default(), False))
    return "1"


def put(at, owner, lamports, data):
    at = Pubkey.from_string(at)
    owned.add(at)
    changed.add(at)
    svm.set_account(at, Account(lamports, base64.b64decode(data), Pubkey.from_string(owner), False))


def forget(n):
    global lose
    lose = n


def blinded(n):
    global blind
    blind = n


def silence(on):
    global mute
    mute = on
    for entry in subscribed if mute else []:
        entry[0].connection.shutdown(socket.SHUT_RDWR)


def outcomes(signatures, options=None):
    global blind
    if blind > 0:
        blind -= 1
        return {"context": {"slot": 1}, "value": [None] * len(signatures)}
    return context([statuses.get(s) for s in signatures])


def newest(options=None):
    return context({"blockhash": next(reversed(hashes)), "lastValidBlockHeight": slot + slots - 1})


methods = {
    "getGenesisHash": lambda: str(genesis),
    "getLatestBlockhash": newest,
    "getEpochInfo": lambda options=None: {"absoluteSlot": slot, "blockHeight": slot},
    "getMultipleAccounts": lambda keys, options: context([show(svm.get_account(Pubkey.from_string(k)), options) for k in keys]),
    "getProgramAccounts": programAccounts,
    "getMinimumBalanceForRentExemption": lambda n, options=None: svm.minimum_balance_for_rent_exemption(n),
    "getRecentPrioritizationFees": lambda keys=None: [{"slot": slot, "prioritizationFee": 0}],
    "simulateTransaction": simulate,
    "sendTransaction": send,
    "getSignatureStatuses": outcomes,
    "requestAirdrop": airdrop,
    "testLose": forget,
    "testBlind": blinded,
    "testPut": put,
    "testMute": silence,
    "testSubscribed": lambda: len(subscribed),
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

    def do_GET(self):
        """Speaks WebSocket (RFC 6455), for subscriptions."""
        nonce = self.headers.get("Sec-WebSocket-Key")
        if nonce is None or mute:
            self.send_error(405)
            return
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))  # others wait for the lock
        accept = base64.b64encode(hashlib.sha1((nonce + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        self.wfile.flush()
        try:
            while self.listen():
                pass
        finally:
            with lock:
                subscribed[:] = [s for s in subscribed if s[0] is not self]

    def listen(self):
        kind, text = self.hear()
        if kind == 9:
            with lock:
                self.frame(10, text)
        elif kind == 1:
            q = json.loads(text)
            with lock:
                subscribed.append((self, len(subscribed) + 1, Pubkey.from_string(q["params"][0]), q["params"][1]))
                self.say({"jsonrpc": "2.0", "id": q["id"], "result": len(subscribed)})
        return kind in (1, 9)

    def hear(self):
        first, second = self.rfile.read(2)
        n = second & 127
        if n >= 126:
            n = struct.unpack(">H", self.rfile.read(2))[0]
        mask = self.rfile.read(4)
        return first & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))

    def say(self, value):
        self.frame(1, json.dumps(value).encode())

    def frame(self, kind, text):
        n = len(text)
        self.wfile.write(bytes([128 | kind]) + (bytes([n]) if n < 126 else struct.pack(">BH", 126, n)) + text)
        self.wfile.flush()

    def log_message(self, *args):
        pass


def blocks():
    try:
        while True:
            time.sleep(flags.block / 1000)
            with lock:
                block()
    except Exception:
        traceback.print_exc()
        os._exit(1)  # without blocks nobody gets an answer


with lock:
    load()
    block()
host, _, port = flags.listen.rpartition(":")
ThreadingHTTPServer.request_queue_size = 128
server = ThreadingHTTPServer((host, int(port)), Handler)
server.daemon_threads = True
server.handle_error = lambda *args: None  # a client that went away
threading.Thread(target=blocks, daemon=True).start()
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"event": "listening", "endpoint": f"http://{host}:{server.server_port}"}), flush=True)
sys.stdin.read()  # until whoever started it ends
