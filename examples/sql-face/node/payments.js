#!/usr/bin/env node
"use strict";
const usage = `A payment service that completes its own record (docs/sql-face.md).

payments.js serve HOST:PORT        behind a gateway: POST /payments {"amount": 1250}
payments.js pay SCOPE KEY AMOUNT   without one, from the command line

DATABASE_URL: the database of the gateway's store, with the table of payments.sql.
DIE_AFTER_COMMIT=1: ends the process after its first commit, before it answers.`;

const crypto = require("crypto");
const http = require("http");
const { Pool } = require("pg");

const LATE = ["IDM01", "IDM02"]; // Stale; settled.
const JSON_TYPE = [["Content-Type", "application/json"]];

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
// Logs broken connections; the pool replaces them, and their queries fail by themselves.
pool.on("error", (error) => console.error(error.message));
pool.on("connect", (client) => client.on("error", (error) => console.error(error.message)));

const refusal = (status, why, ...fields) =>
  ({ status, headers: [...JSON_TYPE, ...fields], body: Buffer.from(JSON.stringify({ error: why })) });

// Books a payment and stores its answer, both or neither.
async function pay(attempt, amount) {
  const id = "pay_" + crypto.randomUUID();
  const headers = [...JSON_TYPE, ["Location", "/payments/" + id]];
  const body = Buffer.from(JSON.stringify({ id, amount }));
  let client;
  try {
    client = await pool.connect();
    await client.query("BEGIN");
    await client.query("INSERT INTO payments (id, amount) VALUES ($1, $2)", [id, amount]);
    await client.query("SELECT idem.complete($1, $2, $3, $4, $5, $6)",
      [...attempt, 201, JSON.stringify(headers), body]);
  } catch (error) {
    // No commit was sent, and closing rolls back: this payment was never made.
    if (client) client.release(true);
    if (LATE.includes(error.code)) return refusal(409, "too late: the record has another attempt, or its answer");
    console.error(error.message);
    return refusal(503, "not booked, try again", ["Idem-Outcome", "not-executed"]);
  }
  // After a failed commit only the record knows the outcome. So there is no answer of ours: the error ends
  // this connection, and the gateway reads the record.
  await client.query("COMMIT").catch((error) => { client.release(true); throw error; });
  if (process.env.DIE_AFTER_COMMIT) process.exit(9);
  client.release();
  return { status: 201, headers, body };
}

function amountOf(request) {
  try {
    const { amount } = JSON.parse(request);
    return Number.isSafeInteger(amount) && amount > 0 ? amount : undefined;
  } catch {
    return undefined;
  }
}

async function answerTo(message) {
  const parts = [];
  for await (const part of message) parts.push(part);
  const { headers } = message;
  // The fence stays text: it may be larger than the integers that a number holds exactly.
  const attempt = [headers["idem-operation"], headers["idem-fence"], headers["idem-attempt"]];
  const amount = amountOf(Buffer.concat(parts).toString());
  if (message.method !== "POST" || message.url !== "/payments") return refusal(404, "there is only /payments");
  if (attempt.includes(undefined)) return refusal(400, "payments come through the gateway, with an Idempotency-Key");
  if (amount === undefined) return refusal(422, "amount is a positive integer");
  return pay(attempt, amount);
}

function serve(host, port) {
  const server = http.createServer((message, reply) => {
    answerTo(message).then(({ status, headers, body }) => {
      for (const [name, value] of headers) reply.setHeader(name, value);
      reply.writeHead(status, { "Content-Length": body.length }).end(body);
    }).catch((error) => {
      console.error(error.message);
      message.socket.destroy();
    });
  });
  server.listen(Number(port), host, () =>
    console.log(`listening address=${host}:${server.address().port} role=payments`));
}

async function payDirectly(scope, key, text) {
  const amount = amountOf(`{"amount": ${text}}`);
  if (amount === undefined) throw new Error("amount is a positive integer");
  // The work is one transaction of this database, and only its completion makes it real. So an attempt that
  // crashed before it did nothing (dispatched => false), and the key runs again after its lease.
  const { rows: [r] } = await pool.query(
    `SELECT outcome, operation, fence, attempt, response_status AS status, response_body AS body
     FROM idem.reserve($1, 'create-payment', $2, $3, dispatched => false)`,
    [scope, key, Buffer.from("amount=" + amount)]);
  if (r.outcome !== "execute" && r.outcome !== "replay") throw new Error(r.outcome);
  const answer = r.outcome === "replay" ? r : await pay([r.operation, r.fence, r.attempt], amount);
  console.log(answer.status, answer.body.toString());
  if (answer.status >= 400) process.exitCode = 1;
}

const [what, ...rest] = process.argv.slice(2);
if (what === "serve" && rest.length === 1) {
  serve(...rest[0].split(":"));
} else if (what === "pay" && rest.length === 3) {
  payDirectly(...rest).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  }).finally(() => pool.end());
} else {
  console.error(usage);
  process.exitCode = 2;
}
