// Runs `idem check` against the peers and writes their table into docs/peers.md: check/peers/run.mjs [NAME...]
// (a part of a name suffices; then the page stays). Needs PostgreSQL, Redis and what ./need installs; the results are
// in build/peers/results.
import { execFile, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { peers } from "./peers.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../..");
const modules = path.join(root, "build/peers");
const bin = process.env.IDEM_BIN_DIR ?? path.join(root, "build/dev/bin");
const page = path.join(root, "docs/peers.md");
const results = path.join(modules, "results");
const run = promisify(execFile);
const wanted = process.argv.slice(2);
const chosen = peers.filter((one) => wanted.length === 0 || wanted.some((name) => one.name.includes(name)));

execFileSync(path.join(here, "need"), { stdio: "inherit" });
fs.mkdirSync(results, { recursive: true });
// Node looks for modules beside a file.
const apps = path.join(modules, "apps");
fs.rmSync(apps, { recursive: true, force: true });
fs.cpSync(path.join(here, "apps"), apps, { recursive: true });

const work = fs.mkdtempSync(path.join(os.tmpdir(), "idem-peers-"));
const ends = [];
const server = (name, ...args) => execFileSync(path.join(root, "tests/servers", name), args, { encoding: "utf8" }).trim();
const portOf = (folder) => fs.readFileSync(path.join(folder, "port"), "utf8").trim();

/** What each kind of store gives to a peer's environment, and to the gateway. */
const stores = {
  none: () => ({}),
  memory: () => ({}),
  sqlite: (number) => ({ url: `sqlite:${work}/${number}.db` }),
  redis: () => {
    const folder = server("redis", "start");
    ends.push(() => server("redis", "stop", folder));
    return { REDIS: `127.0.0.1:${portOf(folder)}` };
  },
  postgres: (number) => {
    if (!stores.postgresFolder) {
      stores.postgresFolder = server("postgres", "start");
      ends.push(() => server("postgres", "stop", stores.postgresFolder));
    }
    const folder = stores.postgresFolder;
    execFileSync("psql", ["-q", "-h", folder, "-U", "postgres", "-c", `CREATE DATABASE p${number}`]);
    const url = `postgresql:///p${number}?host=${folder}&user=postgres`;
    return { url, DATABASE: url };
  },
  dynamodb: () => {
    const folder = server("dynamodb", "start");
    ends.push(() => server("dynamodb", "stop", folder));
    return { ENDPOINT: `http://127.0.0.1:${portOf(folder)}` };
  },
};

