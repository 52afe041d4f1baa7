"""The Grafana dashboard and the alert rules: every query runs in a real Prometheus that scrapes a real gateway."""
import http.server
import json
import re
import threading
import unittest
import urllib.parse

import yaml

from lab import DEPLOY, ROOT, Api, Lab, Program, ask, need, until

METRIC = re.compile(r"\bidem_[a-z_]+")
# Queries that give no sample here, each with its reason.
WITHOUT_SAMPLE = {
    "idem_dead_letters": "the gateway's store has no outbox: messages are written by services with the library",
    "idem_outbox_messages": "the same",
    "idem_outbox_oldest_age_seconds": "the same",
    "idem_upstream_connect_failures_total": "shown only above 0, and the API is reached",
    "idem_provider_failures_total": "shown only above 0, and the provider answers",
}


def dashboard():
    return json.loads((DEPLOY / "grafana/idem.json").read_text())


def targets(panels):
    for panel in panels:
        yield from ((panel, target) for target in panel.get("targets", []))
        yield from targets(panel.get("panels", []))


def collector(case):
    """host:port of a collector of spans that accepts all of them."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *unused):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    case.addCleanup(server.server_close)
    case.addCleanup(server.shutdown)
    return "127.0.0.1:%d" % server.server_address[1]


class Rules(unittest.TestCase):
    def test_each_alert_links_to_its_own_section_of_the_runbook(self):
        rules = [r for g in yaml.safe_load((ROOT / "docs/alerts.yml").read_text())["groups"] for r in g["rules"]]
        self.assertGreater(len(rules), 15)
        page = (ROOT / "docs/operations.md").read_text()
        sections = {h.lower(): h for h in re.findall(r"^### (Idem\w+)$", page, re.M)}
        linked = set()
        for rule in rules:
            link = rule["annotations"]["runbook_url"]
            with self.subTest(rule["alert"]):
                place, anchor = link.split("#")
                # One base, so that one sed replaces it; the file lies there in the Debian package.
                self.assertEqual(place, "file:///usr/share/doc/idem/docs/operations.md")
                self.assertEqual(sections.get(anchor), rule["alert"])
                linked.add(rule["alert"])
        self.assertEqual(linked, set(sections.values()), "a section without an alert, or the reverse")


class Dashboard(Lab):
    def test_is_what_grafana_reads(self):
        board = dashboard()
        self.assertGreaterEqual(board["schemaVersion"], 36)
        self.assertIsNone(board["id"])
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            self.assertFalse(taken & cells, f"{panel['title']} lies over another panel")
            taken |= cells
            if panel["type"] == "row":
                continue
            self.assertTrue(panel["description"], panel["title"])
            self.assertEqual(panel["datasource"]["uid"], "${datasource}", panel["title"])
        rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
        self.assertEqual(rows[0], "Money at risk")
        self.assertEqual([v["name"] for v in board["templating"]["list"]], ["datasource", "job", "instance"])
        page = (ROOT / "docs/operations.md").read_text()
        for alert in re.findall(r"\bIdem[A-Z]\w+", json.dumps(board)):
            self.assertIn(f"\n### {alert}\n", page)

    def test_every_query_runs_in_prometheus_and_finds_samples(self):
        prometheus_program = need("prometheus")
        api = Api(self)
        gateway = self.gateway("gateway", {
            "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "upstream": {"url": f"http://{api.address}"},
            "store": f"sqlite:{self.dir}/idem.db", "scope": {"from": "static:payments"},
            "authorize": {"url": f"http://{api.address}/may-i"},
            "traces": {"url": f"http://{collector(self)}", "one_in": 1},
            "providers": [{
                "name": "bank", "url": f"http://{api.address}/charges?operation={{operation}}",
                "found": ["2xx /found=true"], "not_there": ["404"], "retry_first": "1s",
                "replay": {"found_status": 201}}],
            "routes": [{"name": "pay", "match": {"methods": ["POST"], "path": "/{rest...}"}, "reconcile": "bank"}]})

        def pay(key, path="/pay", body="{}"):
            return ask(gateway.address, "POST", path,
                       {"Idempotency-Key": key, "Content-Type": "application/json"}, body)
        config = self.dir / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "500ms", "evaluation_interval": "1s"},
            "rule_files": [str(ROOT / "docs/alerts.yml")],
            "scrape_configs": [{"job_name": "idem", "static_configs": [{"targets": [gateway.admin]}]}]}))
        prometheus = Program(self, [
            prometheus_program, f"--config.file={config}", f"--storage.tsdb.path={self.dir}/tsdb",
            "--web.listen-address=127.0.0.1:0", "--log.level=info"])
        address = prometheus.find(r'msg="Listening on" address=(\S+)')

        def get(path, **parameters):
            answer = ask(address, "GET", path + "?" + urllib.parse.urlencode(parameters))
            document = json.loads(answer.body)
            self.assertEqual(document["status"], "success", (path, parameters, document))
            return document["data"]

        def value(query):
            result = get("/api/v1/query", query=query)["result"]
            return float(result[0]["value"][1]) if result else None
        until("the first scrape", lambda: value('idem_reserve_total{outcome="created"}') == 0)
        self.assertEqual([pay("k").status, pay("k").status, pay("k", body='{"other": 1}').status], [201, 201, 422])
        self.assertIn(pay("lost", "/lose/it").status, (502, 504))
        until("the provider's answer", lambda: value('idem_reconcile_total{result="resolved"}') == 1)
        until("the spans of these requests", lambda: value('idem_spans_total{result="sent"}'))
        # What a rate needs: the counters as they were, and as they are.
        until("the last counters", lambda: value('rate(idem_reserve_total{outcome="replay"}[1m])'))

        found = get("/api/v1/query", query="count by (job, instance) (idem_build_info)")["result"]
        self.assertEqual([series["metric"]["instance"] for series in found], [gateway.admin])
        variables = {"$job": ".+", "$instance": ".+", "$__rate_interval": "1m", "$__range": "1m"}
        board, empty, count = dashboard(), set(), 0
        for variable in board["templating"]["list"][1:]:
            inner = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            series = get("/api/v1/series", **{"match[]": inner[1].replace("$job", ".+")})
            self.assertTrue([s for s in series if inner[2] in s], variable["definition"])
        for panel, target in targets(board["panels"]):
            query = target["expr"]
            for name, text in variables.items():
                query = query.replace(name, text)
            self.assertNotIn("$", query)
            count += 1
            with self.subTest(panel["title"], query=query):
                now = float(get("/api/v1/query", query="time()")["result"][1])
                ranged = get("/api/v1/query_range", query=query, start=now - 30, end=now, step=1)["result"]
                instant = get("/api/v1/query", query=query)["result"]
                samples = [s for series in ranged for s in series["values"] if s[1] != "NaN"]
                if samples and instant:
                    continue
                names = set(METRIC.findall(query))
                self.assertTrue(names & WITHOUT_SAMPLE.keys(), "no sample, and no reason is named")
                empty |= names
        self.assertGreater(count, 40)
        self.assertEqual(empty, set(WITHOUT_SAMPLE), "a reason for a query that has samples")

        rules = get("/api/v1/rules")["groups"][0]["rules"]
        until("the rules' first evaluation", lambda: all(
            rule["health"] == "ok" for rule in get("/api/v1/rules")["groups"][0]["rules"]))
        # A name that no gateway exports finds nothing, for ever: the exposition has to declare each one.
        exposition = ask(gateway.admin, "GET", "/metrics").body.decode()
        declared = set()
        for name, kind in re.findall(r"^# TYPE (idem_\w+) (\w+)$", exposition, re.M):
            declared |= {name + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
        used = {name for _, t in targets(board["panels"]) for name in METRIC.findall(t["expr"])}
        used |= {name for rule in rules for name in METRIC.findall(rule["query"])}
        self.assertEqual(used - declared, set())
        self.assertEqual({name.removesuffix("_count") for name in declared if not name.endswith(("_bucket", "_sum"))},
                         {re.sub("_(bucket|sum|count)$", "", name) for name in used}, "a metric that no one looks at")


if __name__ == "__main__":
    unittest.main()
