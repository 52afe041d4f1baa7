"""Shared by the scripts in this folder: programs on free ports that end with the script, and facts
about the machine."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parent
BUILD = HOME / "build" / "bench"
ANSWER = '{"id":"pay_1","amount":4200,"currency":"eur","status":"succeeded"}'


def need_packages():
    subprocess.run([HOME / "scripts" / "need-packages", "packages.txt", "packages-bench.txt"],
                   cwd=HOME, check=True)


def build(*targets, symbols=False):
    """The release build of these, and where they lie; with symbols in a folder of its own."""
    quiet = {"cwd": HOME, "check": True, "stdout": subprocess.DEVNULL}
    folder = BUILD.with_name("bench-symbols") if symbols else BUILD
    subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DIDEM_BENCH=ON",
                    f"-DIDEM_SYMBOLS={'ON' if symbols else 'OFF'}"], **quiet)
    subprocess.run(["cmake", "--build", folder, "-j", str(os.cpu_count()), "--target", *targets],
                   **quiet)
    return folder / "bin"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port):
    for _ in range(400):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


class Bench:
    """A folder and programs, both gone at the end."""

    def __enter__(self):
        where = os.environ.get("IDEM_BENCH_DIR", "/var/tmp")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="idem-bench.", dir=where))
        self.running = []
        return self

    def __exit__(self, *_):
        for program in reversed(self.running):
            self.stop(program)
        shutil.rmtree(self.folder)

    def start(self, *command, log=None, **more):
        out = open(self.folder / log, "w") if log else subprocess.DEVNULL
        program = subprocess.Popen([str(part) for part in command], stderr=out,
                                   stdout=subprocess.DEVNULL, **more)
        self.running.append(program)
        return program

    def stop(self, program):
        if program in self.running:
            self.running.remove(program)
        program.terminate()
        try:
            program.wait(60)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def nginx(self, name, servers, before=""):
        folder = self.folder / name
        folder.mkdir()
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                             ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(f"""
worker_processes auto; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; {temporary}
{before}
{servers}
}}
""")
        return self.start("nginx", "-e", folder / "error.log", "-c", folder / "nginx.conf", "-p",
                          folder)

    def upstream(self):
        """An nginx that answers 201 by itself. Answers its port."""
        port = free_port()
        self.nginx("upstream", f"server {{ listen 127.0.0.1:{port}; location / {{ "
                               f"default_type application/json; return 201 '{ANSWER}'; }} }}")
        wait_for_port(port)
        return port

    def proxy(self, upstream):
        """An nginx that proxies to the upstream over connections that it keeps. Answers its port."""
        port = free_port()
        self.nginx("nginx", f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://api;"
                            ' proxy_http_version 1.1; proxy_set_header Connection ""; } }',
                   f"upstream api {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 1000000000; }}")
        wait_for_port(port)
        return port

    def idem(self, binary, upstream, name, *flags, store=None, before=()):
        """Answers the program and its port."""
        store = store or f"sqlite:{self.folder}/{name}.db"
        log = f"{name}.log"
        program = self.start(*before, binary, "gateway", "--listen", "127.0.0.1:0", "--upstream",
                             f"http://127.0.0.1:{upstream}", "--store", store, "--scope",
                             "header:X-Tenant-Id", "--trust-scope-header", *flags, log=log)
        for _ in range(6000):
            text = (self.folder / log).read_text()
            found = re.search(r"address=127\.0\.0\.1:(\d+) role=gateway", text)
            if found:
                return program, int(found.group(1))
            if program.poll() is not None:
                raise SystemExit(text)
            time.sleep(0.05)
        raise SystemExit("idem did not come up: " + text)


REPLAY_KEY = f"replay-{os.getpid()}-"


def wrk(port, kind, seconds, connections, scheme="http", threads=1):
    """Requests a second, p50 and p99 in milliseconds, and answers that were no 2xx or 3xx."""
    random = str(int.from_bytes(os.urandom(3), "big"))
    text = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency", "-s",
         HERE / "load" / "wrk.lua", f"{scheme}://127.0.0.1:{port}", "--", random],
        env=dict(os.environ, KIND=kind, REPLAY_KEY=REPLAY_KEY), check=True, capture_output=True,
        text=True).stdout

    def milliseconds(part):
        number, unit = re.search(part + r"%\s+([\d.]+)(us|ms|s)", text).groups()
        return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]

    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)),
            "p50": milliseconds("50"), "p99": milliseconds("99"),
            "requests": int(re.search(r"(\d+) requests in", text).group(1)),
            "refused": int(refused.group(1)) if refused else 0}


def resident_kib(program):
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def median_of(values):
    return statistics.median(values)


def first_line(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[0].strip()


def machine(folder):
    """Facts that a figure means nothing without."""
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", cpu)
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    filesystem = subprocess.run(["df", "--output=fstype", folder], capture_output=True, text=True,
                                check=True).stdout.split()[-1]
    return {"cores": os.cpu_count(), "cpu": found.group(1) if found else "?",
            "memory_gib": round(int(memory.group(1)) / 2**20), "kernel": os.uname().release,
            "store_on": filesystem, "date": time.strftime("%Y-%m-%d"),
            "idem": first_line("git", "-C", str(HOME), "rev-parse", "--short", "HEAD"),
            "nginx": first_line("nginx", "-v"), "haproxy": first_line("haproxy", "-v"),
            "sqlite": first_line("dpkg-query", "-W", "-f", "${Version}", "libsqlite3-0"),
            "wrk": first_line("dpkg-query", "-W", "-f", "${Version}", "wrk")}
