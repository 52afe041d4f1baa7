"""The alert rules in a real Prometheus that scrapes real gateways: what each alert is about really happens.

Every `for` and every window is shortened by one factor; numbers that are no windows stay. promtool plays what takes
longer than a test may (docs/alerts_test.yml).
"""
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import unittest
import urllib.parse

import yaml

from lab import BIN, ROOT, Api, Lab, Program, ask, free_port, need, until

FACTOR = 300
UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Each is played by promtool alone, for the reason behind it.
NOT_PROVOKED = {
    "IdemUnknownIsOld": "a record would have to be unknown for 15 minutes",
    "IdemEvidenceContradicts": "it takes a provider that contradicts itself: tests/live/background",
    "IdemEventOfAnotherProvider": "the same",
    "IdemRecordsDamaged": "it takes a damaged store",
    "IdemReaperFallsBehind": "a record would have to wait for two minutes",
    "IdemProviderIsDown": "a provider counts as down after many seconds of failures",
    "IdemProviderFails": "the same",
    "IdemDeadLetters": "messages are written by services with the library",
    "IdemOutboxIsOld": "the same",
    "IdemLogLinesDropped": "it takes a log that nobody reads: tests/live/admin/silent_log_test.cpp",
    "IdemVersionsDiffer": "it takes a second version",
}


def shortened(text):
    """Durations of Prometheus, each divided by the factor."""
    return re.sub(r"(?<![\w.])(\d+)([smhd])\b", lambda m: f"{int(m[1]) * UNITS[m[2]] // FACTOR}ms", text)


def rules():
    document = yaml.safe_load((ROOT / "docs/alerts.yml").read_text())
    for group in document["groups"]:
        for rule in group["rules"]:
            rule["expr"] = shortened(rule["expr"])
            if "for" in rule:
                rule["for"] = shortened(rule["for"])
    return document


def is_synchronised():
    state = ctypes.create_string_buffer(512)  # struct timex; `status` lies behind `modes` and four longs.
    ctypes.CDLL(None).adjtimex(state)
    return ctypes.c_int.from_buffer(state, 5 * ctypes.sizeof(ctypes.c_long)).value & 0x40 == 0  # STA_UNSYNC


class HeldThreads:
    """Threads of a child process, by their name, that do not run until the end of the block."""
    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, process, name):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        tasks = pathlib.Path(f"/proc/{process}/task")
        self.threads = [int(t.name) for t in tasks.iterdir() if (t / "comm").read_text().strip() == name]
        self.held = []

    def __enter__(self):
        for thread in self.threads:
            for request in (self.SEIZE, self.INTERRUPT):
                if self.libc.ptrace(request, thread, None, None) != 0:
                    self.__exit__()
                    message = f"this kernel lets no parent trace its child: {os.strerror(ctypes.get_errno())}"
                    if os.environ.get("IDEM_REQUIRE_LIVE") == "1":
                        raise AssertionError(message)
                    raise unittest.SkipTest(message)
            os.waitpid(thread, self.WALL)
            self.held.append(thread)
        return self

    def __exit__(self, *unused):
        for thread in self.held:
            self.libc.ptrace(self.DETACH, thread, None, None)
        self.held = []


class Load:
    """Calls something again and again, on a thread, until the end of the block."""

    def __init__(self, call, pause):
        self.call, self.pause, self.ends = call, pause, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.ends.wait(self.pause):
            try:
                self.call()
            except OSError:
                pass  # The gateway was ended meanwhile.

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.ends.set()
        self.thread.join()


