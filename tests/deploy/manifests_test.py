"""Kubernetes manifests and the Helm chart: against Kubernetes' own schemas, and their settings in a real gateway that
is asked as a kubelet and Prometheus ask."""
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

from lab import BIN, DEPLOY, PATIENCE, ROOT, Api, Lab, Program, ask, need, run_client, until

KUBERNETES = DEPLOY / "kubernetes"
CHART = DEPLOY / "helm/idem"
POD = "10.9.0.2"  # Of the loopback device of a network namespace: an address that is not loopback.
POD_V6 = "fd00:9::2"
SECRET = {"admin-tokens": "", "naming-secret": "n" * 64, "postgres-ca.crt": ""}
CUSTOM = {"PodMonitor", "PrometheusRule"}  # Kinds of the Prometheus operator, not of Kubernetes.


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def manifests():
    return {file.name: documents(file.read_text()) for file in sorted(KUBERNETES.glob("*.yaml"))}


def one(objects, *kinds):
    found, = [o for o in objects if o["kind"] in kinds]
    return found


def check_by_schemas(case, objects):
    """What Kubernetes' schemas say against them, and the kinds that these do not have."""
    checked = run_client("kubernetes_objects.mjs", "kubernetes-models", json.dumps(objects))
    case.assertIn(checked.returncode, (0, 1), checked.stderr)
    return checked.stderr, set(re.findall(r"^not known: \S+ (\w+)$", checked.stdout, re.M))


class Rules:
    """What holds for every workload, of the manifests and of the chart."""

    def check_workload(self, objects, workload):
        pod = workload["spec"]["template"]["spec"]
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertIs(pod["enableServiceLinks"], False, "IDEM_PORT of a Service would be read as a setting")
        self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
        self.assertEqual(pod["securityContext"]["runAsUser"], 900, "the user of deploy/oci/Dockerfile")
        self.assertEqual(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
        for container in pod.get("initContainers", []) + pod["containers"]:
            security = container["securityContext"]
            self.assertEqual((security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"],
                              security["capabilities"]), (False, True, {"drop": ["ALL"]}), container["name"])
        idem = pod["containers"][-1]
        mounted = {mount["name"] for mount in idem.get("volumeMounts", [])}
        given = {volume["name"] for volume in pod.get("volumes", [])}
        given |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        self.assertEqual(mounted, given)
        if workload["kind"] == "Job":
            return
        labels = workload["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(workload["spec"]["selector"]["matchLabels"].items(), labels.items())
        ports = {port["name"]: port["containerPort"] for port in idem["ports"]}
        settings = yaml.safe_load(one(objects, "ConfigMap")["data"]["idem.yaml"])
        self.assertEqual(ports, {"http": int(settings["listen"].split(":")[-1]),
                                 "admin": int(settings["admin"].split(":")[-1])})
        for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
            for found in (o for o in objects if o["kind"] == kind):
                selector = found["spec"].get("selector", found["spec"].get("podSelector"))
                self.assertLessEqual(selector.get("matchLabels", selector).items(), labels.items(), kind)
        self.assertEqual(idem["livenessProbe"]["httpGet"]["path"], "/livez")
        self.assertEqual(idem["readinessProbe"]["httpGet"]["path"], "/readyz")
        waits = int(idem["lifecycle"]["preStop"]["exec"]["command"][-1])
        timeout = int(settings["upstream"]["timeout"].removesuffix("s"))
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], waits + max(30, timeout + 10))
        if settings["store"].startswith("sqlite:"):
            self.assertEqual(workload["kind"], "StatefulSet")
            self.assertEqual(workload["spec"]["replicas"], 1)
            self.assertIn("volumeClaimTemplates", workload["spec"])
            self.assertFalse([o for o in objects if o["kind"] == "PodDisruptionBudget"])


