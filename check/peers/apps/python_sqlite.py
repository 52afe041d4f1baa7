"""A pattern in Python without a framework: the key is a row with a unique constraint, inserted in the transaction of the
work itself, so that both are there or neither. SQLite in the file DATABASE_FILE."""
import hashlib, http.server, json, os, sqlite3, time

def connect():
    db = sqlite3.connect(os.environ["DATABASE_FILE"], timeout=30, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    return db

with connect() as db:
    db.execute("CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, amount TEXT, purchase TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS keys (tenant, path, key, digest, answer, PRIMARY KEY (tenant, path, key))")

class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, json.dumps({"count": connect().execute("SELECT count(*) FROM payments").fetchone()[0]}))

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key")
        if not key:
            return self.answer(400, '{"error": "Idempotency-Key is missing"}')
        try:
            order = json.loads(raw)
            amount, name = order["amount"], order["order"]
        except (ValueError, KeyError):
            return self.answer(422, '{"error": "invalid"}')
        row = (self.headers.get("X-Tenant-Id", ""), self.path, key, hashlib.sha256(raw).hexdigest())
        db = connect()
        try:
            self.answer(*self.pay_once(db, row, amount, name))
        finally:
            db.close()  # What is not committed is rolled back.

    def pay_once(self, db, row, amount, name):
        db.execute("BEGIN IMMEDIATE")
        if db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, NULL)", row).rowcount == 0:
            where = "SELECT digest, answer FROM keys WHERE tenant = ? AND path = ? AND key = ?"
            digest, answer = db.execute(where, row[:3]).fetchone()
            return (201, answer) if digest == row[3] else (422, '{"error": "the key belongs to another request"}')
        if "X-Fail" in self.headers:
            return int(self.headers["X-Fail"]), '{"error": "failed"}'
        time.sleep(int(self.headers.get("X-Delay-Ms", 20)) / 1000)
        number = db.execute("INSERT INTO payments (amount, purchase) VALUES (?, ?)", (str(amount), name)).lastrowid
        answer = json.dumps({"id": f"pay_{number}", "amount": amount, "order": name})
        db.execute("UPDATE keys SET answer = ? WHERE tenant = ? AND path = ? AND key = ?", (answer, *row[:3]))
        db.execute("COMMIT")
        return 201, answer

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status == 201:
            self.send_header("Location", "/payments/" + json.loads(body)["id"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    log_message = lambda *_: None


http.server.ThreadingHTTPServer.request_queue_size = 256
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 0))), Api)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