class Alerts(Lab):
    def settings(self, name, upstream, **more):
        return {"listen": "127.0.0.1:0", "admin": f"127.0.0.1:{free_port()}", "threads": 1,
                "upstream": {"url": f"http://{upstream}", "timeout": "3s"}, "store": f"sqlite:{self.dir}/{name}.db",
                "scope": {"from": "header:X-Tenant-Id", "trust_header": True},
                "defaults": {"lease": "6s"}, **more}

    def on_a_small_disk(self):
        """A gateway whose store has 64 MiB, and whose clock a test can move."""
        here, clock = self.dir / "small", self.dir / "clock"
        here.mkdir()
        clock.write_bytes(bytes(16))
        settings = self.settings("small", "127.0.0.1:9", store=f"sqlite:{here}/idem.db")
        file = self.dir / "small.yaml"
        file.write_text(json.dumps(settings))
        inside = 'mount -t tmpfs -o size=64m none "$1" && exec "$2" gateway --config "$3"'
        program = ["unshare", "-rm", "sh", "-c", inside, "sh", str(here), str(BIN / "idem-crash"), str(file)]
        allowed = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(here)], capture_output=True)
        if allowed.returncode != 0:
            if os.environ.get("IDEM_REQUIRE_LIVE") == "1":
                raise AssertionError(f"no file system of one's own: {allowed.stderr}")
            raise unittest.SkipTest("no file system of one's own can be mounted here")
        gateway = Program(self, program, {"IDEM_CLOCK_FILE": str(clock)})
        gateway.admin = gateway.find(r"listening address=(\S+) role=admin")
        gateway.find(r"(disk_low) of=store")
        # Ten seconds: the wall clock alone, as an operator sets it.
        with open(clock, "r+b") as numbers:
            numbers.write((10_000).to_bytes(8, sys.byteorder))
        return gateway

    def on_redis(self, upstream):
        """A gateway whose store is a server, with that server's program."""
        port = free_port()
        redis = Program(self, [need("redis-server"), "--port", port, "--bind", "127.0.0.1", "--dir", self.dir,
                               "--appendonly", "yes", "--appendfsync", "always", "--save", ""])
        redis.find(r"(Ready to accept connections)")
        gateway = self.gateway("on-redis", self.settings("on-redis", upstream, store=f"redis://127.0.0.1:{port}/"))
        return gateway, redis

    def start_prometheus(self, gateways):
        (self.dir / "rules.yml").write_text(json.dumps(rules()))
        config = self.dir / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
            "rule_files": [str(self.dir / "rules.yml")],
            "scrape_configs": [{"job_name": "idem", "static_configs": [{"targets": [g.admin for g in gateways]}]}]}))
        program = Program(self, [need("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self.dir}/tsdb",
                                 "--web.listen-address=127.0.0.1:0", "--log.level=info"])
        self.prometheus = program.find(r'msg="Listening on" address=(\S+)')

    def query(self, text):
        document = json.loads(ask(self.prometheus, "GET", "/api/v1/query?" + urllib.parse.urlencode({"query": text})).body)
        self.assertEqual(document["status"], "success", document)
        return document["data"]["result"]

    def fired(self, alert, **labels):
        """Whether it has fired at any time: some end by themselves."""
        wanted = "".join(f',{name}="{value}"' for name, value in labels.items())
        return self.query(f'max_over_time(ALERTS{{alertname="{alert}",alertstate="firing"{wanted}}}[10m])')

    def until_fired(self, alert, **labels):
        until(f"{alert} {labels}", lambda: self.fired(alert, **labels))
        self.provoked.add(alert)

    def send(self, gateway, tenant, key, body="{}", path="/pay"):
        return ask(gateway.address, "POST", path, {
            "Idempotency-Key": key, "X-Tenant-Id": tenant, "Content-Type": "application/json"}, body)

    def test_V32_each_fires_in_prometheus_when_it_happens(self):
        need("prometheus")
        self.provoked = set()
        api = Api(self)
        small = self.on_a_small_disk()
        busy = self.gateway("busy", self.settings("busy", api.address))
        closed = f"127.0.0.1:{free_port()}"
        cut_off = self.gateway("cut-off", self.settings(
            "cut-off", closed, authorize={"url": f"http://{closed}/may-i"}))
        idle = self.gateway("idle", self.settings("idle", api.address))
        held = Api(self)
        on_redis, redis = self.on_redis(held.address)
        gateways = [small, busy, cut_off, idle, on_redis]
        self.start_prometheus(gateways)
        until("the first scrapes", lambda: len(self.query("idem_build_info")) == len(gateways))

        def duplicate(tenant):
            self.send(busy, tenant, "k")
            self.send(busy, tenant, "k")
        with Load(lambda: duplicate("acme"), 0.5):
            def into_the_void():
                self.send(cut_off, "acme", "k")
                ask(cut_off.address, "GET", "/unkeyed")
            with Load(into_the_void, 0.1):
                for alert in ("IdemUpstreamIsDown", "IdemUpstreamFails", "IdemAuthorizerIsDown", "IdemRouteFails"):
                    self.until_fired(alert)
            # An attempt under way whose end the store does not take.
            client = threading.Thread(target=lambda: self.give_up(on_redis), daemon=True)
            client.start()
            held.wait_held()
            redis.kill()
            held.let_go.set()
            with Load(lambda: self.send(on_redis, "acme", "k"), 0.05):
                for alert in ("IdemStoreErrors", "IdemStoreIsDown", "IdemOutcomesUnsettled"):
                    self.until_fired(alert, instance=on_redis.admin)
            self.until_fired("IdemDiskIsNearlyFull", instance=small.admin, of="store")
            with HeldThreads(idle.process.pid, "idem-workers"):
                self.until_fired("IdemWorkersAreStuck", instance=idle.admin, worker="lifecycle")
            cut_off.kill()
            self.until_fired("IdemIsGone", instance=cut_off.admin)
            self.until_fired("IdemClockIsOff", instance=small.admin)
            if is_synchronised():
                self.assertFalse(self.fired("IdemClockIsNotSynchronised"))
                self.provoked.add("IdemClockIsNotSynchronised")
            else:
                self.until_fired("IdemClockIsNotSynchronised", instance=idle.admin)
            history = shortened("count_over_time(sum(rate(idem_duplicates_total[15m]))[1d:15m] offset 15m) >= 4")
            until("an hour of history", lambda: self.query(history))
            self.assertFalse(self.fired("IdemDuplicatesRise"))

        def misuse_and_duplicate():
            duplicate("acme")
            self.send(busy, "acme", "k", body='{"other": 1}')
        with Load(misuse_and_duplicate, 0.005):
            self.until_fired("IdemDuplicatesRise", job="idem")
            self.until_fired("IdemKeyMisuseBurst", instance=busy.admin)
        # An attempt under way, and the loop that would settle it stands still.
        client = threading.Thread(target=lambda: self.give_up(busy), daemon=True)
        client.start()
        api.wait_held()
        with HeldThreads(busy.process.pid, "idem-loop"):
            self.until_fired("IdemLeasesExpire", instance=busy.admin)
            self.until_fired("IdemLoopStalled", instance=busy.admin)
        for program in (small, busy, idle, on_redis):
            program.process.send_signal(signal.SIGKILL)
        self.until_fired("IdemIsAbsent")
        names = {rule["alert"] for group in rules()["groups"] for rule in group["rules"]}
        self.assertEqual(self.provoked, names - NOT_PROVOKED.keys(), "each alert is provoked, or a reason is named")
        self.assertLessEqual(NOT_PROVOKED.keys(), names)

    def give_up(self, gateway):
        try:
            self.send(gateway, "acme", "held", path="/hold/it")
        except OSError:
            pass  # It is killed meanwhile.


if __name__ == "__main__":
    unittest.main()
