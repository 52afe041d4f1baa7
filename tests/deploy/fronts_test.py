"""The sample fronts as they lie in deploy/: nginx and HAProxy of Debian before real gateways, Envoy's by its rules.

Only addresses and the paths of files are replaced. Each front has its own place for them; a replacement that finds
nothing fails.
"""
import json
import ssl
import subprocess
import unittest

import yaml

from lab import DEPLOY, Api, Lab, Program, ask, certificate, client_tls, free_port, need, run_client, until

KEY = "a-long-random-key-of-acme"
TENANTS = {"scope": {"from": "header:X-Tenant-Id", "trusted_proxies": ["127.0.0.1/32"]}}


def replace(text, old, new):
    if old not in text:
        raise AssertionError(f"the sample has no {old!r}")
    return text.replace(old, new)


class Front:
    """What both fronts have to do. `start(gateways)` gives the address of a running front."""

    def setUp(self):
        super().setUp()
        self.refused = None  # Why a front's certificate was not taken.
        self.api = Api(self)
        certificate(self.dir, "servers", "/CN=servers")
        certificate(self.dir, "server", "/CN=localhost", "servers", server=True)
        certificate(self.dir, "clients", "/CN=clients")
        certificate(self.dir, "acme", "/O=Acme/CN=acme", "clients")
        certificate(self.dir, "strangers", "/CN=strangers")
        certificate(self.dir, "stranger", "/O=Acme/CN=acme", "strangers")
        self.tls = client_tls(self.dir, "servers")

    def gateways(self, *names):
        """Each with a store of its own: a request that reaches two of them has two effects."""
        return [self.gateway(name, {
            "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "upstream": {"url": f"http://{self.api.address}"},
            "store": f"sqlite:{self.dir}/{name}.db", **TENANTS}) for name in names]

    def serves(self, front, address):
        """Whether this front answers there. It does not if another program took the port first: then it has ended, or
        is about to, and the other one may show a certificate that is not ours."""
        try:
            until("the front", lambda: not front.runs() or ask(address, "GET", "/", tls=self.tls))
        except ssl.SSLCertVerificationError as error:
            front.end()
            self.refused = error
            return False
        return front.runs()

    def pay(self, front, path, key="k", method="POST", fields=None, tls=None):
        given = {"X-Api-Key": KEY, "Content-Type": "application/json"}
        given |= {"Idempotency-Key": key} if key else {}
        given |= fields or {}
        return ask(front, method, path, {n: v for n, v in given.items() if v is not None}, '{"amount": 1}',
                   tls or self.tls)

    def test_a_retry_gets_the_stored_answer(self):
        front = self.start(self.gateways("one"))
        first, second = self.pay(front, "/pay"), self.pay(front, "/pay")
        self.assertEqual((first.status, second.status), (201, 201), second.body)
        self.assertEqual(first.body, second.body)
        self.assertIsNone(first.get("Idempotent-Replayed"))
        self.assertEqual(second.get("Idempotent-Replayed"), "true")
        self.assertEqual(self.api.effects("/pay"), 1)
        fields = {name.lower(): value for name, value in self.api.requests[0][2].items()}
        self.assertEqual(fields["x-forwarded-proto"], "https")
        self.assertEqual(fields["x-forwarded-for"], "127.0.0.1")

    def test_only_the_front_says_who_calls(self):
        front = self.start(self.gateways("one"))

        def tenant_of(path, **given):
            answer = self.pay(front, path, **given)
            if answer.status == 401:
                self.assertIn(b"scope_missing", answer.body)
                self.assertEqual(self.api.effects(path), 0)
                return None
            self.assertEqual(answer.status, 201, answer.body)
            sent = {n.lower(): v for n, v in self.api.requests[-1][2].items()}
            self.assertNotIn("x-api-key", sent)
            return sent["x-tenant-id"]
        self.assertEqual(tenant_of("/key"), "acme")
        for name in ("X-Tenant-Id", "x-tenant-id", "X_Tenant_Id"):
            self.assertEqual(tenant_of(f"/forged-{name}", fields={name: "victim"}), "acme")
            self.assertIsNone(tenant_of(f"/without-{name}", fields={name: "victim", "X-Api-Key": None}))
        self.assertIsNone(tenant_of("/wrong", fields={"X-Api-Key": KEY + "x"}))
        self.assertIsNone(tenant_of("/empty", fields={"X-Api-Key": ""}))
        with_certificate = client_tls(self.dir, "servers", "acme")
        self.assertEqual(tenant_of("/certificate", fields={"X-Api-Key": None}, tls=with_certificate),
                         "acme-by-certificate")
        # The same name by another authority: nobody.
        try:
            answer = self.pay(front, "/stranger", fields={"X-Api-Key": None},
                              tls=client_tls(self.dir, "servers", "stranger"))
            self.assertIn(answer.status, (400, 401))
        except OSError:
            pass  # The handshake was refused.
        self.assertEqual(self.api.effects("/stranger"), 0)

    def kill_in_the_middle(self, path, alter, **given):
        """Kills the gateway that holds the request; the front may try the other one. Gives answer and effects."""
        import concurrent.futures
        both = self.gateways("one" + path[-1], "two" + path[-1])
        front = self.start(both, alter)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asking = pool.submit(self.pay, front, path, **given)
            self.api.wait_held()
            took, = [gateway for gateway in both if self.runs_one(gateway)]
            took.kill()
            if alter:
                self.api.wait_held()  # The second one, which the altered front has sent.
            self.api.let_go.set()
            answer = asking.result()
        return answer, self.api.effects(path)

    @staticmethod
    def runs_one(gateway):
        return b'idem_keys{state="in_progress"} 1' in ask(gateway.admin, "GET", "/metrics").body

    def test_a_gateway_that_dies_in_the_middle_is_not_retried(self):
        for method, path in (("POST", "/hold/1"), ("PUT", "/hold/2")):
            with self.subTest(method):
                self.api.let_go.clear()
                answer, effects = self.kill_in_the_middle(path, None, method=method)
                self.assertEqual(effects, 1)
                self.assertIn(answer.status, (502, 503), answer.body)

    def test_the_test_would_notice_a_front_that_retries(self):
        answer, effects = self.kill_in_the_middle("/hold/3", self.that_retries)
        self.assertEqual((answer.status, effects), (201, 2), "the control proves nothing")


