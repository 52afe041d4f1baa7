// Restate as its quickstart sets it up: a service on the SDK, its work in ctx.run, the server in front of it, which takes
// the field Idempotency-Key. The server keeps its log in the folder WORK. The ledger has an address of its own.
import * as restate from "@restatedev/restate-sdk";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import http from "node:http";
import net from "node:net";

import { Shop } from "./shop.mjs";

const shop = new Shop();
const payments = restate.service({
  name: "payments",
  handlers: {
    pay: async (context, order) => {
      if (typeof order?.amount !== "number") throw new restate.TerminalError("invalid", { errorCode: 422 });
      const headers = context.request().headers;
      const get = (name) => headers.get(name.toLowerCase());
      return context.run("pay", () => shop.pay({ get, body: order }));
    },
  },
});

const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
const [service, ingress, admin, node] = [await freePort(), await freePort(), await freePort(), await freePort()];
await restate.serve({ services: [payments], port: service });
const binary = createRequire(import.meta.url).resolve("@restatedev/restate-server-linux-x64/bin/restate-server");
const environment = {
  RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
  RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
  RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
  RESTATE_DISABLE_TELEMETRY: "true",
};
const options = ["--pdeathsig", "KILL", binary, "--base-dir", process.env.WORK, "--listen-mode", "tcp", "--no-logo"];
spawn("setpriv", options, { env: { ...process.env, ...environment }, stdio: ["ignore", 2, 2] });

const deployment = { method: "POST", headers: { "Content-Type": "application/json" } };
deployment.body = JSON.stringify({ uri: `http://127.0.0.1:${service}` });
for (const until = Date.now() + 60_000; ;) {
  const registered = await fetch(`http://127.0.0.1:${admin}/deployments`, deployment).catch(() => undefined);
  if (registered?.ok) break;
  if (Date.now() > until) throw new Error(`not registered: ${await registered?.text()}`);
  await new Promise((resolve) => setTimeout(resolve, 200));
}
const ledger = http.createServer((_, response) => response.end(JSON.stringify({ count: shop.paid })));
ledger.listen(0, "127.0.0.1", () => {
  console.log(`ledger on http://127.0.0.1:${ledger.address().port}`);
  console.log(`listening on http://127.0.0.1:${ingress}`);
});
