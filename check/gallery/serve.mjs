// node serve.mjs NAME --port P --state FILE [--retention-ms N] [--supervise]: one server of the gallery.
// --supervise starts it as a process of its own and starts it again, on its port, when it was killed.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { parseArgs } from "node:util";

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);

function usage(why) {
  console.error(`${why}\nuse: node serve.mjs NAME --port P --state FILE [--retention-ms N] [--supervise]`);
  process.exit(2);
}

function settings() {
  const options = {
    port: { type: "string", default: "0" },
    state: { type: "string" },
    "retention-ms": { type: "string" },
    supervise: { type: "boolean" },
    "until-stdin-ends": { type: "boolean" },
  };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [name] = positionals;
  if (positionals.length !== 1 || !/^[a-z0-9_]+$/.test(name)) usage("one name of gallery.json is needed");
  if (!values.state) usage("--state is needed");
  const kinds = ["broken/#.mjs", "right/#.mjs", "right/#.py"].map((one) => path.join(here, one.replace("#", name)));
  const file = kinds.find((one) => fs.existsSync(one)) ?? usage(`no server ${name}`);
  return { ...values, name, file, python: file.endsWith(".py") };
}

/** Says who listens where: restart.sh kills this process and waits for the next one. */
function announce(state, port) {
  fs.writeFileSync(`${state}.pid.new`, `${process.pid} ${port}\n`);
  fs.renameSync(`${state}.pid.new`, `${state}.pid`);
  console.log(`listening on http://127.0.0.1:${port}`);
}

async function serve({ file, port, state, "retention-ms": retention, "until-stdin-ends": bound }) {
  const { Journal } = await import("./journal.mjs");
  const { Api } = await import("./api.mjs");
  const { default: Middleware } = await import(file);
  const journal = new Journal(state);
  const api = new Api(journal, new Middleware({ journal, retention: retention ? Number(retention) : Infinity }));
  api.server.listen({ port: Number(port), host: "127.0.0.1", backlog: 511 }, () => {
    announce(state, api.server.address().port);
  });
  // The supervisor holds the other end: a server never outlives it.
  if (bound) process.stdin.on("end", () => process.exit(0)).resume();
}

function supervise({ name, file, python, port, state, "retention-ms": retention }) {
  let child;
  let ending = false;
  const start = () => {
    const program = python ? ["python3", file] : [process.execPath, process.argv[1], name];
    const more = retention ? ["--retention-ms", retention] : [];
    const [command, ...first] = program;
    const all = [...first, "--port", port, "--state", state, ...more, "--until-stdin-ends"];
    child = spawn(command, all, { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => {});
    readline.createInterface({ input: child.stdout }).on("line", (line) => {
      const address = /^listening on http:\/\/127\.0\.0\.1:(\d+)$/.exec(line);
      if (address) port = address[1]; // the successor must come to the same one
      console.log(line);
    });
    child.on("exit", (code, signal) => {
      if (ending || signal !== "SIGKILL") process.exit(ending ? 0 : code ?? 1);
      start();
    });
  };
  const end = () => {
    ending = true;
    child.kill("SIGTERM");
  };
  process.on("SIGTERM", end).on("SIGINT", end);
  start();
}

const chosen = settings();
if (chosen.supervise || chosen.python) supervise(chosen);
else await serve(chosen);