/** Starts a program; its address, once it has said it. */
function start(program, args, environment, pattern) {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  ends.push(() => child.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    let log = "";
    const look = (bytes) => {
      log += bytes;
      const found = pattern.exec(log);
      if (found) resolve(found[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", (code) => reject(new Error(`${args[0]} ended with ${code}: ${log}`)));
  });
}
const startApp = (name, environment) =>
  start(process.execPath, [path.join(apps, `${name}.mjs`)], environment, /listening on http:\/\/(\S+)/);

const versionOf = (peer) =>
  peer.module
    ? JSON.parse(fs.readFileSync(path.join(modules, "node_modules", peer.module, "package.json"), "utf8")).version
    : peer.gateway || peer.library
      ? execFileSync(path.join(bin, "idem"), ["version"], { encoding: "utf8" }).trim().split(" ")[1]
      : "";

/** The payments API of examples/, and the provider behind it, which counts charges. */
async function startExample(environment) {
  const args = ["--quiet", "--deduplicate", "24h", "--listen", "127.0.0.1:0"];
  const books = await start(path.join(bin, "provider"), args, {}, /listening address=(\S+) role=provider/);
  const service = ["--store", environment.url, "--listen", "127.0.0.1:0", "--provider", `http://${books}`];
  service.push("--lease", "3000", "--call-timeout", "1200");
  return { books, address: await start(path.join(bin, "payments"), service, {}, /listening address=(\S+) role=payments/) };
}

const usual = {
  body: '{"amount": {{amount}}, "order": "{{unique}}"}',
  pointer: "/count",
  more: `slow: { headers: { X-Delay-Ms: "1500" } }
fails: { headers: { X-Fail: "503" } }
refuses: { body: '{"order": "{{unique}}"}' }
`,
};
const example = {
  body: '{"amount": {{amount}}, "currency": "eur", "source": "tok_{{unique}}"}',
  pointer: "/effects",
  more: `refuses: { body: '{"amount": {{amount}}, "currency": "eur", "source": "tok_declined"}' }
`,
};

async function judge(peer, number) {
  const environment = stores[peer.store](number);
  const api = peer.library ? example : usual;
  let address;
  let books;
  if (peer.library) ({ address, books } = await startExample(environment));
  else books = address = await startApp(peer.app ?? "plain", environment);
  if (peer.gateway) {
    const args = ["gateway", "--listen", "127.0.0.1:0", "--upstream", `http://${address}`, "--store", environment.url];
    args.push("--scope", "header:X-Tenant-Id", "--trust-scope-header", "--migrate", ...peer.gateway);
    address = await start(path.join(bin, "idem"), args, {}, /listening address=(\S+) role=gateway/);
  }
  const config = path.join(work, `${number}.yaml`);
  fs.writeFileSync(
    config,
    `request:
  path: /payments
  headers: { X-Tenant-Id: check }
  body: '${api.body}'
resource: /id
effects: { url: "http://${books}/ledger", pointer: ${api.pointer} }
${peer.tenant ? "tenant: { header: X-Tenant-Id, other: check-2 }\n" : ""}other: { ${peer.path ? `path: ${peer.path}, ` : ""}query: "expand=all" }
${peer.required ? "expect: { key_required: true }\n" : ""}${api.more}timeout: 10s
`,
  );
  const args = [`http://${address}`, "--config", config, "--profile", peer.profile ?? "custom", "--seed", "1", "--rate", "0"];
  const ended = await run(path.join(bin, "idem-check"), [...args, "--json", "-"], { maxBuffer: 1 << 28 }).catch((error) => error);
  if (ended.code > 1) throw new Error(`${peer.name}: ${ended.stderr}`);
  fs.writeFileSync(path.join(results, `${peer.name.replaceAll(/[^\w.-]+/g, "_")}.json`), ended.stdout);
  return JSON.parse(ended.stdout);
}

/** "POST /payments, key A; then the same with another amount": the last request that shows it. */
function shownBy(one) {
  const call = one.calls?.at(-1);
  if (!call) return "";
  const lines = call.request.split("\r\n");
  const key = lines.find((line) => /^idempotency-key:/i.test(line)) ?? "no key";
  return `${call.what}: \`${lines[0].replace(" HTTP/1.1", "")}\`, \`${key.slice(0, 60)}\``;
}

function rowsOf(judged) {
  const groups = [["money"], ["correctness"], ["interoperability", "courtesy"]];
  const cell = (report, names) => {
    const asked = report.cases.filter((one) => names.includes(one.severity) && one.result !== "skip");
    return `${asked.filter((one) => one.result === "pass").length} of ${asked.length}`;
  };
  return judged.map(
    ({ peer, report }) =>
      `| ${peer.name} | ${versionOf(peer)} | ${peer.store} | ${report.profile} | ${groups.map((names) => cell(report, names)).join(" | ")} |`,
  );
}
const plain = (text) => text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").replaceAll("<", "&lt;");

function findingsOf(judged) {
  return judged.flatMap(({ peer, report }) => {
    const failed = report.cases.filter((one) => one.result === "fail");
    if (failed.length === 0) return [];
    return [
      `### ${peer.name}`,
      "",
      "| case | what was seen | shown by |",
      "|---|---|---|",
      ...failed.map((one) => `| \`${one.id}\` | ${plain(one.detail)} | ${plain(shownBy(one))} |`),
      "",
    ];
  });
}

const judged = [];
try {
  for (const [number, peer] of chosen.entries()) {
    const report = await judge(peer, number);
    judged.push({ peer, report });
    const failed = report.cases.filter((one) => one.result === "fail").map((one) => one.id);
    console.log(`${peer.name}: ${report.verdict}${failed.length > 0 ? `: ${failed.join(" ")}` : ""}`);
  }
} finally {
  for (const end of ends.reverse()) end();
  fs.rmSync(work, { recursive: true, force: true });
}
if (wanted.length === 0) {
  const begin = "<!-- begin of check/peers/run.mjs -->";
  const end = "<!-- end of check/peers/run.mjs -->";
  const text = fs.readFileSync(page, "utf8");
  const date = new Date().toISOString().slice(0, 10);
  const table = [
    `${date}, Node ${process.versions.node}. Cases that passed, of those that could be judged:`,
    "",
    "| peer | version | store | profile | money | correctness | interoperability, courtesy |",
    "|---|---|---|---|---|---|---|",
    ...rowsOf(judged),
    "",
    "## Findings",
    "",
    ...findingsOf(judged),
  ].join("\n");
  fs.writeFileSync(page, `${text.slice(0, text.indexOf(begin))}${begin}\n${table}\n${text.slice(text.indexOf(end))}`);
}
process.exit(0);
