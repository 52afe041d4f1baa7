"""An API that counts how often each key ran, and a client that asks a gateway for many keys."""
import collections
import hashlib
import http.server
import json
import socket
import threading

PATIENCE = 30  # Seconds; a bound on hangs, which nothing waits for otherwise.


def answer_of(key):
    """What the API answers: of several sizes, so that records lie differently."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return json.dumps({"id": f"pay_{digest[:16]}", "note": digest * (int(digest[:2], 16) % 24)}).encode()


class Api:
    """/pay/ and /later/ are done, /lose/ is done without an answer, /hold/ is done and answered after let_go."""

    def __init__(self):
        self.ran = collections.Counter()
        self.lock = threading.Lock()
        self.held = threading.Semaphore(0)
        self.let_go = threading.Event()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                key = self.headers["Idempotency-Key"]
                with api.lock:
                    api.ran[key] += 1
                if self.path.startswith("/hold/"):
                    api.held.release()
                    api.let_go.wait(PATIENCE)
                if self.path.startswith("/lose/"):
                    self.close_connection = True
                    return
                body = answer_of(key)
                try:
                    self.send_response(201)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # The gateway was killed.

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, *unused):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Connections of killed gateways.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def runs(self):
        """How often each key ran since the last call."""
        with self.lock:
            ran, self.ran = self.ran, collections.Counter()
        return ran

    def close(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()


class Answer:
    """`said`: what must be the same again; of a problem its code, since its other members may differ."""

    def __init__(self, status, fields, body):
        self.status = status
        self.code = None
        if fields.get("content-type", "").startswith("application/problem+json"):
            self.code = json.loads(body).get("code")
        self.said = (status, self.code or body)

    def __repr__(self):
        return f"{self.status} {self.code or ''}".strip()


class _Connection:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""

    def send(self, requests):
        self.socket.sendall(b"".join(_bytes_of(path, key) for key, path in requests))

    def answer(self):
        """The next one, and whether more can come; EOFError."""
        while b"\r\n\r\n" not in self.read:
            self._more()
        head, self.read = self.read.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        length = int(fields.get("content-length", 0))
        while len(self.read) < length:
            self._more()
        body, self.read = self.read[:length], self.read[length:]
        return Answer(int(lines[0].split(" ")[1]), fields, body), fields.get("connection", "").lower() != "close"

    def _more(self):
        some = self.socket.recv(1 << 16)
        if not some:
            raise EOFError
        self.read += some

    def close(self):
        self.socket.close()


def _bytes_of(path, key):
    body = json.dumps({"order": key}).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: api\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


SENT_AT_ONCE = 32
CONNECTIONS = 4


def ask_all(address, paths):
    """The answer to each key of {key: path}; None where the gateway gave none."""
    answers = dict.fromkeys(paths)
    waiting = collections.deque(paths.items())
    lock = threading.Lock()

    def ask():
        connection, failures = None, 0
        while failures < 3:
            with lock:
                some = [waiting.popleft() for _ in range(min(SENT_AT_ONCE, len(waiting)))]
            if not some:
                break
            try:
                connection = connection or _Connection(address)
                connection.send(some)
                goes_on = True
                while some and goes_on:
                    answer, goes_on = connection.answer()
                    answers[some.pop(0)[0]] = answer
                    failures = 0
            except TimeoutError:
                break  # A gateway that hangs is not asked again.
            except (OSError, EOFError):
                goes_on, failures = False, failures + 1
            if not goes_on:
                if connection:
                    connection.close()
                connection = None
                with lock:
                    waiting.extendleft(reversed(some))
        if connection:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