class Manifests(Rules, unittest.TestCase):
    def test_kubernetes_would_take_them(self):
        objects = [o for found in manifests().values() for o in found]
        self.assertGreater(len(objects), 9)
        wrong, unknown = check_by_schemas(self, objects)
        self.assertEqual(wrong, "")
        self.assertLessEqual(unknown, CUSTOM)

    def test_the_check_finds_what_is_wrong(self):
        def altered(change):
            deployment = copy.deepcopy(one(manifests()["shared.yaml"], "Deployment"))
            change(deployment["spec"]["template"]["spec"]["containers"][0])
            return check_by_schemas(self, [deployment])[0]
        self.assertEqual(altered(lambda c: None), "")
        self.assertIn("there is no field livenesProbe", altered(lambda c: c.update(livenesProbe={})))
        self.assertIn("containerPort must be integer", altered(lambda c: c["ports"][0].update(containerPort="8080")))
        self.assertIn("name", altered(lambda c: c.pop("name")))

    def test_workloads_keep_the_rules(self):
        seen = 0
        for objects in manifests().values():
            for workload in objects:
                if workload["kind"] in ("Deployment", "StatefulSet", "Job"):
                    seen += 1
                    self.check_workload(objects, workload)
        self.assertEqual(seen, 3)

    def test_the_image_is_the_one_of_this_version(self):
        version = subprocess.run([BIN / "idem", "version"], capture_output=True, text=True).stdout.split()[1]
        text = "".join(file.read_text() for file in KUBERNETES.glob("*.yaml"))
        self.assertEqual(set(re.findall(r"image: idem:(\S+)", text)), {version})
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual(chart["appVersion"], version)

    def test_the_api_of_the_sidecar_stops_behind_the_gateway(self):
        # Kubernetes stops init containers with this policy after all others.
        pod = one(manifests()["sidecar.yaml"], "StatefulSet")["spec"]["template"]["spec"]
        self.assertEqual([(c["name"], c["restartPolicy"]) for c in pod["initContainers"]], [("api", "Always")])


class Chart(Rules, Lab):
    @classmethod
    def setUpClass(cls):
        build = pathlib.Path(os.environ.get("IDEM_BUILD_DIR", ROOT / "build/release"))
        cls.renderer = build / "render-chart"
        subprocess.run([need("go"), "build", "-o", cls.renderer, ROOT / "tests/deploy/render.go"], check=True,
                       env={**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": "/usr/share/gocode",
                            "GOCACHE": str(build / "go")})

    def setUp(self):
        super().setUp()
        self.schema = json.loads((CHART / "values.schema.json").read_text())
        self.values = yaml.safe_load((CHART / "values.yaml").read_text())

    def merged(self, *given):
        """As Helm merges values: maps by their members, all else replaced."""
        def merge(into, values):
            for name, value in values.items():
                if isinstance(value, dict) and isinstance(into.get(name), dict):
                    merge(into[name], value)
                else:
                    into[name] = value
            return into
        result = copy.deepcopy(self.values)
        for values in given:
            merge(result, copy.deepcopy(values))
        return result

    def example(self, name):
        return yaml.safe_load((CHART / "ci" / f"{name}.yaml").read_text())

    def complaints(self, values):
        found = jsonschema.Draft7Validator(self.schema).iter_errors(values)
        return [(".".join(map(str, e.absolute_path)), e.message) for e in found]

    def render(self, values):
        (self.dir / "values.json").write_text(json.dumps(values))
        rendered = subprocess.run([self.renderer, CHART, "pay", self.dir / "values.json"], capture_output=True, text=True)
        if rendered.returncode != 0:
            return rendered.stderr, None
        texts = json.loads(rendered.stdout)
        notes = texts.pop("templates/NOTES.txt")
        return notes, [o for text in texts.values() for o in documents(text)]

    def test_the_schema_is_one(self):
        jsonschema.Draft7Validator.check_schema(self.schema)
        # Each value has a place in the schema, and the reverse: an unknown name is a typing error.
        self.assertEqual(set(self.values) | {"global"}, set(self.schema["properties"]))
        self.assertIs(self.schema["additionalProperties"], False)

    def test_the_defaults_alone_are_refused(self):
        refused = {place for place, _ in self.complaints(self.values)}
        self.assertEqual(refused, {"upstream.url", "scope", "store"})

    def test_bad_values_are_refused(self):
        shared, embedded = self.example("shared"), self.example("embedded")
        self.assertEqual(self.complaints(self.merged(shared)), [])
        self.assertEqual(self.complaints(self.merged(embedded)), [])
        for base, bad, place in (
                (embedded, {"replicas": 2}, "replicas"),
                (embedded, {"store": "sqlite:/tmp/x"}, "store"),
                (embedded, {"migrate": True}, "migrate"),
                (shared, {"store": "sqlite:/var/lib/idem/idem.db"}, "store"),
                (shared, {"store": "memory:"}, "store"),
                (shared, {"replica": 3}, ""),
                (shared, {"replicas": "3"}, "replicas"),
                (shared, {"image": {"tagg": "1"}}, "image"),
                (shared, {"image": {"repository": "idem:0.1.0"}}, "image.repository"),
                (shared, {"scope": {"from": "client"}}, "scope.from"),
                (shared, {"upstream": {"url": "payments:9000"}}, "upstream.url"),
                (shared, {"upstream": {"url": "http://payments:9000/v1"}}, "upstream.url"),
                (shared, {"settings": {"admin": "0.0.0.0:1"}}, "settings"),
                (shared, {"settings": {"key": {"secret_files": []}}}, "settings.key"),
                (shared, {"terminationGracePeriodSeconds": 30}, "terminationGracePeriodSeconds"),
                (shared, {"podDisruptionBudget": {"minAvailable": 1}}, "podDisruptionBudget"),
                (shared, {"monitoring": {"runbooks": "https://pages.example/"}}, "monitoring.runbooks")):
            with self.subTest(str(bad)):
                self.assertIn(place, {at for at, _ in self.complaints(self.merged(base, bad))})

    def test_it_renders_what_kubernetes_would_take(self):
        for name, kinds in (("shared", {"Deployment", "PodDisruptionBudget", "Job"} | CUSTOM),
                            ("embedded", {"StatefulSet"})):
            with self.subTest(name):
                notes, objects = self.render(self.merged(self.example(name)))
                self.assertIsNotNone(objects, notes)
                self.assertEqual({o["kind"] for o in objects}, kinds | {"ConfigMap", "Service", "NetworkPolicy"})
                wrong, unknown = check_by_schemas(self, objects)
                self.assertEqual(wrong, "")
                self.assertLessEqual(unknown, CUSTOM)
                self.assertIn("port-forward", notes)
                own = [o for o in objects if not o["metadata"]["name"].endswith("-dashboard")]
                for workload in own:
                    if workload["kind"] in ("Deployment", "StatefulSet", "Job"):
                        self.check_workload(own, workload)

    def test_it_renders_rules_and_dashboard_as_they_are(self):
        _, objects = self.render(self.merged(self.example("shared")))
        rules = one(objects, "PrometheusRule")["spec"]
        text = (ROOT / "docs/alerts.yml").read_text()
        text = text.replace("file:///usr/share/doc/idem/docs", "https://pages.example/idem")
        self.assertEqual(rules, yaml.safe_load(text))
        board, = [o for o in objects if o["metadata"]["name"].endswith("-dashboard")]
        self.assertEqual(json.loads(board["data"]["idem.json"]), json.loads((DEPLOY / "grafana/idem.json").read_text()))

    def test_a_grace_that_cuts_requests_off_is_refused(self):
        said, objects = self.render(self.merged(self.example("shared"), {"upstream": {"timeout": "2m"}}))
        self.assertIsNone(objects)
        self.assertIn("terminationGracePeriodSeconds is 60, and a stop takes up to 140 s", said)

    def test_its_settings_are_good(self):
        for name in ("shared", "embedded"):
            _, objects = self.render(self.merged(self.example(name)))
            settings = one([o for o in objects if "idem.yaml" in o.get("data", {})], "ConfigMap")["data"]["idem.yaml"]
            text = at_home(settings, self.dir)
            (self.dir / "idem.yaml").write_text(text)
            checked = subprocess.run([BIN / "idem", "config", "check", "--config", self.dir / "idem.yaml"],
                                     capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr + settings)
            if name == "shared":
                self.assertEqual(yaml.safe_load(settings)["routes"][0]["name"], "create-payment")
                self.assertEqual(yaml.safe_load(settings)["key"]["min_length"], 16)


