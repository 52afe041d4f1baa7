// Runs `idem check` against the peers and writes their table into docs/peers.md: check/peers/run.mjs [NAME...]
// (a part of a name suffices; then the page stays). Needs PostgreSQL, Redis and what ./need installs; the results are
// in build/peers/results.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { peers } from "./peers.mjs";
import { writePage } from "./page.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../..");
const modules = path.join(root, "build/peers");
const bin = process.env.IDEM_BIN_DIR ?? path.join(root, "build/release/bin");
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
const server = (name, ...args) =>
  execFileSync(path.join(root, "tests/servers", name), args, { encoding: "utf8" }).trim();
const portOf = (folder) => fs.readFileSync(path.join(folder, "port"), "utf8").trim();
function startServer(name) {
  const folder = server(name, "start");
  ends.push(() => server(name, "stop", folder));
  return folder;
}

/** What each kind of store gives to a peer's environment, and to the gateway. */
const stores = {
  none: () => ({}),
  memory: () => ({}),
  "its own": () => ({}),
  sqlite: (number) => ({ url: `sqlite:${work}/${number}.db`, DATABASE_FILE: `${work}/${number}.db` }),
  redis: () => {
    const address = `127.0.0.1:${portOf(startServer("redis"))}`;
    return { url: `redis://${address}`, REDIS: address };
  },
  postgres: (number) => {
    stores.postgresFolder ??= startServer("postgres");
    const folder = stores.postgresFolder;
    execFileSync("psql", ["-q", "-h", folder, "-U", "postgres", "-c", `CREATE DATABASE p${number}`]);
    const url = `postgresql:///p${number}?host=${folder}&user=postgres`;
    return { url, DATABASE: url };
  },
  dynamodb: () => ({ ENDPOINT: `http://127.0.0.1:${portOf(startServer("dynamodb"))}` }),
};

