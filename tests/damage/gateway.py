"""Gateways and commands of the built `idem` over a store in a folder."""
import ctypes
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from api import PATIENCE

# By the name of a set of files: the URL's scheme, and the shards.
STORES = {"sqlite": ("sqlite", 0), "embedded": ("embedded", 1), "shards": ("embedded", 3)}


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Place:
    """A folder with the settings of a gateway, and below it a folder with the files of its store alone."""

    def __init__(self, folder, store, program):
        self.folder, self.store, self.program = pathlib.Path(folder), store, program
        self.files = self.folder / "files"
        self.path = self.files / "idem.db"

    def configure(self, upstream):
        scheme, shards = STORES[self.store]
        (self.folder / "idem.yaml").write_text(json.dumps({
            "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "upstream": {"url": upstream}, "threads": 1,
            "store": f"{scheme}:{self.path}", "scope": {"from": "static:damage"},
            "admin_token_file": str(self.folder / "token"),
            **({"store_shards": shards} if shards else {}),
            "routes": [{"name": "later", "match": {"methods": ["POST"], "path": "/later/{rest...}"}, "mode": "async"},
                       {"name": "now", "match": {"methods": ["POST"], "path": "/{rest...}"}}]}))

    def url(self):
        return f"{STORES[self.store][0]}:{self.path}"

    def settings(self):
        return ["--config", str(self.folder / "idem.yaml")]

    def run(self, *words):
        """Exit code and output of a command; None: it did not end."""
        try:
            ran = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=PATIENCE,
                                 errors="replace", preexec_fn=_die_with_parent)
        except subprocess.TimeoutExpired:
            return None, "no end"
        return ran.returncode, ran.stdout + ran.stderr


class Gateway:
    """Started, and then either serving (`address`) or ended (`code`)."""

    def __init__(self, place):
        self.place = place
        self.log = place.folder / "gateway.log"
        self.address = self.admin = None
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([place.program, "gateway", *place.settings()], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
        deadline = time.monotonic() + PATIENCE
        while not (self.address and self.admin) and self.code is None and time.monotonic() < deadline:
            text = self.text()
            self.address = _address(text, "gateway")
            self.admin = _address(text, "admin")
            time.sleep(0.003)  # Only spares the processor.

    @property
    def code(self):
        return self.process.poll()

    def text(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """The exit code; None: it did not end."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def operate(self, method, path, body=None):
        """The answer of the admin listener to an operator."""
        token = (self.place.folder / "token").read_text().strip()
        host, port = self.admin.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)


def _address(text, role):
    found = re.search(rf"listening address=(\S+) role={role}", text)
    return found.group(1) if found else None


def default_program():
    return os.environ.get("IDEM", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/idem"))