def at_home(settings, folder):
    """Settings of a manifest with the files of a Secret as Kubernetes lays them out: links to links, mode 0440."""
    secrets = folder / "secrets"
    if not secrets.exists():
        lay_out(secrets, SECRET)
    settings = settings.replace("/run/secrets/idem", str(secrets))
    (folder / "store").mkdir(exist_ok=True)
    return settings.replace("/var/lib/idem", str(folder / "store"))


def lay_out(secrets, contents):
    """The files of a Secret, replaced in one step: NAME -> ..data/NAME, ..data -> ..VERSION."""
    secrets.mkdir(exist_ok=True)
    version = secrets / f"..v{len(list(secrets.glob('..v*')))}"
    version.mkdir()
    for name, content in contents.items():
        (version / name).write_text(content)
        (version / name).chmod(0o440)
        if not (secrets / name).is_symlink():
            (secrets / name).symlink_to(f"..data/{name}")
    (secrets / "..new").symlink_to(version.name)
    (secrets / "..new").replace(secrets / "..data")


class Probes(Lab):
    """In a network of its own, because the ports are those of the manifests."""

    def setUp(self):
        super().setUp()
        need("ip")
        if os.environ.get("TEST_IN_NETWORK") != "1":
            return
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "replace", f"{POD}/32", "dev", "lo"], check=True)
        subprocess.run(["ip", "address", "replace", f"{POD_V6}/128", "dev", "lo"], check=True)

    def test_in_a_network_of_its_own(self):
        if os.environ.get("TEST_IN_NETWORK") == "1":
            self.skipTest("this is the network")
        allowed = subprocess.run(["unshare", "--net", "--map-root-user", "true"], capture_output=True, text=True)
        if allowed.returncode != 0:
            self.skipTest(f"no network namespace here: {allowed.stderr}")
        ran = subprocess.run(
            ["unshare", "--net", "--map-root-user", sys.executable, __file__, "Probes.in_the_network"],
            env={**os.environ, "TEST_IN_NETWORK": "1"}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("Ran 1 test", ran.stderr)
        self.assertNotIn("skipped", ran.stderr)

    def ask_probe(self, probe):
        get = probe["httpGet"]
        self.assertEqual(get["port"], "admin")
        return ask(f"{POD}:9901", "GET", get["path"], {field["name"]: field["value"] for field in get["httpHeaders"]})

    def in_the_network(self):
        for file, kind in (("shared.yaml", "Deployment"), ("sidecar.yaml", "StatefulSet")):
            with self.subTest(file):
                self.probe(manifests()[file], kind)

    def start(self, settings, pod, container):
        """The container's process in a pod of this address."""
        environment = {e["name"]: e["value"].replace("$(POD_IP)", pod) for e in container["env"] if "value" in e}
        self.assertEqual(environment, {"IDEM_ADMIN_HOST": pod})
        file = self.dir / "idem.yaml"
        file.write_text(json.dumps(settings))
        gateway = Program(self, [BIN / "idem", "gateway", "--config", file], environment)
        gateway.find(r'"listening"[^\n]*"role":"(gateway)"')
        return gateway

    def probe(self, objects, kind):
        api = Api(self)
        container = one(objects, kind)["spec"]["template"]["spec"]["containers"][-1]
        settings = yaml.safe_load(at_home(one(objects, "ConfigMap")["data"]["idem.yaml"], self.dir))
        settings["upstream"]["url"] = f"http://{api.address}"
        settings["store"] = f"sqlite:{self.dir}/{kind}.db"  # In place of the server, which is not here.
        gateway = self.start(settings, POD, container)
        # A kubelet asks from the node's address.
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(self.ask_probe(container[probe]).status, 200, probe)
        # Prometheus asks by the pod's address, which Host then names.
        self.assertEqual(ask(f"{POD}:9901", "GET", "/metrics").status, 200)
        # A page in an operator's browser that a foreign name led here; and a caller without a login.
        self.assertEqual(ask(f"{POD}:9901", "GET", "/metrics", {"Host": "evil.example"}).status, 400)
        self.assertEqual(ask(f"{POD}:9901", "GET", "/v1/keys").status, 401)
        self.check_tokens()
        self.check_stop(gateway, api, container)

        gateway = self.start(settings | {"admin": "[::]:9901"}, f"[{POD_V6}]", container)
        self.assertEqual(ask(f"[{POD_V6}]:9901", "GET", "/metrics").status, 200)
        gateway.end()
        # Without the setting the probes would fail: it is needed.
        gateway = self.start({n: v for n, v in settings.items() if n != "admin_probes"}, POD, container)
        self.assertEqual(self.ask_probe(container["livenessProbe"]).status, 401)
        gateway.end()

    def check_tokens(self):
        """A token, as the Secret brings it: the process reads the file again when the links change."""
        tokens = self.dir / "tokens"
        made = subprocess.run([BIN / "idem", "admin", "token", "ada", "--role", "operator", "--tokens-file", tokens],
                              capture_output=True, text=True, check=True)
        login = {"Authorization": f"Bearer {made.stdout.strip().split()[-1]}"}
        self.assertEqual(ask(f"{POD}:9901", "GET", "/v1/keys", login).status, 401)
        lay_out(self.dir / "secrets", {**SECRET, "admin-tokens": tokens.read_text()})
        self.assertEqual(ask(f"{POD}:9901", "GET", "/v1/keys", login).status, 200)
        lay_out(self.dir / "secrets", SECRET)
        tokens.unlink()
        self.assertEqual(ask(f"{POD}:9901", "GET", "/v1/keys", login).status, 401, "revoked")

    def check_stop(self, gateway, api, container):
        """With a request under way: not ready, but alive, and the request ends."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asking = pool.submit(
                ask, f"{POD}:8080", "POST", "/hold/1",
                {"Idempotency-Key": "k", "X-Tenant-Id": "acme", "Content-Type": "application/json"}, "{}")
            api.wait_held()
            gateway.process.terminate()
            until("the end of readiness", lambda: self.ask_probe(container["readinessProbe"]).status == 503)
            self.assertEqual(self.ask_probe(container["livenessProbe"]).status, 200)
            api.let_go.set()
            self.assertEqual(asking.result().status, 201)
        self.assertEqual(gateway.process.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
