// node --test selftest.mjs: each server of the gallery works, and fails exactly the cases that gallery.json lists.
// GALLERY=name,name runs only these.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { judge } from "./cases.mjs";
import { send } from "./client.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const run = promisify(execFile);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "idem-gallery-"));
after(() => fs.rmSync(folder, { recursive: true }));

const listed = JSON.parse(fs.readFileSync(path.join(here, "gallery.json"), "utf8"));
const chosen = process.env.GALLERY?.split(",") ?? listed.map(({ name }) => name);

async function start({ name, profile, retention_ms: retention }) {
  const state = path.join(folder, name);
  const more = retention ? ["--retention-ms", String(retention)] : [];
  const command = [path.join(here, "serve.mjs"), name, "--state", state, "--supervise", ...more];
  // Servers that crash on purpose print their exceptions.
  const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await once(readline.createInterface({ input: child.stdout }), "line");
  const port = Number(/:(\d+)$/.exec(line)[1]);
  const end = async () => {
    if (child.exitCode !== null) return; // the server ended, and its supervisor with it
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  return { port, profile, retention, end, restart: () => run(path.join(here, "restart.sh"), [state]) };
}

async function works(port) {
  const body = '{"amount":1.50,"order":"é"}';
  const headers = [["Idempotency-Key", "works"]];
  const get = (path) => send(port, { method: "GET", path });
  assert.equal((await get("/healthz")).status, 200);
  assert.equal((await get("/nothing")).status, 404);
  assert.equal((await get("/ledger")).body, '{"count":0}');
  const made = await send(port, { headers, body });
  assert.equal(made.status, 201, made.body);
  assert.match(made.headers["set-cookie"], /^visit=/);
  assert.deepEqual(JSON.parse(made.body), { id: "pay_1", amount: 1.5, order: "é" });
  assert.match(made.body, /"amount":1\.50/);
  assert.equal((await get("/ledger")).body, '{"count":1}');
  assert.equal((await get(made.headers.location)).body, made.body);
}

test("gallery.json lists every server once", () => {
  const files = [...fs.readdirSync(path.join(here, "broken")), ...fs.readdirSync(path.join(here, "right"))];
  const names = files.filter((file) => /\.(mjs|py)$/.test(file)).map((file) => path.parse(file).name);
  assert.deepEqual(listed.map(({ name }) => name).sort(), names.sort());
  for (const { name, right, convicts } of listed) assert.equal(right, convicts.length === 0, name);
});

for (const entry of listed.filter(({ name }) => chosen.includes(name))) {
  test(entry.name, { timeout: 120_000 }, async () => {
    const server = await start(entry);
    try {
      await works(server.port);
      assert.deepEqual((await judge(server)).sort(), [...entry.convicts].sort());
    } finally {
      await server.end();
    }
  });
}
