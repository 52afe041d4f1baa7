// Runs `idem check` against servers of the gallery and compares its findings with what each server is to be convicted
// of: judge.mjs [--runs N] [--jobs N] [--again N] [--only CASES] [NAME...]. IDEM_CHECK names the program. Prints a line
// for each server, and fails if a finding is missing or too many. Some faults show only if two requests meet within
// milliseconds: with --again a run that went wrong is repeated so often, and the line says so.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const program = process.env.IDEM_CHECK ?? path.join(here, "../../build/release/bin/idem-check");
const options = { runs: 1, jobs: 2, again: 0, only: "", keep: "" };
const names = [];
for (let i = 2; i < process.argv.length; ++i) {
  const option = process.argv[i].replace(/^--/, "");
  if (process.argv[i].startsWith("--")) {
    if (!(option in options)) throw new Error(`there is no --${option}`);
    options[option] = typeof options[option] === "number" ? Number(process.argv[++i]) : process.argv[++i];
  } else names.push(process.argv[i]);
}
const all = JSON.parse(fs.readFileSync(path.join(here, "gallery.json"), "utf8"));
for (const name of names) if (!all.some((one) => one.name === name)) throw new Error(`there is no server ${name}`);
const chosen = all.filter((one) => names.length === 0 || names.includes(one.name));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "idem-gallery-"));
const running = new Set();

/** The server, once it listens. */
async function start(server, state) {
  const args = [path.join(here, "serve.mjs"), server.name, "--port", "0", "--state", state, "--supervise"];
  if (server.retention_ms) args.push("--retention-ms", String(server.retention_ms));
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child);
  let log = "";
  child.stderr.on("data", (bytes) => (log += bytes));
  const port = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (bytes) => {
      text += bytes;
      const found = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
      if (found) resolve(Number(found[1]));
    });
    child.on("exit", (code) => reject(new Error(`${server.name} ended with ${code}: ${log}`)));
  });
  return { child, port };
}
function stop({ child }) {
  running.delete(child);
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let error = "";
    child.stdout.on("data", (bytes) => (out += bytes));
    child.stderr.on("data", (bytes) => (error += bytes));
    child.on("close", (code) => resolve({ code, out, error }));
  });
}

/** One run: the ids that failed, and the skipped ones. */
async function judge(server, number) {
  const state = path.join(folder, `${server.name}-${number}.state`);
  const started = await start(server, state);
  try {
    let config = fs.readFileSync(path.join(here, "config.yaml"), "utf8");
    config = config.replaceAll("PORT", started.port).replaceAll("GALLERY", here).replaceAll("STATE", state);
    if (server.retention_ms) config += `\nretention: ${server.retention_ms}ms\n`;
    const file = path.join(folder, `${server.name}-${number}.yaml`);
    fs.writeFileSync(file, config);
    const args = [`http://127.0.0.1:${started.port}`, "--config", file, "--profile", server.profile, "--json", "-"];
    args.push("--rate", "0", "--seed", String(1000 + number));
    if (options.only) args.push("--only", ...options.only.split(","));
    const began = Date.now();
    const ended = await run(program, args);
    if (ended.code !== 0 && ended.code !== 1) throw new Error(`${server.name}: exit ${ended.code}: ${ended.error}`);
    const report = JSON.parse(ended.out);
    if (options.keep) fs.writeFileSync(path.join(options.keep, `${server.name}-${number}.json`), ended.out);
    const of = (result) => report.cases.filter((one) => one.result === result);
    const unsure = report.cases.filter((one) => one.result !== "fail" && one.failures > 0);
    return {
      seconds: (Date.now() - began) / 1000,
      failed: of("fail"),
      skipped: of("skip"),
      unsure,
      cases: report.cases,
    };
  } finally {
    stop(started);
  }
}

const results = new Map(chosen.map((server) => [server, { right: 0, wrong: [], seconds: 0, unsure: 0, again: 0 }]));
const work = chosen.flatMap((server) => Array.from({ length: options.runs }, (_, number) => [server, number]));
const ids = (cases) =>
  cases
    .map((one) => one.id)
    .sort()
    .join(" ");
const isRight = (server, result) =>
  ids(result.failed) === ids(result.cases.filter((one) => server.convicts.includes(one.id)));
let next = 0;
async function worker() {
  while (next < work.length) {
    const [server, number] = work[next++];
    const into = results.get(server);
    let result = await judge(server, number);
    for (let again = 1; again <= options.again && !isRight(server, result); ++again) {
      into.again += 1;
      result = await judge(server, number + again * 10_000);
    }
    into.seconds += result.seconds;
    into.unsure += result.unsure.length;
    const expected = server.convicts.filter((id) => result.cases.some((one) => one.id === id));
    const found = result.failed.map((one) => one.id);
    const missing = expected.filter((id) => !found.includes(id));
    const extra = result.failed.filter((one) => !expected.includes(one.id));
    if (missing.length === 0 && extra.length === 0) into.right += 1;
    else
      into.wrong.push(
        [
          ...missing.map(
            (id) =>
              `missing ${id}: ${result.cases.find((one) => one.id === id).result} ${result.cases.find((one) => one.id === id).detail}`,
          ),
          ...extra.map((one) => `extra ${one.id}: ${one.detail}`),
        ].join("\n      "),
      );
    if (into.right + into.wrong.length === options.runs) {
      const seconds = (into.seconds / options.runs).toFixed(1);
      console.log(
        `${into.right === options.runs ? "ok  " : "BAD "} ${server.name}: ${into.right} of ${options.runs}, ${seconds} s each, ${into.unsure} seen once${into.again > 0 ? `, ${into.again} repeated` : ""}`,
      );
      for (const one of new Set(into.wrong)) console.log(`      ${one}`);
    }
  }
}
try {
  await Promise.all(Array.from({ length: options.jobs }, worker));
} finally {
  for (const child of running) stop({ child });
  spawnSync("rm", ["-rf", folder]);
}
const all_right = [...results.values()].every((one) => one.wrong.length === 0);
const right = [...results.values()].filter((one) => one.wrong.length === 0).length;
console.log(`${right} of ${results.size} servers judged as they should be, ${options.runs} runs each`);
process.exit(all_right ? 0 : 1);
