"""What the tests of deploy/ share: a real gateway, an API that counts its effects, programs that end with the test.

IDEM_BIN_DIR names the folder of the built programs. A program that is missing skips a test; with IDEM_REQUIRE_LIVE=1 it
fails. Nothing here sleeps to be in time: until() asks again up to a deadline, and each pause only spares the processor.
"""
import ctypes
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BIN = pathlib.Path(os.environ.get("IDEM_BIN_DIR", ROOT / "build/release/bin"))
PATIENCE = 60  # Seconds; long, because the machine may be busy, and no test waits for them to pass.


def need(program):
    """The path of an installed program."""
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        if os.environ.get("IDEM_REQUIRE_LIVE") == "1":
            raise AssertionError(f"{program} is missing")
        raise unittest.SkipTest(f"{program} is missing")
    return found


def run_client(script, package, text):
    """A script of tests/clients, with the text on its stdin; the package is one that it needs."""
    modules = ROOT / "build/clients/node_modules"
    if not (modules / package).is_dir():
        message = f"{package} is missing: scripts/need-node-clients"
        raise AssertionError(message) if os.environ.get("IDEM_REQUIRE_LIVE") == "1" else unittest.SkipTest(message)
    return subprocess.run([need("node"), ROOT / "tests/clients" / script], input=text, capture_output=True, text=True,
                          env={**os.environ, "NODE_PATH": str(modules)})


def until(what, ask):
    """The first value of ask() that counts as true; an OSError or ValueError of ask() counts as no answer yet. A
    certificate that was refused does not: waiting makes none good."""
    deadline = time.monotonic() + PATIENCE
    last = None
    while time.monotonic() < deadline:
        try:
            last = ask()
            if last:
                return last
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, ValueError, http.client.HTTPException) as error:
            last = error
        time.sleep(0.02)
    raise AssertionError(f"{what}: not in {PATIENCE} s; last: {last}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Program:
    """A program that runs until the test ends; what it prints goes to a file."""

    def __init__(self, case, arguments, environment=None):
        self.log = case.dir / f"{pathlib.Path(arguments[0]).name}-{len(list(case.dir.iterdir()))}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(a) for a in arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})}, preexec_fn=_die_with_parent)
        case.addCleanup(self.end)

    def text(self):
        return self.log.read_text(errors="replace")

    def runs(self):
        return self.process.poll() is None

    def find(self, pattern):
        """The first group of the pattern, once it was printed."""
        def look():
            found = re.search(pattern, self.text())
            if not found and not self.runs():
                raise AssertionError(f"{self.process.args[0]} ended: {self.text()}")
            return found
        return until(f"{pattern} of {self.process.args[0]}", look).group(1)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.runs():
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def get(self, name):
        return self.fields.get(name)


def ask(address, method, path, fields=None, body=None, tls=None):
    """One request over a connection of its own; it is never sent again."""
    host, port = address.rsplit(":", 1)
    host = host.strip("[]")  # An IPv6 address.
    if tls is None:
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    else:
        connection = http.client.HTTPSConnection("localhost", int(port), timeout=PATIENCE, context=tls)
    try:
        connection.request(method, path, body=body, headers=fields or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


class Api:
    """An API that counts the effects of each path, and notes what it was sent.

    /hold/... answers when release() was called; /lose/... has its effect and closes without an answer. GET answers
    200 without an effect: to an authoriser's question, too, and `{"found": true}` to a reconciler's.
    """

    def __init__(self, case):
        self.requests = []
        self.held = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.lock = threading.Lock()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with api.lock:
                    api.requests.append((self.command, self.path, dict(self.headers.items()), body))
                    number = len(api.requests)
                if self.path.startswith("/hold/"):
                    api.held.release()
                    api.let_go.wait(PATIENCE)
                if self.path.startswith("/lose/"):
                    self.close_connection = True
                    return
                self.answer(201, json.dumps({"id": f"pay_{number}"}).encode())

            do_PUT = do_POST
            do_DELETE = do_POST

            def do_GET(self):
                self.answer(200, b'{"found": true}')

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # The gateway was killed.

            def log_message(self, *unused):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Connections of killed gateways.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

        def close():
            self.let_go.set()
            self.server.shutdown()
            self.server.server_close()
        case.addCleanup(close)

    def effects(self, path):
        with self.lock:
            return sum(1 for _, at, _, _ in self.requests if at == path)

    def wait_held(self):
        if not self.held.acquire(timeout=PATIENCE):
            raise AssertionError("no request reached the API")


class Lab(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="idem-deploy-"))
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def gateway(self, name, settings, environment=None):
        """A gateway on free ports, with its addresses `address` and `admin`."""
        file = self.dir / f"{name}.yaml"
        file.write_text(json.dumps(settings))  # JSON is YAML.
        program = Program(self, [BIN / "idem", "gateway", "--config", file], environment)
        program.admin = program.find(r"listening address=(\S+) role=admin")
        program.address = program.find(r"listening address=(\S+) role=gateway")
        return program


def certificate(folder, name, subject, signed_by=None, server=False):
    """PEM files NAME.crt and NAME.key; without an authority it is one."""
    key, out = folder / f"{name}.key", folder / f"{name}.crt"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-days", "2", "-subj", subject, "-keyout", key, "-out", out]
    if signed_by:
        command += ["-CA", folder / f"{signed_by}.crt", "-CAkey", folder / f"{signed_by}.key",
                    "-addext", "basicConstraints=critical,CA:FALSE"]
    else:
        # A client that checks by the letter of RFC 5280, as Python does from 3.13 on, takes no authority without it.
        command += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    if server:
        command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return out, key


def client_tls(folder, authority, name=None):
    context = ssl.create_default_context(cafile=str(folder / f"{authority}.crt"))
    # The default from Python 3.13 on; asked for here so that each version checks the same.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if name:
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context
