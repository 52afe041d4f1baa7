// A gateway with its API and store, and a browser at its console.
import { spawn, execFile } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import assert from "node:assert/strict";

const near = createRequire(path.join(process.env.IDEM_BROWSER_MODULES, "x.js"));
const bin = process.env.IDEM_BIN_DIR;
const chromium = "/usr/bin/chromium-headless-shell";
const run = promisify(execFile);

/** Why no test can run here; false: they can. */
export function missing() {
  let why = false;
  try {
    near.resolve("playwright-core");
    near.resolve("axe-core");
    fs.accessSync(chromium);
  } catch (error) {
    why = `no browser: run scripts/need-browser (${error.message})`;
  }
  if (why && process.env.IDEM_REQUIRE_LIVE) throw new Error(why);
  return why;
}

const uri = (database) => {
  const folder = fs.readFileSync(path.join(process.env.IDEM_BUILD_DIR, "servers/postgres"), "utf8").trim();
  return `postgresql:///${database}?host=${folder}&user=postgres`;
};
const sql = (...statements) => run("psql", ["-q", "-d", uri("postgres"), ...statements.flatMap((one) => ["-c", one])]);

/** A database of the run's PostgreSQL with Idem's tables. */
let databases = 0;
async function newDatabase() {
  databases += 1;
  const name = `b${process.pid}_${databases}`;
  await sql(`CREATE DATABASE ${name}`);
  await run(path.join(bin, "idem"), ["migrate", "--store", uri(name)]);
  return uri(name);
}

/** So many completed records, and others whose attempts were cut off a second ago. */
async function fill(store, records, unknown) {
  await run(path.join(bin, "test_fill"), [store, String(records), "2", `1:0:0:0:${unknown}`]);
}

/** Puts the files of console/build.mjs into the place of those in the program: to try a change without a build of it. */
async function serveFrom(page, folder) {
  const types = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
  const isFile = (url) => url.pathname === "/" || url.pathname.startsWith("/assets/");
  await page.route(isFile, async (route) => {
    const { href, pathname } = new URL(route.request().url());
    const file = pathname === "/" ? "index.html" : pathname;
    // The program's fields: its policy counts for these files, too.
    const answer = await route.fetch({ url: new URL("/", href).href }).catch(() => null);
    if (answer === null) return route.abort().catch(() => {}); // The gateway is away.
    const headers = answer.headers();
    delete headers["content-encoding"];
    headers["content-type"] = types[file.split(".").pop()];
    return route.fulfill({ status: 200, headers, body: fs.readFileSync(path.join(folder, file)) });
  });
}

/** A program of ours that listens; `addresses` are by the roles that it logs. */
class Program {
  #process;
  #log = "";
  #ended;
  addresses = {};

  static async start(name, args, roles) {
    const program = new Program();
    // A test that is killed leaves none behind.
    const child = spawn("setpriv", ["--pdeathsig", "KILL", path.join(bin, name), ...args], { stdio: ["ignore", "ignore", "pipe"] });
    program.#process = child;
    program.#ended = new Promise((resolve) => child.on("exit", resolve));
    await new Promise((resolve, reject) => {
      child.on("exit", () => reject(new Error(`${name} ended: ${program.#log}`)));
      child.stderr.on("data", (bytes) => {
        program.#log += bytes;
        for (const [, address, role] of program.#log.matchAll(/listening address=(\S+) role=(\w+)/g)) {
          program.addresses[role] = address;
        }
        if (roles.every((role) => program.addresses[role])) resolve();
      });
    });
    return program;
  }
  async kill(signal = "SIGKILL") {
    this.#process.kill(signal);
    await this.#ended;
  }
}