class Nginx(Front, Lab):
    @staticmethod
    def that_retries(text):
        return replace(text, "proxy_next_upstream off;", "proxy_next_upstream error timeout non_idempotent;")

    def start(self, gateways, alter=None):
        program = need("nginx")
        text = (DEPLOY / "nginx/idem.conf").read_text()
        servers = " ".join(f"server {g.address} max_fails=0;" for g in gateways)
        text = replace(text, "server 127.0.0.1:8080 max_fails=0;", servers)
        text = alter(text) if alter else text
        files = self.dir / "nginx"
        files.mkdir(exist_ok=True)
        for name in ("server.crt", "server.key", "clients.crt"):
            (files / name).write_bytes((self.dir / name).read_bytes())
        (files / "api-keys.map").write_text(f'"{KEY}" acme;\n')
        (files / "certificates.map").write_text('"SUCCESS:CN=acme,O=Acme" acme-by-certificate;\n')
        text = replace(text, "/etc/nginx/idem/", f"{files}/")
        for _ in range(5):  # Another program may take the port first.
            port = free_port()
            (files / "site.conf").write_text(replace(text, "listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"))
            temporary = "".join(f"{kind}_temp_path {files}/{kind};" for kind in
                                ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            (files / "nginx.conf").write_text(
                f"daemon off; master_process off; pid {files}/pid; error_log stderr;\n"
                f"events {{}}\nhttp {{ access_log off; {temporary} include {files}/site.conf; }}\n")
            checked = subprocess.run([program, "-t", "-c", files / "nginx.conf"], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertNotIn("[warn]", checked.stderr)
            front = Program(self, [program, "-c", files / "nginx.conf"])
            address = f"127.0.0.1:{port}"
            if self.serves(front, address):
                return address
        raise AssertionError(f"nginx does not serve; last: {self.refused}\n{front.text()}")


class Haproxy(Front, Lab):
    @staticmethod
    def that_retries(text):
        text = replace(text, "retries 0", "retries 3")
        text = replace(text, "retry-on none", "retry-on all-retryable-errors")
        return replace(text, "no option redispatch", "option redispatch 1")

    def start(self, gateways, alter=None):
        program = need("haproxy")
        text = (DEPLOY / "haproxy/idem.cfg").read_text()
        servers = "\n    ".join(f"server gateway{i} {g.address} port {g.admin.rsplit(':', 1)[1]}"
                                for i, g in enumerate(gateways))
        text = replace(text, "server gateway1 127.0.0.1:8080", servers)
        text = alter(text) if alter else text
        files = self.dir / "haproxy"
        files.mkdir(exist_ok=True)
        parts = [(self.dir / name).read_bytes() for name in ("server.crt", "server.key")]
        (files / "server.pem").write_bytes(b"".join(parts))
        (files / "clients.crt").write_bytes((self.dir / "clients.crt").read_bytes())
        (files / "api-keys.map").write_text(f"{KEY} acme\n")
        (files / "certificates.map").write_text("/O=Acme/CN=acme acme-by-certificate\n")
        text = replace(text, "/etc/haproxy/idem/", f"{files}/")
        for _ in range(5):
            port = free_port()
            (files / "haproxy.cfg").write_text(replace(text, "bind :443 ssl", f"bind 127.0.0.1:{port} ssl"))
            checked = subprocess.run([program, "-c", "-f", files / "haproxy.cfg"], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertNotIn("WARNING", checked.stderr)
            front = Program(self, [program, "-db", "-f", files / "haproxy.cfg"])
            address = f"127.0.0.1:{port}"
            if self.serves(front, address):
                return address
        raise AssertionError(f"HAProxy does not serve; last: {self.refused}\n{front.text()}")

    def test_a_gateway_that_is_not_ready_gets_no_request(self):
        gateway, = self.gateways("one")
        front = self.start([gateway])
        self.assertEqual(self.pay(front, "/pay").status, 201)
        gateway.kill()
        until("HAProxy's check", lambda: self.pay(front, "/pay").status == 503)
        self.assertEqual(self.api.effects("/pay"), 1)


class Envoy(unittest.TestCase):
    """No program to run it here: its file is compared with the definitions of Envoy's API, and the rules that the others
    prove are looked for."""

    def complaints(self, change=lambda text: text):
        settings = yaml.safe_load(change((DEPLOY / "envoy/idem.yaml").read_text()))
        checked = run_client("envoy_settings.mjs", "@grpc/grpc-js-xds", json.dumps(settings))
        self.assertIn(checked.returncode, (0, 1), checked.stderr)
        return checked.stderr

    def test_its_file_is_of_envoys_api(self):
        self.assertEqual(self.complaints(), "")
        for good, bad, complaint in (("retry_on:", "retryon:", "retry_policy.retryon: RetryPolicy has no such field"),
                                     ("timeout: 90s", "timeout: 90", "route.timeout: is no duration"),
                                     ("REJECT_REQUEST", "REJECT", "HeadersWithUnderscoresAction has no REJECT"),
                                     ("v3.HeaderMutation", "v3.HeaderMutations", "there is no type")):
            self.assertIn(complaint, self.complaints(lambda text: replace(text, good, bad)))

    def test_its_file_keeps_the_rules(self):
        resources = yaml.safe_load((DEPLOY / "envoy/idem.yaml").read_text())["static_resources"]
        chain, = resources["listeners"][0]["filter_chains"]
        tls = chain["transport_socket"]["typed_config"]
        self.assertIs(tls["require_client_certificate"], True)
        manager = chain["filters"][0]["typed_config"]
        self.assertIs(manager["use_remote_address"], True)
        self.assertIs(manager["normalize_path"], False)
        mutations = manager["early_header_mutation_extensions"][0]["typed_config"]["mutations"]
        removed = {mutation["remove"] for mutation in mutations}
        self.assertLessEqual({"x-tenant-id", "x-envoy-retry-on", "x-envoy-max-retries"}, removed)
        self.assertEqual(manager["http_filters"][-1]["name"], "envoy.filters.http.router")
        host, = manager["route_config"]["virtual_hosts"]
        added, = host["request_headers_to_add"]
        self.assertEqual(added["header"]["key"], "x-tenant-id")
        self.assertEqual(added["append_action"], "OVERWRITE_IF_EXISTS_OR_ADD")
        for route in host["routes"]:
            self.assertEqual(route["route"]["retry_policy"], {"retry_on": "", "num_retries": 0})
            self.assertNotIn("hedge_policy", route["route"])
        cluster, = resources["clusters"]
        self.assertEqual(cluster["health_checks"][0]["http_health_check"]["path"], "/readyz")


if __name__ == "__main__":
    unittest.main()