/** Starts a program, and waits for the line in which it says its address. */
async function start(program, args, environment, pattern) {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = () => child.kill("SIGKILL");
  ends.push(end);
  let log = "";
  const address = await new Promise((resolve, reject) => {
    const look = (bytes) => {
      log += bytes;
      const found = pattern.exec(log);
      if (found) resolve(found[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", (code) => reject(new Error(`${args[0]} ended with ${code}: ${log}`)));
  });
  return { child, address, log };
}
function startApp(name, environment) {
  const isPython = fs.existsSync(path.join(apps, `${name}.py`));
  const file = path.join(apps, `${name}.${isPython ? "py" : "mjs"}`);
  return start(isPython ? "python3" : process.execPath, [file], environment, /listening on http:\/\/(\S+)/);
}

// The tester's `restart` command asks this server, which kills the peer and starts it again at its address.
let restart = async () => {};
const control = http.createServer(async (_, response) => {
  await restart().catch((error) => (response.statusCode = 500) && response.write(String(error)));
  response.end();
});
await once(control.listen(0, "127.0.0.1"), "listening");

/** Starts by `launch(address)`, the second time where it was the first time. */
async function startAgainAndAgain(launch) {
  let running = await launch("127.0.0.1:0");
  const { address } = running;
  restart = async () => {
    const gone = once(running.child, "close");
    running.child.kill("SIGKILL");
    await gone;
    running = await launch(address);
  };
  return running;
}

/** The payments API of examples/, and the provider behind it, which counts charges. */
async function startExample(environment) {
  const args = ["--quiet", "--deduplicate", "24h", "--listen", "127.0.0.1:0"];
  const provider = await start(path.join(bin, "provider"), args, {}, /listening address=(\S+) role=provider/);
  const service = ["--store", environment.url, "--provider", `http://${provider.address}`];
  service.push("--lease", "3000", "--call-timeout", "1200", "--listen");
  const launch = (at) =>
    start(path.join(bin, "payments"), [...service, at], {}, /listening address=(\S+) role=payments/);
  return { books: provider.address, address: (await startAgainAndAgain(launch)).address };
}

async function startGateway(peer, environment) {
  const books = (await startApp("plain", environment)).address;
  const args = [
    "gateway",
    "--upstream",
    `http://${books}`,
    "--store",
    environment.url,
    "--scope",
    "header:X-Tenant-Id",
  ];
  args.push("--trust-scope-header", "--migrate", ...peer.gateway, "--listen");
  const launch = (at) => start(path.join(bin, "idem"), [...args, at], {}, /listening address=(\S+) role=gateway/);
  return { books, address: (await startAgainAndAgain(launch)).address };
}

async function startPeer(peer, environment) {
  if (peer.library) return startExample(environment);
  if (peer.gateway) return startGateway(peer, environment);
  const launch = (at) => startApp(peer.app, { ...environment, ...peer.env, PORT: at.split(":")[1] });
  const { address, log } = await startAgainAndAgain(launch);
  return { address, books: /ledger on http:\/\/(\S+)/.exec(log)?.[1] ?? address };
}

const usual = {
  body: '{"amount": {{amount}}, "order": "{{unique}}"}',
  pointer: "/count",
  slow: `{ headers: { X-Delay-Ms: "1500" } }`,
  fails: `{ headers: { X-Fail: "503" } }`,
  refuses: `{ body: '{"order": "{{unique}}"}' }`,
};
const example = {
  body: '{"amount": {{amount}}, "currency": "eur", "source": "tok_{{unique}}"}',
  pointer: "/effects",
  refuses: `{ body: '{"amount": {{amount}}, "currency": "eur", "source": "tok_declined"}' }`,
};

function configOf(peer, books) {
  const api = peer.library ? example : usual;
  const other = [
    ["path", peer.path],
    ["method", peer.method],
    ["query", '"expand=all"'],
  ];
  const lines = [
    `request: { path: ${peer.request ?? "/payments"}, headers: { X-Tenant-Id: check, Content-Type: application/json }, body: '${api.body}' }`,
    "resource: /id",
    `effects: { url: "http://${books}/ledger", pointer: ${api.pointer} }`,
    `other: { ${other
      .filter(([, value]) => value)
      .map((pair) => pair.join(": "))
      .join(", ")} }`,
    "timeout: 10s",
  ];
  if (peer.tenant) lines.push("tenant: { header: X-Tenant-Id, other: check-2 }");
  if (peer.required) lines.push("expect: { key_required: true }");
  if (!["memory", "none", "its own"].includes(peer.store)) {
    lines.push(`restart: "curl -fsS -X POST http://127.0.0.1:${control.address().port}/"`);
  }
  for (const name of ["slow", "fails", "refuses"]) {
    if (api[name] && !peer.leaves?.includes(name)) lines.push(`${name}: ${api[name]}`);
  }
  return `${lines.join("\n")}\n`;
}

async function judge(peer, number) {
  fs.mkdirSync(path.join(work, `${number}`));
  const environment = {
    ...stores[peer.store](number),
    WORK: path.join(work, `${number}`),
    LEDGER: path.join(work, `${number}.ledger`),
  };
  const { address, books } = await startPeer(peer, environment);
  const config = path.join(work, `${number}.yaml`);
  fs.writeFileSync(config, configOf(peer, books));
  const args = [
    `http://${address}`,
    "--config",
    config,
    "--profile",
    peer.profile ?? "custom",
    "--seed",
    "1",
    "--rate",
    "0",
  ];
  const ended = await run(path.join(bin, "idem-check"), [...args, "--json", "-"], { maxBuffer: 1 << 28 }).catch(
    (error) => error,
  );
  if (ended.code > 1) throw new Error(`${peer.name}: ${ended.stderr}`);
  fs.writeFileSync(path.join(results, `${peer.name.replaceAll(/[^\w.-]+/g, "_")}.json`), ended.stdout);
  return JSON.parse(ended.stdout);
}

const versionIn = (module) =>
  JSON.parse(fs.readFileSync(path.join(modules, "node_modules", module, "package.json"), "utf8")).version;
function versionOf(peer) {
  if (peer.module) return [peer.module, peer.and].filter(Boolean).map(versionIn).join(", ");
  if (!peer.gateway && !peer.library) return "";
  return execFileSync(path.join(bin, "idem"), ["version"], { encoding: "utf8" }).trim().split(" ")[1];
}

/** Numbers that express.json has read are not the middleware's: the case says nothing of it. */
function leaveNumbersToTheApi(peer, report) {
  const one = report.cases.find((each) => each.id === "number.precision");
  if (peer.exact || one.result === "skip") return;
  Object.assign(one, {
    result: "skip",
    detail: "The small API reads numbers as doubles before the middleware sees them.",
  });
}

const judged = [];
let failures = 0;
try {
  for (const [number, peer] of chosen.entries()) {
    try {
      const report = await judge(peer, number);
      leaveNumbersToTheApi(peer, report);
      judged.push({ peer, report, version: versionOf(peer) });
      const failed = report.cases.filter((one) => one.result === "fail").map((one) => one.id);
      console.log(`${peer.name}: ${failed.length === 0 ? "no finding" : failed.join(" ")}`);
    } catch (error) {
      failures += 1;
      console.log(`${peer.name}: not judged: ${error.message}`);
    }
  }
} finally {
  for (const end of ends.reverse()) end();
  fs.rmSync(work, { recursive: true, force: true });
}
if (wanted.length === 0 && failures === 0) writePage(path.join(root, "docs/peers.md"), judged);
process.exit(failures === 0 ? 0 : 1);