export class World {
  #programs = [];
  #pages = [];
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "idem-browser-"));

  /**
   * `store`: "sqlite" or "postgres". `more`: further lines of the settings. So many completed records are there from
   * the start, and so many others whose outcome becomes unknown.
   */
  static async begin(store = "sqlite", { more = "", records = 0, unknown = 0 } = {}) {
    const world = new World();
    world.more = more;
    world.store = store === "postgres" ? await newDatabase() : `sqlite:${path.join(world.folder, "idem.db")}`;
    world.provider = await world.#start("provider", ["--quiet", "--listen", "127.0.0.1:0"], ["provider"]);
    for (const role of ["viewer", "support", "operator"]) {
      const made = await run(path.join(bin, "idem"), ["admin", "token", `${role}-ada`, "--role", role, "--tokens-file", world.#tokens, "--json"]);
      world.tokens[role] = JSON.parse(made.stdout).token;
    }
    if (records > 0) await fill(world.store, records, unknown);
    await world.startGateway();
    world.browser = await near("playwright-core").chromium.launch({
      executablePath: chromium,
      args: process.getuid() === 0 ? ["--no-sandbox"] : [],
    });
    return world;
  }
  tokens = {};
  get #tokens() {
    return path.join(this.folder, "tokens");
  }
  async #start(name, args, roles) {
    const program = await Program.start(name, args, roles);
    this.#programs.push(program);
    return program;
  }
  #listens = { gateway: "127.0.0.1:0", admin: "127.0.0.1:0" };
  /** `more`: further lines. */
  writeSettings(more = this.more) {
    const { gateway, admin } = this.#listens;
    fs.writeFileSync(this.#settings, `listen: ${gateway}
admin: ${admin}
admin_tokens: ${this.#tokens}
upstream: { url: "http://${this.provider.addresses.provider}", timeout: 2s }
store: "${this.store}"
scope: { from: "header:X-Tenant-Id", trust_header: true }
defaults: { lease: 3s }
${more}`);
  }
  /** Again at the same addresses, if there was one before. */
  async startGateway() {
    this.#listens = this.gateway?.addresses ?? this.#listens;
    this.writeSettings();
    this.gateway = await this.#start("idem", ["gateway", "--config", this.#settings], ["gateway", "admin"]);
  }
  get #settings() {
    return path.join(this.folder, "idem.yaml");
  }
  get admin() {
    return `http://${this.gateway.addresses.admin}`;
  }
  async charge(key, faults = "", amount = 1250) {
    return fetch(`http://${this.gateway.addresses.gateway}/charges`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Tenant-Id": "acme", "Idempotency-Key": key, ...(faults === "" ? {} : { "X-Fault": faults }) },
      body: JSON.stringify({ amount, currency: "EUR" }),
    });
  }
  /** What the admin API answers to the operator's token. */
  async read(target) {
    const answer = await fetch(`${this.admin}${target}`, { headers: { Authorization: `Bearer ${this.tokens.operator}` } });
    assert.equal(answer.status, 200, target);
    return answer.json();
  }
  /** The ref of the only record in this state. */
  async only(state) {
    const { keys } = await this.read(`/v1/keys?state=${state}`);
    assert.equal(keys.length, 1, state);
    return keys[0].ref;
  }
  async idem(...args) {
    return run(path.join(bin, "idem"), args, { env: { ...process.env, IDEM_ADMIN_URL: this.admin, IDEM_ADMIN_TOKEN: this.tokens.operator } });
  }

  /** A new browser, whose errors fail the test (`noErrors`). */
  async open({ theme = "light", width = 1280 } = {}) {
    const context = await this.browser.newContext({ colorScheme: theme, viewport: { width, height: 800 } });
    const page = await context.newPage();
    page.errors = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") page.errors.push(message.text());
    });
    page.on("pageerror", (error) => page.errors.push(String(error)));
    page.setDefaultTimeout(20_000);
    if (process.env.IDEM_BROWSER_CONSOLE) await serveFrom(page, process.env.IDEM_BROWSER_CONSOLE);
    this.#pages.push(context);
    return page;
  }
  /** The same, logged in with the token of this role. */
  async logIn(role, options) {
    const page = await this.open(options);
    await page.goto(`${this.admin}/`);
    await page.getByLabel("Token").fill(this.tokens[role]);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    page.errors.length = 0; // The question who is logged in is answered by 401 before.
    return page;
  }

  /** A store that is a server lets nobody in and throws all out; the same call lets them in again. */
  async letIn(isOpen) {
    const name = /^postgresql:\/\/\/(\w+)/.exec(this.store)[1];
    await sql(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${isOpen}`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  }
  /** In the database of a world on PostgreSQL. */
  async sql(statement) {
    return (await run("psql", ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", this.store, "-c", statement])).stdout.trim();
  }
  async revoke(role) {
    await run(path.join(bin, "idem"), ["admin", "revoke", `${role}-ada`, "--tokens-file", this.#tokens, "--reason", "it leaked"]);
  }

  async end() {
    await this.browser?.close();
    for (const program of this.#programs.reverse()) await program.kill();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** No rule of axe is broken by what the page shows now. */
export async function accessible(page) {
  // The page's own policy lets no foreign script in; the tool's protocol does.
  await page.evaluate(fs.readFileSync(near.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" | ")}`), []);
}

/** Nothing is wider than the window. */
export async function fits(page) {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= window, `${wide} of ${window} pixels at ${page.url()}`);
}
