"""Right. The record's answer and the payment are one transaction of SQLite: there is no crash between the two.

A reservation that a crash left has no payment, since both end together; so a start frees it and a retry may run.
"""
import argparse
import base64
import hashlib
import http.server
import json
import os
import re
import sqlite3
import sys
import threading
import time
import uuid

KEY_CHARACTERS_MAX = 255
BODY_BYTES_MAX = 1 << 20
WORK_MS = 20
WORK_MS_MAX = 60_000

TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS payment (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, body TEXT);
CREATE TABLE IF NOT EXISTS record (
  id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, status INTEGER, headers TEXT, body BLOB, expires_ms REAL);
DELETE FROM record WHERE status IS NULL;
"""


class Digits(str):
    """A number as its sender wrote it."""


def refuse(text):
    raise ValueError(text)


def unique(members):
    names = dict(members)
    if len(names) != len(members):
        raise ValueError("a member twice")
    return names


def parse(body):
    kinds = {"parse_int": Digits, "parse_float": Digits, "parse_constant": refuse}
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=unique, **kinds)
    except RecursionError as error:
        raise ValueError("too deep") from error


def canonical(value):
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{canonical(value[name])}" for name in sorted(value)) + "}"
    return json.dumps(value)


def meaning(body):
    try:
        return canonical(parse(body))
    except ValueError:
        return base64.b64encode(body).decode()


def read_key(lines):
    """(key, None) or (None, why it is none)."""
    if not lines:
        return None, "an Idempotency-Key is required"
    if len(lines) > 1:
        return None, "two Idempotency-Key lines"
    text = lines[0].strip()
    quoted = re.fullmatch(r'"((?:[ !#-\[\]-~]|\\["\\])*)"', text)
    bare = re.fullmatch(r"[!#-+\--~]+", text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text if bare else ""
    if not key:
        return None, "no Idempotency-Key"
    if len(key) > KEY_CHARACTERS_MAX:
        return None, "the Idempotency-Key is too long"
    return key, None


def answer(status, value, headers=None):
    kind = "application/problem+json" if "title" in value else "application/json"
    body = json.dumps(value, separators=(",", ":")).encode()
    return status, {"Content-Type": kind, **(headers or {})}, body


def problem(status, title, headers=None):
    return answer(status, {"title": title, "status": status}, headers)


class Payments:
    """One connection under one lock: each method is one transaction, and no two mix."""

    def __init__(self, path, retention_ms):
        self.database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.database.executescript(TABLES)
        self.lock = threading.Lock()
        self.retention_ms = retention_ms

    def transaction(self, work):
        with self.lock:
            self.database.execute("BEGIN IMMEDIATE")
            try:
                result = work(self.database.execute)
                self.database.execute("COMMIT")
                return result
            except BaseException:
                self.database.execute("ROLLBACK")
                raise

    def reserve(self, key, fingerprint):
        """None: the caller runs. Otherwise the answer for a key that is known."""

        def work(execute):
            execute("DELETE FROM record WHERE id = ? AND expires_ms <= ?", (key, time.time() * 1000))
            statement = "INSERT INTO record (id, fingerprint) VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
            if execute(statement, (key, fingerprint)).rowcount == 1:
                return None
            return execute(
                "SELECT fingerprint, status, headers, body FROM record WHERE id = ?", (key,)
            ).fetchone()

        found = self.transaction(work)
        if found is None:
            return None
        stored, status, headers, body = found
        if stored != fingerprint:
            return problem(422, "the Idempotency-Key belongs to another request")
        if status is None:
            return problem(409, "the first request still runs", {"Retry-After": "1"})
        kept = {n: v for n, v in json.loads(headers).items() if n in ("Content-Type", "Location")}
        return status, {**kept, "Idempotency-Replayed": "true"}, body

    def release(self, key):
        self.transaction(lambda execute: execute("DELETE FROM record WHERE id = ?", (key,)))

    def complete(self, key, make):
        """Runs `make`, which may write a payment, and stores its answer with it."""

        def work(execute):
            status, headers, body = make(execute)
            ends = None if self.retention_ms is None else time.time() * 1000 + self.retention_ms
            execute(
                "UPDATE record SET status = ?, headers = ?, body = ?, expires_ms = ? WHERE id = ?",
                (status, json.dumps(headers), body, ends, key),
            )
            return status, headers, body

        return self.transaction(work)

    def one(self, statement, *values):
        with self.lock:
            return self.database.execute(statement, values).fetchone()


def pay(execute, order):
    number = execute("INSERT INTO payment (id) VALUES (NULL)").lastrowid
    name = f"pay_{number}"
    body = f'{{"id":"{name}","amount":{order["amount"]},"order":{json.dumps(order["order"])}}}'
    execute("UPDATE payment SET id = ?, body = ? WHERE number = ?", (name, body, number))
    headers = {"Location": f"/payments/{name}", "Set-Cookie": f"visit={uuid.uuid4()}"}
    return 201, {"Content-Type": "application/json", **headers}, body.encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    payments = None

    def log_message(self, *_):
        pass

    def lines(self, name):
        return self.headers.get_all(name, [])

    def milliseconds(self):
        asked = (self.lines("X-Delay-Ms") or [""])[0]
        return int(asked) if asked.isdecimal() and int(asked) <= WORK_MS_MAX else WORK_MS

    def write(self, status, headers, body):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.write(*self.read())

    def read(self):
        if self.path == "/healthz":
            return answer(200, {"ok": True})
        if self.path == "/ledger":
            return answer(200, {"count": self.payments.one("SELECT count(*) FROM payment")[0]})
        name = re.fullmatch(r"/payments/([^/?]+)", self.path)
        found = name and self.payments.one("SELECT body FROM payment WHERE id = ?", name[1])
        if not found:
            return answer(404, {"error": "not found"})
        return 200, {"Content-Type": "application/json"}, found[0].encode()

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            self.write(*answer(411 if not length.isdecimal() else 413, {"error": "length"}))
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # the request was cut: nothing may come of it
            self.close_connection = True
            return
        self.write(*self.handle_once(body))

    do_PUT = do_POST

    def handle_once(self, body):
        path, _, query = self.path.partition("?")
        if path not in ("/payments", "/refunds"):
            return answer(404, {"error": "not found"})
        key, why = read_key(self.lines("Idempotency-Key"))
        if why:
            return problem(400, why)
        tenant = (self.lines("X-Tenant-Id") or ["default"])[0]
        name = json.dumps([tenant, self.command, path, key])
        identity = json.dumps([self.command, path, query, meaning(body)])
        known = self.payments.reserve(name, hashlib.sha256(identity.encode()).hexdigest())
        return known or self.run(name, body)

    def run(self, name, body):
        try:
            order = parse(body)
            valid = isinstance(order["amount"], Digits) and type(order["order"]) is str
        except (ValueError, TypeError, KeyError):
            valid = False
        if not valid:
            return self.payments.complete(name, lambda _: answer(422, {"error": "invalid"}))
        time.sleep(self.milliseconds() / 1000)
        fail = (self.lines("X-Fail") or [""])[0]
        if re.fullmatch("5[0-9][0-9]", fail):
            self.payments.release(name)
            return answer(int(fail), {"error": "failed"})
        return self.payments.complete(name, lambda execute: pay(execute, order))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 511  # a hundred clients at once must not wait for a second SYN

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients may leave
            super().handle_error(request, client_address)


def end_with_stdin():
    """The supervisor holds the other end: a server never outlives it."""
    sys.stdin.buffer.read()
    os._exit(0)


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, default=0)
    flags.add_argument("--state", required=True)
    flags.add_argument("--retention-ms", type=float)
    flags.add_argument("--until-stdin-ends", action="store_true")
    chosen = flags.parse_args()
    Handler.payments = Payments(chosen.state, chosen.retention_ms)
    server = Server(("127.0.0.1", chosen.port), Handler)
    port = server.server_address[1]
    with open(f"{chosen.state}.pid.new", "w", encoding="ascii") as file:
        file.write(f"{os.getpid()} {port}\n")
    os.replace(f"{chosen.state}.pid.new", f"{chosen.state}.pid")
    print(f"listening on http://127.0.0.1:{port}", flush=True)
    if chosen.until_stdin_ends:
        threading.Thread(target=end_with_stdin, daemon=True).start()
    server.serve_forever()


main()
